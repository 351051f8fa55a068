// The pipeline on the sandbox chain: every end that the real virtual machine can produce.

import { type Keypair, SystemProgram } from "@solana/web3.js";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { NodeBundleCommitments } from "../../../src/gateway/submission/bundle-commitments.ts";
import { Pipeline } from "../../../src/gateway/submission/pipeline.ts";
import { StatusReader } from "../../../src/gateway/submission/status-reader.ts";
import { bundleIdOf } from "../../../src/gateway/submission/tracked-transaction.ts";
import type {
  BundleCommitment,
  OutboundTransaction,
  Route,
  RouteCapabilities,
  TransactionStatus,
} from "../../../src/gateway/submission/types.ts";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { RpcEndpoint } from "../../../src/sandbox/rpc/endpoint.ts";
import { TipStatistics } from "../../../src/tips/tip-statistics.ts";
import type { LandedTipStore } from "../../../src/tips/tip-types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  carol,
  transferOf,
  wallet,
} from "../../support/transactions/chain.ts";
import { factsOf, landingsOf, outcomesOf } from "./chain-adapters.ts";
import { capabilitiesOf, emptySnapshot, ModelStore } from "./model-routes-and-store.ts";

const nonceAccount = wallet(50);
const accountId = "ann";

/** A store that keeps nothing over a restart. */
const noTipStore: LandedTipStore = {
  write: async () => {},
  since: async () => [],
  forgetBefore: async () => {},
  keepSnapshot: async () => {},
  lastSnapshot: async () => null,
  keepQuarter: async () => undefined,
  quarters: async () => [],
};

/** Forwards accepted transactions to the leader's queue, unless it is set to lose them. */
class ChainRoute implements Route {
  readonly capabilities: RouteCapabilities;
  readonly isUp = true;
  readonly lost = new Set<string>();
  readonly attempts = new Map<string, number>();
  readonly #run: ChainRun;
  readonly #clock: ManualClock;

  constructor(capabilities: RouteCapabilities, run: ChainRun, clock: ManualClock) {
    this.capabilities = capabilities;
    this.#run = run;
    this.#clock = clock;
  }

  offer(outbound: OutboundTransaction): boolean {
    const { transactions, mode, attempt } = outbound;
    const [first] = transactions;
    this.attempts.set(first?.signature ?? "", attempt);
    this.#clock.after(3, () => {
      const atNs = this.#clock.nowNs();
      outbound.report({ kind: "sent", atNs, bytes: 1 });
      if (this.lost.has(first?.signature ?? "")) return;
      try {
        const wires = transactions.map(({ wire }) => wire);
        if (mode === "bundle") this.#run.chain.sendBundle(wires);
        else if (first) this.#run.chain.send(first.wire);
        outbound.report({ kind: "acknowledged", atNs });
      } catch {
        outbound.report({ kind: "refused", atNs, reason: "chain", isFinal: false });
      }
    });
    return true;
  }

  snapshot() {
    return emptySnapshot(this.capabilities);
  }

  async close(): Promise<void> {}
}

class ChainHarness {
  readonly clock: ManualClock;
  readonly run: ChainRun;
  readonly route: ChainRoute;
  readonly tips: TipStatistics;
  readonly #store: ModelStore;
  pipeline: Pipeline;

  constructor(run: ChainRun, clock: ManualClock, tips: TipStatistics) {
    this.run = run;
    this.clock = clock;
    this.tips = tips;
    this.route = new ChainRoute(
      capabilitiesOf({ kind: "block-builder", modes: ["transaction", "bundle"] }),
      run,
      this.clock,
    );
    this.clock.every(50, () => run.pass(50_000_000n));
    this.#store = new ModelStore(this.clock, new SeededRandom(1));
    this.#store.failShare = 0;
    this.pipeline = this.#makePipeline();
  }

