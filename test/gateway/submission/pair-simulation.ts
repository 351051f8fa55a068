// Simulated environment for pairs: a pipeline in front of the sandbox chain.
//
// Used by pair-chain.test.ts. Routes lose, delay, duplicate or refuse transactions, or deliver only
// one of two. At the end `violations` compares the statuses with the chain.

import { type Keypair, SystemProgram } from "@solana/web3.js";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { isEnd } from "../../../src/gateway/submission/lifecycle.ts";
import { Pipeline } from "../../../src/gateway/submission/pipeline.ts";
import type {
  OutboundTransaction,
  Route,
  RouteCapabilities,
  SubmitRequest,
  TransactionStatus,
} from "../../../src/gateway/submission/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  transferOf,
  wallet,
} from "../../support/transactions/chain.ts";
import { factsOf, landingsOf, nonceValueOf, outcomesOf } from "./chain-adapters.ts";
import { capabilitiesOf, emptySnapshot, ModelStore } from "./model-routes-and-store.ts";

const accountId = "ann";
export const tooMuch = 10n ** 15n;
const limits = { resendMs: 1_000, resendForMs: 25_000, ageMaxMs: 40_000, settleMs: 3_000 };

type Delivery = "deliver" | "twice" | "late" | "drop" | "refuse" | "full";
const routesUsed: readonly Delivery[] = ["deliver", "twice", "late", "drop", "refuse", "full"];

/**
 * The transactions that a route delivers; "none" applies to the end, the others until all faults
 * end.
 */
export type Bias = "any" | "first" | "second" | "none";

export interface Pair {
  readonly facts: readonly [TransactionFacts, TransactionFacts];
  readonly nonceAccount: string;
  readonly bias: Bias;
  /** Another transaction advances the nonce in the meantime. */
  readonly hasForeignTransaction: boolean;
}

class PairRoute implements Route {
  readonly capabilities: RouteCapabilities;
  readonly isUp = true;
  readonly #simulation: PairSimulation;

  constructor(some: Partial<RouteCapabilities>, simulation: PairSimulation) {
    this.capabilities = capabilitiesOf(some);
    this.#simulation = simulation;
  }

  offer(outbound: OutboundTransaction): boolean {
    const { random, clock } = this.#simulation;
    const way = this.#simulation.deliveryOf(outbound);
    if (way === "full") return false;
    const delayMs = way === "late" ? 500 + random.below(4_000) : random.below(60);
    clock.after(delayMs, () => this.#leave(outbound, way));
    return true;
  }

  snapshot() {
    return emptySnapshot(this.capabilities);
  }

  async close(): Promise<void> {}

  #leave(outbound: OutboundTransaction, way: Delivery): void {
    const { random, clock } = this.#simulation;
    const atNs = clock.nowNs();
    outbound.report({ kind: "sent", atNs, bytes: 1 });
    if (way === "refuse") {
      outbound.report({ kind: "refused", atNs, reason: "busy", isFinal: false });
      return;
    }
    if (way !== "drop") this.#deliver(outbound);
    if (way === "twice") clock.after(random.below(1_500), () => this.#deliver(outbound));
    if (random.happens(0.7)) outbound.report({ kind: "acknowledged", atNs });
    else if (random.happens(0.5)) outbound.report({ kind: "failed", atNs, reason: "time_out" });
  }

  #deliver({ mode, transactions }: OutboundTransaction): void {
    const { chain } = this.#simulation.run;
    try {
      if (mode === "bundle") chain.sendBundle(transactions.map(({ wire }) => wire));
      else for (const { wire } of transactions) chain.send(wire);
    } catch {
      // A bundle whose transaction is queued already counts as delivered.
    }
  }
}

export class PairSimulation {
  readonly clock = new ManualClock();
  readonly random: SeededRandom;
  readonly run: ChainRun;
  readonly pipeline: Pipeline;
  readonly pairs: Pair[] = [];
  readonly violations: string[] = [];
  /** Number of reported ends. */
  readonly ends = new Map<string, number>();
  readonly spent: string[] = [];
  readonly #nonces = new Map<string, Keypair>();
  readonly #landed = new Set<string>();
  isCalm = false;

