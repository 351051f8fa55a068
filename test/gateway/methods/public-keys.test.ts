// registerPublicKey, getPublicKeys and removePublicKey over real HTTP with a real store.

import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { openGateway } from "../../../src/app/compose-gateway.ts";
import type { GatewayService } from "../../../src/app/gateway-service.ts";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { KeyPair } from "../../../src/core/key-pair.ts";
import { createLogger } from "../../../src/core/log.ts";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { keyRandomBytes, newApiKey } from "../../../src/gateway/accounts/api-keys.ts";
import { createKey } from "../../../src/gateway/accounts/create-key.ts";
import {
  claimTextOf,
  type PublicKeyClaim,
} from "../../../src/gateway/accounts/public-key-proof.ts";
import type { Scope } from "../../../src/gateway/accounts/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const lines: string[] = [];

async function open(sellsShreds = true): Promise<{ gateway: GatewayService; clock: ManualClock }> {
  const clock = new ManualClock();
  const tips = pubkeyOf(new Uint8Array(32).fill(5));
  const config = completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    http: { listen: "127.0.0.1:0", webSocketListen: [] },
    data: { directory: temporaryFolder() },
    tips: { addresses: [tips], ...(sellsShreds && { shredAddresses: [tips] }) },
  });
  lines.length = 0;
  const log = createLogger({ stream: { write: (line: string) => lines.push(line) } });
  const gateway = closing(await openGateway({ config, log, clock }));
  await gateway.start();
  return { gateway, clock };
}

type Ask = (method: string, ...params: readonly unknown[]) => Promise<unknown>;

interface Caller {
  readonly accountId: string;
  readonly id: string;
  readonly ask: Ask;
}