  #makePipeline(): Pipeline {
    const { run } = this;
    return new Pipeline({
      clock: this.clock,
      log: { warn: () => {} },
      routes: () => [this.route],
      policy: () => ({
        denyLeaders: new Set(),
        minimumTipLamports: 0n,
        partners: new Set<string>(),
        partnerUnitLamports: 10n,
      }),
      store: this.#store.of(() => true),
      landings: landingsOf(run, this.clock),
      outcomes: outcomesOf(run),
      leaders: () => ({ slot: run.chain.currentSlot, current: null, next: null }),
      slotNs: () => run.slotNs,
      inspect: (wire) => factsOf(wire),
      landedTips: this.tips,
    });
  }

  /** Restarts the process on the same disk. */
  async restart(): Promise<void> {
    this.pipeline.close();
    await this.clock.advance(1_000);
    this.pipeline = this.#makePipeline();
    await this.pipeline.restore();
  }

  static async open(clock = new ManualClock()): Promise<ChainHarness> {
    const log = { warn: () => {} };
    const tips = await TipStatistics.open({ clock, log, store: noTipStore });
    const run = await ChainRun.open({ intervalsPerSlot: 4, confirmedDepth: 6 });
    return new ChainHarness(run, clock, tips);
  }

  async submit(...transactions: TransactionFacts[]): Promise<string[]> {
    const submitted = this.pipeline.submit({
      accountId,
      method: transactions.length > 1 ? "sendBundle" : "sendTransaction",
      transactions,
      isBundle: transactions.length > 1,
      options: { swqosOnly: false, mevProtect: false, revertProtection: false, resendsMax: null },
      receivedNs: this.clock.nowNs(),
    });
    await this.clock.advance(100);
    await submitted;
    return transactions.map(({ signature }) => signature);
  }

  async status(signature: string | undefined): Promise<TransactionStatus | null> {
    const [status] = await this.pipeline.statuses(accountId, [signature ?? ""]);
    return status ?? null;
  }

  kinds(status: TransactionStatus | null): string[] {
    return [...new Set(status?.events.map(({ kind }) => kind))];
  }

  async createNonce(): Promise<void> {
    const rent = this.run.chain.minimumBalanceForRentExemption(80);
    const keys = { noncePubkey: nonceAccount.publicKey, authorizedPubkey: alice.publicKey };
    const create = SystemProgram.createNonceAccount({
      fromPubkey: alice.publicKey,
      ...keys,
      lamports: Number(rent),
    });
    this.run.chain.send(this.run.legacy(create.instructions, [alice, nonceAccount]));
    await this.clock.advance(2_000);
  }

  withNonce(to: Keypair): TransactionFacts {
    const data = this.run.chain.account(addressOf(nonceAccount))?.data.slice(40, 72);
    const advance = SystemProgram.nonceAdvance({
      noncePubkey: nonceAccount.publicKey,
      authorizedPubkey: alice.publicKey,
    });
    const value = encodeBase58(data ?? new Uint8Array(32));
    const wire = this.run.legacy([advance, transferOf(alice, to, 5n)], [alice], value);
    const account = nonceAccount.publicKey.toBytes();
    return factsOf(wire, { account, authority: alice.publicKey.toBytes() });
  }
}