  static async open(seed: number, nonces: number): Promise<PairSimulation> {
    const run = await ChainRun.open({ seed: seed + 1, intervalsPerSlot: 4, confirmedDepth: 6 });
    const simulation = new PairSimulation(run, seed);
    await simulation.#makeNonces(nonces);
    return simulation;
  }

  private constructor(run: ChainRun, seed: number) {
    this.run = run;
    this.random = new SeededRandom(seed);
    this.clock.every(50, () => run.pass(50_000_000n));
    const store = new ModelStore(this.clock, new SeededRandom(seed));
    store.failShare = 0;
    const routes = [
      new PairRoute({ name: "swqos-1" }, this),
      new PairRoute({ name: "swqos-2" }, this),
      new PairRoute({ name: "builder", kind: "block-builder", modes: ["bundle"] }, this),
    ];
    this.pipeline = new Pipeline(
      {
        clock: this.clock,
        log: { warn: () => {} },
        routes: () => routes,
        policy: () => ({
          denyLeaders: new Set(),
          minimumTipLamports: 0n,
          partners: new Set<string>(),
          partnerUnitLamports: 0n,
        }),
        store: store.of(() => true),
        landings: landingsOf(run, this.clock),
        outcomes: outcomesOf(run),
        leaders: () => ({ slot: run.chain.currentSlot, current: null, next: null }),
        slotNs: () => run.slotNs,
        inspect: (wire) => factsOf(wire),
        nonces: { advanced: (account) => void this.spent.push(pubkeyOf(account)) },
      },
      limits,
    );
    this.pipeline.subscribe(accountId, (signature, event) => {
      if (!isEnd(event)) return;
      this.ends.set(signature, (this.ends.get(signature) ?? 0) + 1);
      if (event.kind.startsWith("landed")) this.#landed.add(signature);
    });
  }

  get accounts(): string[] {
    return [...this.#nonces.keys()];
  }

  async #makeNonces(count: number): Promise<void> {
    const { chain } = this.run;
    const rent = Number(chain.minimumBalanceForRentExemption(80));
    for (let i = 0; i < count; i++) {
      const account = wallet(50 + i);
      const { instructions } = SystemProgram.createNonceAccount({
        fromPubkey: alice.publicKey,
        noncePubkey: account.publicKey,
        authorizedPubkey: alice.publicKey,
        lamports: rent,
      });
      chain.send(this.run.legacy(instructions, [alice, account]));
      this.#nonces.set(addressOf(account), account);
    }
    while (this.accounts.some((account) => nonceValueOf(this.run, account) === null)) {
      await this.clock.advance(400);
    }
  }

