// Frames for the account encoding "base64+zstd", read by the real zstd program.

import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { zstdFrame } from "../../../src/sandbox/rpc/zstd-frame.ts";

const hasZstd = spawnSync("zstd", ["--version"]).status === 0;

describe("a zstd frame", () => {
  it("has the content size and one raw block", () => {
    expect(Buffer.from(zstdFrame(Uint8Array.of(7, 8))).toString("hex")).toBe(
      "28b52ffda0020000001100000708",
    );
    expect(Buffer.from(zstdFrame(new Uint8Array())).toString("hex")).toBe(
      "28b52ffda000000000010000",
    );
  });

  it.skipIf(!hasZstd).each([0, 1, 255, 131_071, 131_072, 131_073, 1_000_000])(
    "of %i bytes is read by the zstd program",
    (length) => {
      const data = new SeededRandom(length).fillBytes(new Uint8Array(length));
      const options = { input: zstdFrame(data), maxBuffer: 2 * length + 1024 };
      const { status, stdout, stderr } = spawnSync("zstd", ["-d", "-c"], options);
      expect(stderr.toString()).toBe("");
      expect(status).toBe(0);
      expect(stdout.equals(data)).toBe(true);
    },
  );
});