describe("submissions on the sandbox chain", () => {
  let harness: ChainHarness;
  beforeAll(async () => {
    harness = await ChainHarness.open();
    await harness.clock.advance(1_000);
  });

  it("land: a transfer", async () => {
    const [signature] = await harness.submit(factsOf(harness.run.transfer(alice, bob, 5n)));
    await harness.clock.advance(6_000);
    const status = await harness.status(signature);
    expect(status).toMatchObject({ state: "landed", reason: "confirmed", err: null });
    expect(status?.slot).toBe(harness.run.chain.status(signature ?? "")?.slot);
    expect(harness.kinds(status)).toEqual([
      "received",
      "queued",
      "sent",
      "acknowledged",
      "seen",
      "landed",
    ]);
  });

  it("a transfer above the balance lands as failed, with the chain's error", async () => {
    const wire = harness.run.transfer(carol, bob, 10n ** 15n);
    const [signature] = await harness.submit(factsOf(wire));
    await harness.clock.advance(6_000);
    const status = await harness.status(signature);
    expect(status).toMatchObject({
      state: "landed_failed",
      err: { InstructionError: [0, { Custom: 1 }] },
    });
  });

  it("land: a whole bundle", async () => {
    const signatures = await harness.submit(
      factsOf(harness.run.transfer(alice, bob, 6n)),
      factsOf(harness.run.transfer(bob, carol, 7n)),
    );
    await harness.clock.advance(6_000);
    const states = await Promise.all(signatures.map((signature) => harness.status(signature)));
    expect(states.map((status) => status?.state)).toEqual(["landed", "landed"]);
    const bundleId = states[0]?.bundleId ?? "";
    const [bundle] = await harness.pipeline.bundles(accountId, [bundleId]);
    expect(bundle?.transactions.map(({ signature }) => signature)).toEqual(signatures);
  });

  it("a transaction in an abandoned fork is sent again and lands", async () => {
    const { clock, run, route } = harness;
    const facts = factsOf(run.transfer(alice, bob, 8n));
    await harness.submit(facts);
    while (!run.chain.status(facts.signature)) await clock.advance(50);
    run.chain.faults.forkNext(3);
    run.chain.faults.refuses = (signature) => signature === facts.signature;
    while (run.chain.status(facts.signature)) await clock.advance(50);
    run.chain.faults.refuses = null;
    expect((await harness.status(facts.signature))?.state).toBe("open");
    const attempts = route.attempts.get(facts.signature) ?? 0;
    await clock.advance(15_000);
    const status = await harness.status(facts.signature);
    expect(route.attempts.get(facts.signature)).toBeGreaterThan(attempts);
    expect(status?.state).toBe("landed");
    expect(status?.slot).toBe(run.chain.status(facts.signature)?.slot);
  });

  it.each(["executed_again", "lost"] as const)(
    "a transaction in a block that begins again lands (%s)",
    async (outcome) => {
      const { clock, run, route } = harness;
      const facts = factsOf(run.transfer(alice, bob, 8n));
      const turns: bigint[] = [];
      const abandoned: string[] = [];
      run.chain.subscribe((event) => {
        if (event.kind === "slot" && event.slot % 4n === 0n) turns.push(event.slot);
        if (event.kind === "restarted")
          abandoned.push(...event.transactions.map(({ signature }) => signature));
      });
      while (turns.length === 0) await clock.advance(10);
      run.chain.faults.restartNext(outcome);
      await harness.submit(facts);
      while (abandoned.length === 0) await clock.advance(10);
      expect(abandoned).toContain(facts.signature);
      await clock.advance(15_000);
      const status = await harness.status(facts.signature);
      expect(status?.state).toBe("landed");
      expect(status?.slot).toBe(run.chain.status(facts.signature)?.slot);
      const kinds = status?.events.map(({ kind }) => kind) ?? [];
      expect(kinds).toContain("withdrawn");
      expect(kinds.indexOf("withdrawn")).toBeGreaterThan(kinds.indexOf("seen"));
      expect(kinds.lastIndexOf("seen")).toBeGreaterThan(kinds.indexOf("withdrawn"));
      // Without another attempt only the leader's own repetition lands.
      const attemptsMin = outcome === "lost" ? 2 : 1;
      expect(route.attempts.get(facts.signature)).toBeGreaterThanOrEqual(attemptsMin);
    },
  );

  it("a lost transaction expires exactly when its blockhash does", async () => {
    const { clock, run, route } = harness;
    const facts = factsOf(run.transfer(alice, bob, 9n));
    route.lost.add(facts.signature);
    await harness.submit(facts);
    const blockhash = encodeBase58(facts.lifetime);
    while (run.chain.isBlockhashValid(blockhash)) await clock.advance(1_000);
    expect((await harness.status(facts.signature))?.state).toBe("open");
    await clock.advance(20_000);
    expect(await harness.status(facts.signature)).toMatchObject({
      state: "expired",
      reason: "blockhash_expired",
    });
    expect(route.attempts.get(facts.signature)).toBeGreaterThan(20);
  });

  it("of two with one nonce value, one lands and supersedes the other", async () => {
    await harness.createNonce();
    const pair = [harness.withNonce(bob), harness.withNonce(carol)];
    for (const facts of pair) await harness.submit(facts);
    await harness.clock.advance(20_000);
    const states = await Promise.all(pair.map(({ signature }) => harness.status(signature)));
    const landed = states.find((status) => status?.state === "landed");
    const other = states.find((status) => status !== landed);
    expect(other).toMatchObject({ state: "superseded", reason: "sibling_landed" });
    expect(other?.events.at(-1)).toMatchObject({ sibling: landed?.signature });
    expect(harness.pipeline.snapshot().open).toBe(0);
  });
});

