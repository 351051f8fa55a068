// ShredwayClient against the whole running service: every method, real chain, real routes.

import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { ComputeBudgetProgram } from "@solana/web3.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  publicKeyProofMessage,
  ShredwayCallError,
  type ShredwayClient,
} from "../../src/client/index.ts";
import { KeyPair } from "../../src/core/key-pair.ts";
import { until } from "../support/network/udp-receiver.ts";
import { ClientHarness } from "./client-harness.ts";

/** On a busy machine, routes may be down for a while. */
const longRetries = { retries: 100 };

let harness: ClientHarness;
let client: ShredwayClient;
let tipAccount = "";

beforeAll(async () => {
  harness = await ClientHarness.open();
  client = harness.client();
  [tipAccount = ""] = await client.getTipAccounts();
});

afterAll(() => harness.close());

async function reasonOf(work: Promise<unknown>): Promise<string> {
  const thrown: unknown = await work.then(
    () => "nothing",
    (error: unknown) => error,
  );
  return thrown instanceof ShredwayCallError ? thrown.reason : String(thrown);
}

describe.concurrent("submissions", () => {
  it("lands a transaction, and returns its status", async () => {
    const signature = await client.sendTransaction(harness.tip(20_000, tipAccount), longRetries);
    const status = await client.waitForEnd(signature);
    expect(status).toMatchObject({
      signature,
      state: "landed",
      method: "sendTransaction",
      err: null,
    });
    expect(status.slot).toBe(harness.sandbox.chain.status(signature)?.slot);
    expect(status.events[0]).toMatchObject({
      kind: "received",
      offsetMs: 0,
      method: "sendTransaction",
      tipLamports: 20_000n,
      priorityFeeLamports: 0n,
    });
    expect(status.events.at(-1)?.kind).toBe("landed");
    expect(await client.getTransactionStatus(signature)).toEqual(status);
    expect(await client.getTransactionStatus([signature])).toEqual([status]);
  });

  it("restricts routes to staked partners and to those with MEV protection", async () => {
    const routesOf = async (options: { swqosOnly?: boolean; mevProtect?: boolean }) => {
      const signature = await client.sendTransaction(harness.tip(20_000, tipAccount), {
        ...longRetries,
        ...options,
      });
      const { events } = await client.waitForEnd(signature);
      return new Set(events.flatMap(({ route }) => (route === undefined ? [] : [route])));
    };
    expect(await routesOf({ swqosOnly: true })).toEqual(new Set(["swqos"]));
    expect(await routesOf({ mevProtect: true })).toEqual(new Set(["block-builder"]));
  });

  it("lands a bundle together", async () => {
    const bundle = [harness.tip(20_000, tipAccount), harness.tip(20_000, tipAccount)];
    const { signatures, bundleId } = await client.sendBundle(bundle, {
      ...longRetries,
      revertProtection: true,
    });
    expect(bundleId).toMatch(/^[0-9a-f]{64}$/);
    const ended = await client.waitForEnd(signatures);
    expect(ended.map(({ state, bundleId: of }) => [state, of])).toEqual([
      ["landed", bundleId],
      ["landed", bundleId],
    ]);
    expect(ended[0]?.slot).toBe(ended[1]?.slot);
  });

  it("lands a batch of independent transactions", async () => {
    const signatures = await client.sendBatch(
      [
        harness.tip(20_000, tipAccount),
        Buffer.from(harness.tip(20_000, tipAccount)).toString("base64"),
      ],
      longRetries,
    );
    const ended = await client.waitForEnd(signatures);
    expect(ended.map(({ state }) => state)).toEqual(["landed", "landed"]);
  });

  it("lands one of a pair with the key's own nonce", async () => {
    const nonce = await client.getNonce(undefined, { retries: 20 });
    expect(nonce.nonce).toBe(harness.nonceValue(nonce.nonceAccount));
    expect(await client.getNonce(nonce.nonceAccount)).toEqual(nonce);
    const signatures = await client.sendIdeal(
      [harness.ofNonce(nonce, 1_000_000, tipAccount), harness.ofNonce(nonce, 100, tipAccount)],
      longRetries,
    );
    const ended = await client.waitForEnd(signatures);
    expect(ended.map(({ state }) => state).toSorted()).toEqual(["landed", "superseded"]);
    const dead = ended.find(({ state }) => state === "superseded");
    expect(dead?.events.at(-1)?.sibling).toBe(signatures.find((one) => one !== dead?.signature));
  });

  it("uses alternative partners, or the fallback", async () => {
    const fees = [
      ComputeBudgetProgram.setComputeUnitLimit({ units: 1_000 }),
      ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 10_000_000 }),
    ];
    const options = { ...longRetries, enableFallback: true, revertProtection: false };
    const cheap = client.sendAlt(harness.tip(100_000, tipAccount), options);
    expect(await reasonOf(cheap)).toBe("priority_fee_too_low");
    const signature = await client.sendAlt(harness.tip(100_000, tipAccount, ...fees), options);
    expect(await client.waitForEnd(signature)).toMatchObject({
      state: "landed",
      method: "sendAlt",
    });
  });

  it("rejects with the service's reason", async () => {
    expect(await reasonOf(client.sendTransaction(harness.tip(1, tipAccount)))).toBe("tip_too_low");
    expect(await reasonOf(client.sendTransaction("AAAA"))).toBe("transaction_invalid");
    const one = harness.tip(20_000, tipAccount);
    expect(await reasonOf(client.sendBundle([one, one]))).toBe("bundle_invalid");
    expect(await reasonOf(client.sendIdeal([one, one]))).toBe("pair_invalid");
    const batch: unknown = await client.sendBatch([one, one]).catch((error: unknown) => error);
    expect(batch).toMatchObject({ message: "contains duplicate signature", code: -32_600 });
    expect(await reasonOf(client.getTransactionStatus("no signature"))).toBe("value_invalid");
    expect(await reasonOf(client.getNonce("no nonce"))).toBe("value_invalid");
    expect(await reasonOf(client.getTipAccounts("atlantis"))).toBe("value_invalid");
  });
});

