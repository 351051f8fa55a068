// Signing keys: publication, rotation while the service runs, and failures of the store.

import { expect, it } from "vitest";
import { type KeySet, verifyReceipt } from "../../../src/client/index.ts";
import type { SigningKeys } from "../../../src/gateway/receipts/signing-keys.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { signingKeyFrom, TestSigningKeys } from "../../support/gateway/signing-keys.ts";

const content = JSON.stringify({
  statement: "accepted",
  iat: 1,
  time: "1970-01-01T00:00:01.000Z",
  slot: null,
  method: "sendTransaction",
  bundleId: null,
  transactions: [],
});

async function opened() {
  const test = new TestSigningKeys();
  const clock = new ManualClock();
  const keys = closing(await test.open(clock));
  return { test, clock, keys };
}

function setOf({ keySet }: SigningKeys): KeySet {
  return JSON.parse(keySet);
}

it("publishes the key before it signs", async () => {
  const { keys, clock } = await opened();
  const { kid, publicKey } = signingKeyFrom(1);
  expect(setOf(keys).keys).toEqual([
    {
      kty: "OKP",
      crv: "Ed25519",
      x: Buffer.from(publicKey).toString("base64url"),
      kid,
      alg: "EdDSA",
      use: "sig",
      iat: Number(clock.nowNs() / 1_000_000_000n),
    },
  ]);
  const receipt = keys.sign("shredway-receipt", content);
  expect(await verifyReceipt(receipt, setOf(keys))).toMatchObject({ statement: "accepted" });
});

it("follows a rotation, and earlier receipts still verify", async () => {
  const { test, keys, clock } = await opened();
  const receipts = [keys.sign("shredway-receipt", content)];
  for (const seed of [2, 3, 4]) {
    await clock.advance(60_000);
    test.replace(seed);
    await expect.poll(() => keys.kid).toBe(signingKeyFrom(seed).kid);
    receipts.push(keys.sign("shredway-receipt", content));
  }
  expect(new Set(receipts).size).toBe(4);
  for (const receipt of receipts) await verifyReceipt(receipt, setOf(keys));
  const published = setOf(keys).keys;
  expect(published).toHaveLength(4);
  expect(published.filter(({ exp }) => exp === undefined)).toMatchObject([{ kid: keys.kid }]);
  const first = published.find(({ kid }) => kid === signingKeyFrom(1).kid);
  expect((first?.exp ?? 0) - (first?.iat ?? 0)).toBe(60);
});

it("keeps the previous key while the new one cannot be stored, and publishes what other nodes add", async () => {
  const { test, keys } = await opened();
  const first = keys.kid;
  test.store.failure = new Error("no database");
  test.replace(2);
  await expect.poll(() => test.warnings.length).toBe(1);
  expect(test.warnings[0]).toBe(`signing keys: the key ${first} stays in use: no database`);
  expect(keys.kid).toBe(first);
  test.store.failure = null;
  const foreign = signingKeyFrom(9);
  await test.store.use({
    kid: foreign.kid,
    publicKey: foreign.publicKey,
    node: "other",
    createdMs: 5,
  });
  test.store.notify();
  await expect.poll(() => setOf(keys).keys.length).toBe(3);
  const open = setOf(keys).keys.filter(({ exp }) => exp === undefined);
  expect(open.map(({ kid }) => kid).toSorted()).toEqual(
    [signingKeyFrom(2).kid, foreign.kid].toSorted(),
  );
  await verifyReceipt(foreign.sign("shredway-receipt", content), setOf(keys));
});
