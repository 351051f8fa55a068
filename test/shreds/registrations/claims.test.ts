// Claims: a registration with a proof of the payer takes a tip over from one without. Two nodes on one
// database, with native checks.

import { sign } from "node:crypto";
import { type Keypair, PublicKey, TransactionInstruction } from "@solana/web3.js";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { privateKeyOf } from "../../../src/core/key-pair.ts";
import { SignatureVerifier } from "../../../src/gateway/transactions/transaction-checks.ts";
import type { SqlDriver } from "../../../src/platform/store/driver.ts";
import { SqlRegistrationStore } from "../../../src/platform/store/tables/registration-store.ts";
import { SqlTierStore } from "../../../src/platform/store/tables/tier-store.ts";
import { decodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import type { LandingSources } from "../../../src/shreds/registrations/landing-confirmation.ts";
import {
  memoOf,
  proofMessageOf,
  referenceKeyOf,
} from "../../../src/shreds/registrations/payer-proof.ts";
import { PendingRegistrations } from "../../../src/shreds/registrations/pending-registrations.ts";
import { TipRegistrar } from "../../../src/shreds/registrations/registrar.ts";
import type { LandedTransaction } from "../../../src/shreds/registrations/registration-types.ts";
import { AccountTiers } from "../../../src/shreds/tiers/account-tiers.ts";
import { TierLeadership } from "../../../src/shreds/tiers/tier-leadership.ts";
import { type Databases, onEachDatabase } from "../../platform/store/databases.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { alice, bob, transferOf } from "../../support/transactions/chain.ts";
import {
  codec,
  entry,
  shredAddresses,
  shredInspector,
  shredWallet,
  signatureOf,
  signed,
  silent,
  tip,
} from "./harness.ts";

const hourMs = 3_600_000;
/** Short, because the timers of all nodes run through it. */
const windowMs = 600_000;
const rules = {
  tiers: [
    { name: "tier-1", thresholdLamports: 200n },
    { name: "tier-2", thresholdLamports: 500n },
  ],
  windowMs,
  graceMs: windowMs,
};
const owner = "a_owner";
const stranger = "a_stranger";
const problems: ReadonlySet<string> = new Set(["error", "warn"]);

function proofOf(wire: Uint8Array, accountId: string, payer: Keypair = alice): string {
  const text = Buffer.from(proofMessageOf(accountId, signatureOf(wire)));
  return codec.encode(sign(null, text, privateKeyOf(payer.secretKey.slice(0, 32))));
}

function memoTip(text: string): Uint8Array {
  const programId = new PublicKey("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr");
  const memo = new TransactionInstruction({ programId, keys: [], data: Buffer.from(text) });
  return signed([transferOf(alice, shredWallet, 200n), memo]);
}

function referenceTip(accountId: string): Uint8Array {
  const paid = transferOf(alice, shredWallet, 200n);
  const pubkey = new PublicKey(referenceKeyOf(accountId));
  paid.keys.push({ pubkey, isSigner: false, isWritable: false });
  return signed([paid]);
}

/** Answers of a node whose transactions land on demand. */
class Chain {
  readonly landed = new Map<string, LandedTransaction>();
  readonly sources: LandingSources = {
    landed: {
      landingStates: async (signatures) => ({
        slot: 1n,
        states: signatures.map((each) => (this.landed.has(each) ? "landed" : "absent")),
      }),
      landedTransaction: async (signature) => this.landed.get(signature) ?? null,
    },
    outcomes: {
      blockhashState: async () => ({ isValid: true, slot: 1n }),
      nonceValue: async () => null,
    },
    observations: null,
    decode: decodeBase58,
    addresses: () => shredAddresses,
  };
}

class Node {
  readonly errors: string[] = [];
  readonly tiers: AccountTiers;
  readonly leadership: TierLeadership;
  readonly registrations: SqlRegistrationStore;
  readonly pending: PendingRegistrations;
  readonly driver: SqlDriver;
  readonly #registrar: TipRegistrar;

  constructor(driver: SqlDriver, clock: ManualClock, sources: LandingSources | null) {
    this.driver = driver;
    const log = new Proxy(silent, {
      get: (target, name, self) =>
        problems.has(String(name))
          ? (...words: unknown[]) => this.errors.push(words.join(" "))
          : Reflect.get(target, name, self),
    });
    const store = new SqlTierStore(driver);
    this.registrations = new SqlRegistrationStore(driver, codec);
    const { registrations } = this;
    this.pending = new PendingRegistrations({ clock, log, store: registrations, sources });
    this.tiers = new AccountTiers({ rules, store, clock, log });
    this.leadership = new TierLeadership({
      store,
      locks: driver,
      tiers: this.tiers,
      registrations: this.pending,
      clock,
      log,
      random: () => 0.5,
    });
    const inspector = shredInspector();
    this.#registrar = new TipRegistrar({
      log,
      reader: { inspect: (wire) => inspector.inspect(wire), decode: decodeBase58 },
      verifier: closing(SignatureVerifier.open({ threads: 1, queueMax: 100 })),
      store: registrations,
      tiers: this.tiers,
      pending: this.pending,
      present: () => ({ slot: null, slotNs: null }),
      addresses: () => shredAddresses,
    });
  }

  async register(
    accountId: string,
    wire: Uint8Array,
    proof: string | null = null,
    isDryRun = false,
  ): Promise<string> {
    const given = { ...entry(wire), ...(proof !== null && { proof }) };
    const [result] = await this.#registrar.register(accountId, [given], isDryRun);
    if (!result) throw new Error("expected a result");
    return result.accepted ? result.state : result.reason;
  }

  /** Sum and tier of the owner, then of the stranger. */
  get views(): unknown[] {
    return [owner, stranger].map((accountId) => {
      const { sumLamports, tier, graceSinceMs } = this.tiers.view(accountId);
      return graceSinceMs === null ? [sumLamports, tier] : [sumLamports, tier, "in grace"];
    });
  }
}

