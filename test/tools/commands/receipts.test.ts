// `shredway signing-keys` and `shredway verify-receipt`, with a running gateway, real files and real HTTP.

import { spawnSync } from "node:child_process";
import { createPublicKey } from "node:crypto";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type KeySet, ShredwayClient } from "../../../src/client/index.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { SigningKeys } from "../../../src/gateway/receipts/signing-keys.ts";
import { ensureSigningKey } from "../../../src/platform/solana/signing-key-file.ts";
import { Store } from "../../../src/platform/store/store.ts";
import { closing } from "../../support/closing.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { shredwayHere } from "../../support/processes/shredway.ts";
import { receiptContent } from "../../support/signing/receipt-content.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const log = createLogger({ level: "silent" });
const content = receiptContent({
  state: "superseded",
  at: "2026-11-21T11:59:59.900Z",
  reason: "nonce_advanced",
  slot: null,
  err: null,
  sibling: "6y",
});
const text = JSON.stringify(content);

/** The signing keys of a running service on a data folder. */
async function service() {
  const folder = join(temporaryFolder(), "data");
  const store = closing(
    await Store.open({ directory: folder, clock: systemClock, log, isService: true }),
  );
  const keys = closing(
    await SigningKeys.open({
      store: store.signingKeys,
      readKey: () => ensureSigningKey(folder),
      node: store.node,
      clock: systemClock,
      log,
    }),
  );
  return { folder, keys };
}

function publishedBy(keys: SigningKeys): KeySet {
  return JSON.parse(keys.keySet);
}

async function verify(...args: readonly string[]) {
  const { code, stdout, stderr } = await shredwayHere("verify-receipt", ...args);
  return { code, stdout, stderr };
}

it("a rotation reaches the running service, and receipts of both keys verify by URL", async () => {
  const { folder, keys } = await service();
  const first = keys.sign("shredway-receipt", text);
  const before = keys.kid;
  const rotated = await shredwayHere("signing-keys", "rotate", "--data", folder, "--json");
  expect(rotated.stderr).toBe("");
  const { kid, file } = JSON.parse(rotated.stdout);
  expect(file).toBe(join(folder, "signing-key.pem"));
  expect(statSync(file).mode & 0o777).toBe(0o600);
  await expect.poll(() => keys.kid).toBe(kid);
  const second = keys.sign("shredway-receipt", text);
  const run = await GatewayRun.open({}, { signer: keys });
  const receipts = join(folder, "receipts.txt");
  writeFileSync(receipts, `${first}\n${second}\n`);
  const url = run.url("/");
  expect(await verify("--file", receipts, "--url", url)).toEqual({
    code: 0,
    stderr: "",
    stdout: [1, 2]
      .map(
        (line) =>
          `${receipts}, line ${line}: valid, final, signed 2026-11-21T12:00:00.000Z, slot 7, sendTransaction\n` +
          "  5x\n" +
          "    received 2026-11-21T11:59:59.000Z, tip 10000 lamports, queued by a, b\n" +
          "    superseded by 6y (nonce_advanced) at 2026-11-21T11:59:59.900Z\n",
      )
      .join(""),
  });
  const listed = await shredwayHere("signing-keys", "list", "--data", folder, "--json");
  expect(JSON.parse(listed.stdout)).toMatchObject({
    signingKeys: [
      { kid: before, node: null, retired: expect.stringMatching(/Z$/) },
      { kid, node: null, retired: null },
    ],
  });
  const shown = await shredwayHere("signing-keys", "list", "--data", folder);
  expect(shown.stdout).toMatch(new RegExp(`${kid} .*in use`));
  const published = await new ShredwayClient({ url }).getSigningKeys();
  expect(published.keys.map((each) => each.kid)).toEqual([before, kid]);
});

