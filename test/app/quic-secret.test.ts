// The secret of the QUIC ingress in the data folder: created once, private, checked.

import { chmodSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ensureQuicSecret } from "../../src/app/quic-secret.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

it("is created at the first start with mode 0600, and kept", () => {
  const folder = join(temporaryFolder(), "data");
  const secret = ensureQuicSecret(folder);
  expect(secret).toMatch(/^[0-9a-f]{64}$/);
  expect(statSync(join(folder, "quic-secret")).mode & 0o777).toBe(0o600);
  expect(ensureQuicSecret(folder)).toBe(secret);
  expect(ensureQuicSecret(temporaryFolder())).not.toBe(secret);
});

it("is refused if others can read it, or if it has another form", () => {
  const folder = temporaryFolder();
  ensureQuicSecret(folder);
  const file = join(folder, "quic-secret");
  chmodSync(file, 0o644);
  expect(() => ensureQuicSecret(folder)).toThrow("expected mode 0600 or stricter, got 0644");
  chmodSync(file, 0o600);
  for (const text of ["", "zz".repeat(32), "00".repeat(31)]) {
    writeFileSync(file, text);
    expect(() => ensureQuicSecret(folder)).toThrow(
      `secret file ${file}: expected 64 hexadecimal digits, got another content; delete the file`,
    );
  }
});