class Harness {
  readonly clock = new ManualClock();
  readonly #databases: Databases;
  readonly #location: string;
  readonly #sources: LandingSources | null;
  readonly #nodes = new Set<Node>();

  constructor(databases: Databases, sources: LandingSources | null) {
    this.#databases = databases;
    this.#location = databases.location();
    this.#sources = sources;
  }

  async start(): Promise<Node> {
    const driver = await this.#databases.migrated(this.#location);
    const node = new Node(driver, this.clock, this.#sources);
    await node.leadership.start();
    this.#nodes.add(node);
    return node;
  }

  /** A second node on PostgreSQL, the same on SQLite, which several processes cannot share. */
  startFollower(leader: Node): Promise<Node> {
    return this.#databases.blobType === "blob" ? Promise.resolve(leader) : this.start();
  }

  /** The process ends without a last checkpoint. */
  async kill(node: Node): Promise<void> {
    this.#nodes.delete(node);
    await node.driver.close();
  }

  async until(read: () => unknown, wanted: unknown): Promise<void> {
    const text = (value: unknown) =>
      JSON.stringify(value, (_, one) => (typeof one === "bigint" ? Number(one) : one));
    const endNs = this.clock.monotonicNs() + 120_000_000_000n;
    while (text(await read()) !== text(wanted)) {
      await this.clock.advance(50);
      await systemClock.sleep(1);
      if (this.clock.monotonicNs() > endNs) throw new Error(`got ${text(await read())}`);
    }
  }

  async close(): Promise<void> {
    for (const node of this.#nodes) {
      await node.leadership.close();
      await node.pending.close();
    }
  }
}

const taken = [
  [200n, "tier-1"],
  [0n, null],
];
const stolen = [
  [0n, null],
  [200n, "tier-1"],
];

onEachDatabase((databases) => {
  let harness: Harness | undefined;
  const open = (sources: LandingSources | null = null): Harness => {
    harness = new Harness(databases, sources);
    return harness;
  };
  afterEach(() => harness?.close());

  describe("a tip that a stranger registered", () => {
    it("goes to the payer's account by a signature; both tiers follow, on every node", async () => {
      const run = open();
      const leader = await run.start();
      const follower = await run.startFollower(leader);
      const wire = tip(200n);
      expect(await leader.register(stranger, wire)).toBe("counted");
      await run.until(() => follower.views, stolen);
      expect(await leader.register(owner, wire)).toBe("registered_before");
      expect(await leader.register(owner, wire, proofOf(wire, owner), true)).toBe("counted");
      expect(await leader.register(owner, wire, proofOf(wire, owner))).toBe("pending");
      for (const node of [leader, follower]) await run.until(() => node.views, taken);
      const [lost] = await leader.registrations.ofAccount(stranger, null, 9);
      expect(lost).toMatchObject({ state: "dropped", reason: "claimed", countedLamports: null });
      const [won] = await leader.registrations.ofAccount(owner, null, 9);
      expect(won).toMatchObject({ state: "counted", proof: "signature", countedLamports: 200n });
      expect(won?.registeredMs).toBe(lost?.registeredMs);
      const trail = await leader.tiers.history(stranger, null, 9);
      expect(trail.map(({ kind, from, to }) => [kind, from, to])).toEqual([
        ["tip_claimed", "tier-1", null],
        ["upgraded", null, "tier-1"],
      ]);
      // The tip leaves one sum only, at the end of the stranger's window.
      await run.clock.advance(windowMs);
      await run.until(
        () => leader.views,
        [
          [0n, "tier-1", "in grace"],
          [0n, null],
        ],
      );
      expect(leader.errors).toEqual([]);
    });

    it("goes to the payer's account at a follower, and a kill of the leader in between changes nothing", async () => {
      const run = open();
      const leader = await run.start();
      const follower = await run.startFollower(leader);
      const wire = tip(200n);
      await follower.register(stranger, wire);
      await run.until(() => leader.views, stolen);
      await run.until(() => follower.views, stolen);
      expect(await follower.register(owner, wire, proofOf(wire, owner))).toBe("pending");
      await run.kill(leader); // before or after it counted the claim
      if (follower !== leader) await run.kill(follower);
      const next = await run.start();
      await run.until(() => next.views, taken);
      await run.clock.advance(windowMs);
      await run.until(
        () => next.views,
        [
          [0n, "tier-1", "in grace"],
          [0n, null],
        ],
      );
      expect(next.errors).toEqual([]);
    });

    it("counts for the payer's account alone if the leader is killed before any checkpoint", async () => {
      const run = open();
      const leader = await run.start();
      const wire = tip(200n);
      await leader.register(stranger, wire);
      await leader.register(owner, wire, proofOf(wire, owner));
      // Without the clock no checkpoint is written; the claim is durable, counted or not.
      await run.kill(leader);
      const next = await run.start();
      await run.until(() => next.views, taken);
      expect(next.errors).toEqual([]);
    });

    it("goes to the payer's account while its landing is unknown, and counts once", async () => {
      const chain = new Chain();
      const run = open(chain.sources);
      const leader = await run.start();
      const follower = await run.startFollower(leader);
      const wires = [tip(200n, 1n), tip(200n, 2n)];
      for (const wire of wires) expect(await leader.register(stranger, wire)).toBe("pending");
      for (const [i, node] of [leader, follower].entries()) {
        const wire = wires[i] ?? tip();
        expect(await node.register(owner, wire, proofOf(wire, owner))).toBe("pending");
        chain.landed.set(signatureOf(wire), { slot: 1_000_000n, err: null, gainLamports: 200n });
      }
      for (const node of [leader, follower]) {
        await run.until(
          () => node.views,
          [
            [400n, "tier-1"],
            [0n, null],
          ],
        );
        await run.until(() => node.pending.counts.places, 0);
      }
      expect(await leader.registrations.ofAccount(stranger, null, 9)).toMatchObject([
        { state: "dropped", reason: "claimed" },
        { state: "dropped", reason: "claimed" },
      ]);
      expect(leader.errors).toEqual([]);
    });

    it("stays until the payer claims it, at most until it left the sum", async () => {
      const run = open();
      const node = await run.start();
      const wire = tip(200n);
      await node.register(stranger, wire);
      await run.clock.advance(24 * hourMs);
      expect(await node.register(owner, wire, proofOf(wire, owner))).toBe("registered_before");
    });
  });

  it("refuses a forged proof, one for another account or tip, and a second one", async () => {
    const node = await open().start();
    const wire = tip(200n);
    expect(await node.register(owner, wire)).toBe("counted");
    const proofs = [
      proofOf(wire, stranger, bob), // of somebody else
      proofOf(wire, owner), // replayed by another account
      proofOf(tip(200n, 2n), stranger), // of another tip
      codec.encode(new Uint8Array(64)),
      codec.encode(new Uint8Array(63).fill(1)),
      "x".repeat(91),
      "",
    ];
    for (const proof of proofs) {
      expect(await node.register(stranger, wire, proof)).toBe("proof_invalid");
      expect(await node.register(stranger, wire, proof, true)).toBe("proof_invalid");
    }
    const inBase64 = Buffer.from(decodeBase58(proofOf(wire, owner)) ?? []).toString("base64");
    expect(await node.register(owner, wire, inBase64)).toBe("proved");
    expect(await node.register(owner, wire, inBase64)).toBe("registered_before");
    // The payer's first proof is final.
    expect(await node.register(stranger, wire, proofOf(wire, stranger))).toBe("registered_before");
    const again = await node.register(stranger, wire, proofOf(wire, stranger), true);
    expect(again).toBe("registered_before");
    expect(node.views).toEqual(taken);
  });

  it("takes a memo and a reference key as proofs, and refuses a memo of another account", async () => {
    const run = open();
    const node = await run.start();
    const reference = referenceTip(owner);
    expect(await node.register(stranger, reference)).toBe("counted");
    expect(await node.register(owner, reference)).toBe("pending");
    await run.until(() => node.views, taken);
    const memo = memoTip(`order 7\n${memoOf(owner)} thanks`);
    expect(await node.register(stranger, memo)).toBe("proof_invalid");
    expect(await node.register(owner, memo)).toBe("counted");
    const own = await node.registrations.ofAccount(owner, null, 9);
    expect(new Set(own.map(({ proof }) => proof))).toEqual(new Set(["memo", "reference"]));
    const longer = memoTip(`${memoOf(owner)}2`);
    expect(await node.register(owner, longer)).toBe("proof_invalid");
    // The payer's signature is as good as the memo.
    expect(await node.register(stranger, longer, proofOf(longer, stranger))).toBe("counted");
  });
});