it("the stored keys, one key, and a PEM file verify without the service", async () => {
  const { folder, keys } = await service();
  const receipt = keys.sign("shredway-receipt", text);
  const set = publishedBy(keys);
  const [key] = set.keys;
  const files = { "set.json": JSON.stringify(set), "key.json": JSON.stringify(key) };
  for (const [name, body] of Object.entries(files)) {
    writeFileSync(join(folder, name), body);
    expect((await verify(receipt, "--key-file", join(folder, name))).code).toBe(0);
    expect((await verify(receipt, "--key", body)).code).toBe(0);
  }
  const jwk = { kty: "OKP", crv: "Ed25519", x: key?.x ?? "" };
  const pem = createPublicKey({ key: jwk, format: "jwk" }).export({ type: "spki", format: "pem" });
  writeFileSync(join(folder, "key.pem"), pem);
  expect((await verify(receipt, "--key-file", join(folder, "key.pem"))).code).toBe(0);
  const { stdout, code } = await verify(receipt, "--key", key?.x ?? "", "--json");
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ receipt: "argument 1", valid: true, content });
});

it("an invalid receipt is named, the others are still verified, and the exit code is 1", async () => {
  const { keys } = await service();
  const good = keys.sign("shredway-receipt", text);
  const bad = `${good.slice(0, -10)}AAAAAAAAAA`;
  const x = publishedBy(keys).keys[0]?.x ?? "";
  const { code, stdout, stderr } = await verify(bad, "hello", good, "--key", x);
  expect(code).toBe(1);
  expect(stdout).toMatch(/^argument 3: valid, final/);
  expect(stderr.split("\n")).toEqual([
    "shredway verify-receipt: argument 1: INVALID: statement_invalid: signature verification failed: the text was changed, or the key is another one",
    "shredway verify-receipt: argument 2: INVALID: statement_invalid: expected a JWS in compact serialization, got another text",
    "",
  ]);
  const json = await verify(bad, "--key", x, "--json");
  expect(json.code).toBe(1);
  expect(JSON.parse(json.stdout)).toMatchObject({ valid: false, reason: "statement_invalid" });
  const foreign = await verify(good, "--key", "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
  expect(foreign).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("signing_key_unknown"),
  });
});

it("reads receipts from standard input", async () => {
  const { keys } = await service();
  const x = publishedBy(keys).keys[0]?.x ?? "";
  const program = ["--import", "tsx", "src/tools/shredway.ts", "verify-receipt", "--key", x];
  const input = `\n  ${keys.sign("shredway-receipt", text)}\n`;
  const { status, stdout } = spawnSync(process.execPath, program, { input, encoding: "utf8" });
  expect(stdout).toMatch(/^standard input: valid, final/);
  expect(status).toBe(0);
});

it("says what is wrong with its options", async () => {
  const { folder, keys } = await service();
  const receipt = keys.sign("shredway-receipt", text);
  const empty = join(folder, "empty");
  writeFileSync(empty, " \n");
  for (const [args, message] of [
    [[receipt], "missing key; expected --url URL of the service, --key KEY, or --key-file FILE"],
    [[receipt, "--key", "abc"], "--key: expected an Ed25519 public key: 43 characters"],
    [[receipt, "--key", "{}"], "got another content"],
    [[receipt, "--key", "a", "--url", "b"], "--url and --key exclude each other"],
    [[receipt, "--url", "ftp://x"], '--url: invalid value "ftp://x"; expected http://host:port'],
    [[receipt, "--key-file", join(folder, "none")], "--key-file: cannot read"],
    [[receipt, "--key-file", join(folder, "signing-key.pem")], "got another content"],
    [["--file", empty, "--key", "A".repeat(43)], "expected a receipt, got none"],
    [["--file", join(folder, "none"), "--key", "A".repeat(43)], "--file: cannot read"],
  ] as const) {
    const { code, stdout, stderr } = await verify(...args);
    expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("PRIVATE");
  }
  const unreachable = await verify(receipt, "--url", "http://127.0.0.1:9");
  expect(unreachable.code).toBe(1);
  expect(unreachable.stderr).toContain("not verified: unreachable");
});