describe.concurrent("tips, regions, partners", () => {
  it("returns the tip addresses", async () => {
    const [region] = await client.getRegions();
    expect(region).toMatchObject({ name: "frankfurt", isThis: true });
    expect(new Set(await client.getTipAccounts("frankfurt"))).toEqual(
      new Set(region?.tipAddresses),
    );
    // The first question starts the observation.
    await expect(client.getTipAccounts(undefined, { orderBy: "contention" })).rejects.toMatchObject(
      {
        reason: "contention_unknown",
        retryAfterSeconds: 10,
      },
    );
    const shredTips = await client.getShredTipAccounts();
    expect(new Set(shredTips)).toEqual(new Set(region?.shredTipAddresses));
  });

  it("returns the statistics of landed tips", async () => {
    const snapshot = await client.tipFloor();
    expect(Date.parse(snapshot.time)).toBeGreaterThan(Date.parse(snapshot.windowStart));
    expect(typeof snapshot.p99).toBe("bigint");
    expect(typeof snapshot.count).toBe("bigint");
    const history = await client.tipHistory("7d");
    expect(history).toMatchObject({ period: "7d", resolutionSeconds: 900n });
    expect(history.entries.length).toBeLessThanOrEqual(672);
  });

  it("returns the alternative partners, and the next one", async () => {
    const { chain } = harness.sandbox;
    const partners = chain.validators().filter(({ isAltPartner }) => isAltPartner);
    expect(await client.altValidators()).toEqual(partners.map((one) => one.identity).toSorted());
    const from = chain.currentSlot + 100n;
    const next = await client.nextAltValidator(from);
    expect(next?.leaderSlot).toBeGreaterThanOrEqual(from);
    expect(chain.leaderOf(next?.leaderSlot ?? 0n)).toBe(next?.pubkey);
    expect(await client.nextAltValidator(2n ** 64n - 1n)).toBe(null);
  });

  it("reports health", async () => {
    expect(await client.getHealth()).toBe("ok");
  });
});

