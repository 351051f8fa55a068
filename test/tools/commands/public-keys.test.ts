// `shredway public-keys` as users and programs call it. Over a real folder and real key files.

import { chmodSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import type { KeyPair } from "../../../src/core/key-pair.ts";
import { createLogger } from "../../../src/core/log.ts";
import { isObject } from "../../../src/core/values.ts";
import { checkClaim } from "../../../src/gateway/accounts/public-key-proof.ts";
import { makeKeyFile } from "../../../src/platform/solana/key-file.ts";
import { Store } from "../../../src/platform/store/store.ts";
import { until } from "../../platform/store/files.ts";
import { closing } from "../../support/closing.ts";
import { shredwayHere } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const accountId = "a_4f1a09c2d3e5";

interface Place {
  readonly data: string;
  readonly file: string;
  readonly pair: KeyPair;
}

function place(): Place {
  const folder = temporaryFolder();
  const file = join(folder, "id.json");
  return { data: join(folder, "data"), file, pair: makeKeyFile(file) };
}

async function json(...args: readonly string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await shredwayHere(...args, "--json");
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

/** Creates an API key; returns its id. */
async function apiKey(data: string, account: string, scopes: string): Promise<string> {
  const options = ["--account", account, "--scopes", scopes, "--data", data];
  return String((await json("keys", "create", ...options))["id"]);
}

it("signs a registration with a key file, without a database", async () => {
  const { file, pair } = place();
  const args = ["--account", accountId, "--purpose", "tpu", "--key-file", file, "--minutes", "60"];
  const { code, stdout, stderr } = await shredwayHere("public-keys", "sign", ...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const parameter: unknown = JSON.parse(stdout);
  if (!isObject(parameter)) throw new Error("expected an object");
  const { publicKey, purpose, expiresAt, signature } = parameter;
  expect({ publicKey, purpose }).toEqual({ publicKey: pair.address, purpose: "tpu" });
  const claim = {
    accountId,
    publicKey: pair.address,
    purpose: "tpu" as const,
    expiresAt: String(expiresAt),
  };
  await checkClaim(claim, String(signature), Date.now());
  const other = checkClaim(
    { ...claim, accountId: "a_000000000000" },
    String(signature),
    Date.now(),
  );
  await expect(other).rejects.toMatchObject({ reason: "signature_invalid" });
});

it("refuses a key file that others can read, and quotes none of it", async () => {
  const { file } = place();
  chmodSync(file, 0o644);
  const args = ["--account", accountId, "--purpose", "tpu", "--key-file", file];
  const { code, stdout, stderr } = await shredwayHere("public-keys", "sign", ...args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain(file);
  expect(stderr).not.toMatch(/\d+,\d+/);
});

it("adds, lists and removes, and shows the history", async () => {
  const { data, file, pair } = place();
  const id = await apiKey(data, "one", "submit");
  const where = ["--data", data];
  const options = ["--api-key", id, "--purpose", "tpu", "--key-file", file];
  const registered = {
    publicKey: pair.address,
    account: "one",
    purpose: "tpu",
    apiKey: id,
    registered: expect.stringMatching(/^20\d\d-.*Z$/),
  };
  expect(await json("public-keys", "add", ...options, ...where)).toEqual(registered);
  expect(await json("public-keys", "list", ...where)).toEqual({ publicKeys: [registered] });
  const { stdout } = await shredwayHere("public-keys", "list", ...where);
  expect(stdout).toMatch(/^public key +account +purpose +API key +registered\n/);
  expect(stdout).toContain(pair.address);
  expect(await json("public-keys", "remove", pair.address, ...where)).toEqual({
    publicKey: pair.address,
    state: "removed",
  });
  const again = await shredwayHere("public-keys", "remove", pair.address, ...where);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("unknown public key") });
  expect((await shredwayHere("public-keys", "list", ...where)).stderr).toContain("no public keys");
  const event = { account: "one", publicKey: pair.address, purpose: "tpu", apiKey: null };
  expect(await json("public-keys", "history", ...where)).toMatchObject({
    events: [
      { ...event, kind: "registered" },
      { ...event, kind: "removed" },
    ],
  });
  const shown = (await shredwayHere("public-keys", "history", ...where)).stdout;
  expect(shown).toMatch(/registered +\w+ +tpu +operator/);
});

it("says what is wrong", async () => {
  const { data, file, pair } = place();
  const where = ["--data", data];
  const id = await apiKey(data, "one", "submit");
  const other = await apiKey(data, "two", "submit,shreds");
  const add = (...args: readonly string[]) => shredwayHere("public-keys", "add", ...args, ...where);
  const key = ["--public-key", pair.address];
  expect((await add("--api-key", id, "--purpose", "tpu", ...key)).code).toBe(0);
  for (const [args, code, text] of [
    [["--api-key", other, "--purpose", "tpu", ...key], 1, "already registered"],
    [["--api-key", id, "--purpose", "shredstream", ...key], 1, "without the scope shreds"],
    [["--api-key", "k_none", "--purpose", "tpu", ...key], 1, "unknown key"],
    [["--api-key", id, "--purpose", "votes", ...key], 2, "tpu, shredstream"],
    [["--api-key", id, "--purpose", "tpu", "--public-key", "short"], 1, "32 bytes in base58"],
    [["--api-key", id, "--purpose", "tpu", ...key, "--key-file", file], 2, "--key-file"],
    [["--api-key", id, "--purpose", "tpu"], 2, "--public-key"],
  ] as const) {
    const ended = await add(...args);
    expect(ended).toMatchObject({ code, stderr: expect.stringContaining(text) });
  }
  const sign = ["--purpose", "tpu", "--key-file", file, "--account", "one"];
  const ended = await shredwayHere("public-keys", "sign", ...sign);
  expect(ended).toMatchObject({ code: 2, stderr: expect.stringContaining(accountId) });
});

it("reaches a service that runs on the same database", async () => {
  const { data, pair } = place();
  const log = createLogger({ level: "silent" });
  const store = closing(await Store.open({ directory: data, clock: systemClock, log }));
  const id = await apiKey(data, "one", "shreds");
  let changes = 0;
  store.publicKeys.onForeignChange(() => changes++);
  const options = ["--api-key", id, "--purpose", "shredstream", "--public-key", pair.address];
  await json("public-keys", "add", ...options, "--data", data);
  await until(() => changes > 0);
  expect(await store.publicKeys.all()).toMatchObject([{ publicKey: pair.address, keyId: id }]);
});