describe("tips on the sandbox chain", () => {
  /** Observed in a block; the node has not reported its result yet. */
  async function seen(
    { clock, run }: ChainHarness,
    { signature }: TransactionFacts,
  ): Promise<void> {
    while (!run.chain.status(signature)) await clock.advance(50);
  }

  it("of landed transactions are in the snapshot, of failed or forked ones not", async () => {
    const quarterNs = 1_767_226_500_000_000_000n;
    const harness = await ChainHarness.open(new ManualClock(quarterNs - 40_000_000_000n));
    const { clock, run, tips } = harness;
    await clock.advance(1_000);
    const tipping = (wire: Uint8Array, tipLamports: bigint) => ({ ...factsOf(wire), tipLamports });
    const landed = [
      tipping(run.transfer(alice, bob, 5n), 11_000n),
      tipping(run.transfer(alice, bob, 6n), 22_000n),
    ];
    const failed = tipping(run.transfer(carol, bob, 10n ** 15n), 33_000n);
    for (const facts of [...landed, failed]) await harness.submit(facts);
    await seen(harness, failed);
    expect(tips.size).toBe(3);
    await clock.advance(6_000);
    expect((await harness.status(failed.signature))?.state).toBe("landed_failed");
    expect(tips.size).toBe(2);

    const forked = tipping(run.transfer(alice, bob, 7n), 44_000n);
    await harness.submit(forked);
    await seen(harness, forked);
    expect(tips.size).toBe(3);
    run.chain.faults.forkNext(3);
    run.chain.faults.refuses = (signature) => signature === forked.signature;
    await clock.advance(10_000);
    expect(tips.size).toBe(2);

    expect(tips.snapshot.count).toBe(2); // the early one
    await clock.advance(Number(quarterNs - clock.nowNs()) / 1e6);
    expect(tips.snapshot).toMatchObject({
      count: 2,
      percentiles: { p25: 11_000n, p50: 11_000n, p75: 22_000n, p99: 22_000n },
      isStale: false,
    });
  });
});

describe("a bundle on the sandbox chain", () => {
  let harness: ChainHarness;
  let node: RpcClient;
  let bundleId: string;
  let signatures: string[];

  beforeEach(async () => {
    harness = await ChainHarness.open();
    await harness.clock.advance(1_000);
    const { chain } = harness.run;
    const endpoint = await RpcEndpoint.open(chain, systemClock, { listen: "127.0.0.1:0" });
    node = new RpcClient(`http://${closing(endpoint).address}`);
    const [first, second] = [
      harness.run.transfer(alice, bob, 16n),
      harness.run.transfer(bob, carol, 17n),
    ];
    signatures = await harness.submit(factsOf(first), factsOf(second));
    bundleId = bundleIdOf(signatures);
  });

  /** The status from a new process, with nothing in memory. */
  async function commitmentOf(): Promise<BundleCommitment | null | undefined> {
    const log = { warn: (text: string) => expect.fail(text) };
    const reader = new StatusReader({ clock: systemClock, node, log });
    const commitments = new NodeBundleCommitments({ clock: harness.clock, reader });
    const [bundle] = await harness.pipeline.bundles(accountId, [bundleId]);
    return bundle && commitments.of(bundle);
  }

  const actual = () => harness.run.chain.status(signatures[1] ?? "");

  it("is processed, confirmed, then finalized, also after a restart", async () => {
    const seen: unknown[] = [];
    for (const commitment of ["processed", "confirmed", "finalized"]) {
      while (actual()?.confirmationStatus !== commitment) await harness.clock.advance(50);
      seen.push(await commitmentOf());
      await harness.clock.advance(1_000);
      expect(await commitmentOf()).toEqual(seen.at(-1));
    }
    const slot = actual()?.slot;
    expect(seen).toEqual([
      { slot, commitment: "processed" },
      { slot, commitment: "confirmed" },
      { slot, commitment: "finalized" },
    ]);
    expect(await harness.status(signatures[0])).toMatchObject({ reason: "confirmed", slot });
    await harness.restart();
    expect(harness.pipeline.snapshot().ended).toBe(0);
    expect(await commitmentOf()).toEqual({ slot, commitment: "finalized" });
    await harness.clock.advance(301 * 400);
    expect(await node.signatureStatuses(signatures)).toEqual([null, null]);
    expect(await commitmentOf()).toEqual({ slot, commitment: "finalized" });
  });

  it("has no status after its fork was abandoned", async () => {
    const { clock, run } = harness;
    while (!actual()) await clock.advance(50);
    expect(await commitmentOf()).toMatchObject({ commitment: "processed" });
    run.chain.faults.forkNext(3);
    run.chain.faults.refuses = (signature) => signatures.includes(signature);
    while (actual()) await clock.advance(50);
    expect(await commitmentOf()).toBeNull();
    run.chain.faults.refuses = null;
    while (actual()?.confirmationStatus !== "finalized") await clock.advance(1_000);
    expect(await commitmentOf()).toEqual({ slot: actual()?.slot, commitment: "finalized" });
  });
});