describe("tips for shreds", () => {
  it("registers a tip, which counts and raises the tier", async () => {
    expect(await client.getTier()).toMatchObject({
      tier: null,
      sumLamports: 0n,
      windowHours: 24,
      grace: null,
    });
    const [shredTip = ""] = await client.getShredTipAccounts();
    const wire = harness.tip(200_000_000, shredTip);
    const slot = harness.sandbox.chain.currentSlot;
    harness.sandbox.chain.send(wire);
    const entries = [
      { transaction: wire, slot },
      { transaction: "AAAA", slot: 5 },
    ];
    const tried = await client.registerTips(entries, { dryRun: true });
    expect(tried.rejected).toMatchObject([{ index: 1, reason: "transaction_invalid" }]);
    const { accepted, rejected } = await client.registerTips(entries);
    expect([accepted, rejected]).toEqual([tried.accepted, tried.rejected]);
    expect((await client.registerTips(entries.slice(0, 1))).rejected).toMatchObject([
      { index: 0, reason: "registered_before" },
    ]);
    while ((await client.getRegistrations())[0]?.state !== "counted") {
      await new Promise((done) => setTimeout(done, 20));
    }
    const [registration] = await client.getRegistrations({ limit: 1 });
    expect(registration).toMatchObject({ signature: accepted[0], slot, reason: null });
    const lamports = registration?.lamports ?? 0n;
    expect(registration?.countedLamports).toBe(lamports);
    const older = { beforeMs: registration?.registeredMs ?? 0 };
    expect(await client.getRegistrations(older)).toEqual([]);
    const tier = await client.getTier();
    expect(tier).toMatchObject({ tier: "tier-1", sumLamports: lamports });
    expect(tier.thresholds.map(({ missingLamports }) => missingLamports)).toEqual([
      0n,
      500_000_000n - lamports,
    ]);
    const [event] = await client.getTierHistory({ limit: 5 });
    expect(event).toMatchObject({
      kind: "upgraded",
      from: null,
      to: "tier-1",
      sumLamports: lamports,
    });
    expect(await client.getTierHistory({ before: event?.number ?? 0n })).toEqual([]);
  });

  it("adds a destination, verifies it by a call and removes it", async () => {
    const socket = createSocket("udp4");
    const challenges: Buffer[] = [];
    socket.on("message", (datagram) => challenges.push(datagram));
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    const address = `127.0.0.1:${socket.address().port}`;
    const added = await client.addDestination({ region: "frankfurt", address });
    expect(added).toMatchObject({
      address,
      region: "frankfurt",
      state: "unproved",
      provedAt: null,
    });
    await until(
      () => challenges.some((each) => each.toString("latin1", 0, 8) === "SWPROOF1"),
      "one",
    );
    const token = challenges.find((each) => each.length === 52)?.toString("hex", 8, 24) ?? "";
    expect(await reasonOf(client.proveDestination(added.id, "0".repeat(32)))).toBe("proof_refused");
    const proved = await client.proveDestination(added.id, token);
    expect(proved).toMatchObject({ id: added.id, state: "active", provedBy: "call" });
    expect(await client.getDestinations()).toEqual([proved]);
    const updated = await client.updateDestination(added.id, { recovered: true });
    expect(updated).toEqual({ ...proved, recovered: true });
    expect(await client.challengeDestination(added.id)).toMatchObject({ id: added.id });
    await client.removeDestination(added.id);
    expect(await client.getDestinations()).toEqual([]);
    expect(await reasonOf(client.removeDestination(added.id))).toBe("destination_unknown");
    const nowhere = client.addDestination({ region: "frankfurt", address: "127.0.0.1:22" });
    expect(await reasonOf(nowhere)).toBe("address_invalid");
    socket.close();
  });

  it("registers a public key with a signature, lists it and removes it", async () => {
    const pair = new KeyPair(randomBytes(32));
    const { account, publicKeys } = await client.getPublicKeys();
    expect(publicKeys).toEqual([]);
    const expiresAt = new Date(Date.now() + 600_000).toISOString();
    const statement = { publicKey: pair.address, purpose: "shredstream", expiresAt } as const;
    const sign = (purpose: "shredstream" | "tpu") =>
      pair.sign(publicKeyProofMessage({ account, ...statement, purpose }));
    const forOther = client.registerPublicKey({ ...statement, signature: sign("tpu") });
    expect(await reasonOf(forOther)).toBe("signature_invalid");
    const registration = { ...statement, signature: sign("shredstream") };
    const registered = await client.registerPublicKey(registration);
    expect(registered).toMatchObject({
      publicKey: pair.address,
      purpose: "shredstream",
      state: "active",
    });
    expect(await client.registerPublicKey(registration)).toEqual(registered);
    expect(await client.getPublicKeys()).toEqual({ account, publicKeys: [registered] });
    await client.removePublicKey(pair.address);
    expect((await client.getPublicKeys()).publicKeys).toEqual([]);
    expect(await reasonOf(client.removePublicKey(pair.address))).toBe("public_key_unknown");
  });
});