  #advance(nonceAccount: string) {
    const account = this.#nonces.get(nonceAccount);
    if (!account) throw new Error("expected an account that was made here");
    const noncePubkey = account.publicKey;
    return SystemProgram.nonceAdvance({ noncePubkey, authorizedPubkey: alice.publicKey });
  }

  /**
   * A pair with the present value; two payers, so that the nonce is the only shared writable
   * account.
   */
  facts(nonceAccount: string, payer: Keypair, lamports: bigint): TransactionFacts {
    const instructions = [this.#advance(nonceAccount), transferOf(payer, bob, lamports)];
    const value = nonceValueOf(this.run, nonceAccount) ?? "";
    const signers = payer === alice ? [alice] : [payer, alice];
    const wire = this.run.legacy(instructions, signers, value);
    const account = this.#nonces.get(nonceAccount)?.publicKey.toBytes() ?? new Uint8Array(32);
    return factsOf(wire, { account, authority: alice.publicKey.toBytes() });
  }

  /** Another transaction of the owner with a recent blockhash. */
  advanceOtherwise(nonceAccount: string): void {
    this.run.chain.send(this.run.legacy([this.#advance(nonceAccount)], [alice]));
  }

  request(facts: TransactionFacts): SubmitRequest {
    return {
      accountId,
      method: "sendIdeal",
      transactions: [facts],
      isBundle: false,
      options: { swqosOnly: false, mevProtect: false, revertProtection: false, resendsMax: null },
      receivedNs: this.clock.nowNs(),
    };
  }

  async submit({ facts: [first, second] }: Pair): Promise<boolean> {
    const submitted = this.pipeline.submitPair(this.request(first), this.request(second)).then(
      () => true,
      () => false, // neither was accepted: the caller tries again
    );
    await this.clock.advance(40);
    return submitted;
  }

  deliveryOf({ transactions: [facts] }: OutboundTransaction): Delivery {
    const pair = this.pairs.find((one) => one.facts.some((of) => of === facts));
    if (!facts || !pair) return "deliver";
    const [first, second] = pair.facts;
    const sibling = facts === first ? second : first;
    if (this.#landed.has(sibling.signature)) {
      this.violations.push(`${facts.signature}: offered after its sibling landed`);
    }
    const { bias } = pair;
    if (bias === "none") return "drop";
    if (this.isCalm) return "deliver";
    if (bias !== "any" && (bias === "first") !== (facts === first)) return "drop";
    return routesUsed[this.random.below(routesUsed.length)] ?? "deliver";
  }

  async status({ signature }: TransactionFacts): Promise<TransactionStatus | null> {
    const [status] = await this.pipeline.statuses(accountId, [signature]);
    return status ?? null;
  }

  /** Runs until everything has ended; false: something has not. */
  async settled(): Promise<boolean> {
    for (let i = 0; i < 200 && this.pipeline.snapshot().open > 0; i++) {
      await this.clock.advance(500);
    }
    return this.pipeline.snapshot().open === 0;
  }

  /** Result of the pair on the chain; `violations` lists differences to its statuses. */
  async check(pair: Pair): Promise<"landed" | "landed_failed" | "advanced" | "expired"> {
    const { chain } = this.run;
    const { nonceAccount, facts } = pair;
    const [first] = facts;
    const inChain = facts.filter(({ signature }) => chain.status(signature));
    if (inChain.length > 1) this.violations.push(`${first.signature}: both are in the chain`);
    const [winner] = inChain;
    const isSpent = nonceValueOf(this.run, nonceAccount) !== pubkeyOf(first.lifetime);
    for (const one of facts) {
      const expected = this.#expectedEnd(one, winner, isSpent);
      const ends = (await this.status(one))?.events.filter(isEnd) ?? [];
      const reported = ends
        .map(({ kind, sibling, slot }) => `${kind} ${sibling ?? slot}`)
        .join(", ");
      if (reported !== expected)
        this.violations.push(`${one.signature}: ${expected}, not ${reported}`);
      const reports = this.ends.get(one.signature);
      if (reports !== 1)
        this.violations.push(`${one.signature}: its end was reported ${reports} times`);
    }
    if (!winner) return isSpent ? "advanced" : "expired";
    if (!isSpent) this.violations.push(`${first.signature}: landed with its nonce unspent`);
    if (!this.spent.includes(nonceAccount)) {
      this.violations.push(`${first.signature}: its spent nonce was not reported`);
    }
    return this.#stateOf(winner);
  }

  #stateOf({ signature }: TransactionFacts): "landed" | "landed_failed" {
    return this.run.chain.status(signature)?.err === null ? "landed" : "landed_failed";
  }

  #expectedEnd(
    one: TransactionFacts,
    winner: TransactionFacts | undefined,
    isSpent: boolean,
  ): string {
    if (one === winner)
      return `${this.#stateOf(one)} ${this.run.chain.status(one.signature)?.slot}`;
    if (winner) return `superseded ${winner.signature}`;
    return isSpent ? "superseded null" : "expired null";
  }
}