async function callerOf(
  gateway: GatewayService,
  accountName: string,
  scopes: readonly Scope[] = ["submit", "shreds"],
): Promise<Caller> {
  const settings = {
    accountName,
    label: "",
    scopes,
    requestsPerSecond: 1000,
    burst: 1000,
    allowedRanges: [],
  };
  const chance = { random: randomBytes(keyRandomBytes), nowNs: 1n };
  const { text, key } = await createKey(gateway.keys, settings, chance);
  await gateway.refreshKeys();
  const ask: Ask = async (method, ...params) => {
    const response = await fetch(`http://${gateway.addresses[0]}/relay?api-key=${text}`, {
      method: "POST",
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    const body: unknown = await response.json();
    return body;
  };
  return { accountId: key.accountId, id: key.id, ask };
}

/** ManualClock begins at 2026-01-01T00:00:00Z. */
const expiresAt = "2026-01-01T00:10:00.000Z";
const newPair = (): KeyPair => new KeyPair(randomBytes(32));

function signed(accountId: string, pair: KeyPair, changes: Partial<PublicKeyClaim> = {}) {
  const claim = {
    accountId,
    publicKey: pair.address,
    purpose: "tpu" as const,
    expiresAt,
    ...changes,
  };
  const { accountId: _, ...registration } = claim;
  const signature = Buffer.from(pair.sign(Buffer.from(claimTextOf(claim)))).toString("base64");
  return { ...registration, signature };
}

const refused = (reason: string, text = "") => ({
  error: expect.objectContaining({
    message: expect.stringMatching(new RegExp(`^${reason}: .*${text}`, "s")),
    data: expect.objectContaining({ reason }),
  }),
});

it("registers a key, lists it, and removes it", async () => {
  const { gateway } = await open();
  const caller = await callerOf(gateway, "one");
  const pair = newPair();
  expect(await caller.ask("getPublicKeys")).toMatchObject({
    result: { account: caller.accountId, publicKeys: [] },
  });
  const registered = {
    publicKey: pair.address,
    purpose: "tpu",
    apiKey: caller.id,
    state: "active",
    registeredAt: "2026-01-01T00:00:00.000Z",
  };
  const registration = signed(caller.accountId, pair);
  const answer = await caller.ask("registerPublicKey", registration);
  expect(answer).toMatchObject({ result: registered });
  // The repetition after a lost response is not an error.
  expect(await caller.ask("registerPublicKey", registration)).toEqual(answer);
  const asBase58 = encodeBase58(Buffer.from(registration.signature, "base64"));
  const other = await caller.ask("registerPublicKey", { ...registration, signature: asBase58 });
  expect(other).toEqual(answer);
  expect(await caller.ask("getPublicKeys")).toMatchObject({
    result: { publicKeys: [registered] },
  });
  expect(await caller.ask("removePublicKey", pair.address)).toMatchObject({ result: true });
  expect(await caller.ask("getPublicKeys")).toMatchObject({ result: { publicKeys: [] } });
  expect(await caller.ask("removePublicKey", pair.address)).toMatchObject(
    refused("public_key_unknown"),
  );
  const log = lines.join("");
  expect(log).toMatch(/public key added/);
  expect(log).toMatch(/public key removed/);
  expect(log).toContain(pair.address);
});

it("accepts a signature for its account, key, purpose and time only", async () => {
  const { gateway, clock } = await open();
  const [one, two] = [await callerOf(gateway, "one"), await callerOf(gateway, "two")];
  const [pair, otherPair] = [newPair(), newPair()];
  const good = signed(one.accountId, pair);
  const invalid = refused("signature_invalid", "shredway: register public key");
  expect(await two.ask("registerPublicKey", good)).toMatchObject(invalid);
  for (const wrong of [
    { ...good, purpose: "shredstream" },
    { ...good, expiresAt: "2026-01-01T00:11:00.000Z" },
    { ...good, publicKey: otherPair.address },
    { ...good, signature: signed(two.accountId, pair).signature },
    { ...good, signature: encodeBase58(new Uint8Array(64)) },
    // Not a point of the curve.
    { ...good, publicKey: pubkeyOf(new Uint8Array(32).fill(0xee)) },
  ]) {
    expect(await one.ask("registerPublicKey", wrong)).toMatchObject(invalid);
  }
  for (const [field, value] of [
    ["signature", "x"],
    ["signature", "A".repeat(86)],
    ["publicKey", "short"],
    ["purpose", "votes"],
    ["expiresAt", "2026-01-01T00:00:00.000Z"],
    ["expiresAt", "2026-01-01T01:00:00.001Z"],
    ["expiresAt", "2026-01-01 00:10:00Z"],
    ["expiresAt", "2026-13-01T00:10:00Z"],
    ["expiresAt", ""],
    ["publicKey", undefined],
  ] as const) {
    const answer = await one.ask("registerPublicKey", { ...good, [field]: value });
    expect(answer).toMatchObject(refused("value_invalid", field));
  }
  await clock.advance(600_000);
  const late = await one.ask("registerPublicKey", good);
  expect(late).toMatchObject(refused("value_invalid", "expiresAt"));
});

it("rejects a key of small order, for which every caller can sign", async () => {
  const { gateway } = await open();
  const { ask } = await callerOf(gateway, "one");
  const identity = Uint8Array.of(1, ...new Uint8Array(31)); // the neutral element of the curve
  const signature = Buffer.concat([identity, new Uint8Array(32)]); // valid for every text
  const registration = {
    publicKey: pubkeyOf(identity),
    purpose: "tpu",
    expiresAt,
    signature: signature.toString("base64"),
  };
  const answer = await ask("registerPublicKey", registration);
  expect(answer).toMatchObject(refused("value_invalid", "a point of small order"));
});

it("gives a key to one account, and each account sixteen keys", async () => {
  const { gateway } = await open();
  const [one, two] = [await callerOf(gateway, "one"), await callerOf(gateway, "two")];
  const pair = newPair();
  await one.ask("registerPublicKey", signed(one.accountId, pair));
  const taken = refused("public_key_refused", "already registered");
  expect(await two.ask("registerPublicKey", signed(two.accountId, pair))).toMatchObject(taken);
  const other = signed(one.accountId, pair, { purpose: "shredstream" });
  expect(await one.ask("registerPublicKey", other)).toMatchObject(taken);
  expect(await two.ask("removePublicKey", pair.address)).toMatchObject(
    refused("public_key_unknown"),
  );
  for (let i = 1; i < 16; i++) {
    const answer = await one.ask("registerPublicKey", signed(one.accountId, newPair()));
    expect(answer).toHaveProperty("result");
  }
  expect(await one.ask("registerPublicKey", signed(one.accountId, newPair()))).toMatchObject(
    refused("public_key_refused", "16 public keys"),
  );
});

it("requires the scope of the purpose", async () => {
  const { gateway } = await open();
  const submitter = await callerOf(gateway, "one", ["submit"]);
  const buyer = await callerOf(gateway, "one", ["shreds"]);
  const reader = await callerOf(gateway, "one", ["read"]);
  const { accountId } = submitter;
  const tpu = newPair();
  const shredstream = newPair();
  const wanted = signed(accountId, shredstream, { purpose: "shredstream" });
  const missing = refused("scope_missing");
  expect(await submitter.ask("registerPublicKey", wanted)).toMatchObject(missing);
  expect(await buyer.ask("registerPublicKey", wanted)).toHaveProperty("result");
  expect(await buyer.ask("registerPublicKey", signed(accountId, tpu))).toMatchObject(missing);
  expect(await submitter.ask("registerPublicKey", signed(accountId, tpu))).toHaveProperty("result");
  expect(await buyer.ask("removePublicKey", tpu.address)).toMatchObject(missing);
  expect(await reader.ask("getPublicKeys")).toMatchObject(missing);
});

it("ends the effect of a key with its API key, except for a rotation", async () => {
  const { gateway, clock } = await open();
  const [one, watcher] = [await callerOf(gateway, "one"), await callerOf(gateway, "one")];
  const [rotated, revoked] = [newPair(), newPair()];
  await one.ask("registerPublicKey", signed(one.accountId, rotated));
  const [old] = (await gateway.keys.keys()).filter(({ id }) => id === one.id);
  if (!old) throw new Error("expected the API key");
  const next = newApiKey(old, randomBytes(keyRandomBytes), 2n).key;
  await gateway.keys.replaceKey(old.id, clock.nowNs(), next);
  await gateway.refreshKeys();
  expect(await watcher.ask("getPublicKeys")).toMatchObject({
    result: { publicKeys: [{ publicKey: rotated.address, apiKey: next.id, state: "active" }] },
  });
  await clock.advance(1);
  await watcher.ask("registerPublicKey", signed(one.accountId, revoked));
  await gateway.keys.revokeKey(next.id, clock.nowNs());
  await gateway.refreshKeys();
  expect(await watcher.ask("getPublicKeys")).toMatchObject({
    result: { publicKeys: [{ state: "ended" }, { state: "active" }] },
  });
});

it("registers no key for shreds without their sale", async () => {
  const { gateway } = await open(false);
  const { ask, accountId } = await callerOf(gateway, "one");
  const wanted = signed(accountId, newPair(), { purpose: "shredstream" });
  expect(await ask("registerPublicKey", wanted)).toMatchObject(refused("registration_off"));
  expect(await ask("registerPublicKey", signed(accountId, newPair()))).toHaveProperty("result");
});
