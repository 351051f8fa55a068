// Test harness: a pipeline with routes, a store and a node that the test controls.

import { ShredwayError } from "../../../src/core/errors.ts";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import type { BlockhashState } from "../../../src/core/transactions/lifetimes.ts";
import type { PipelineLimits } from "../../../src/gateway/submission/limits.ts";
import { Pipeline } from "../../../src/gateway/submission/pipeline.ts";
import type {
  LandedTips,
  LandingObservations,
  LeaderContext,
  NonceListener,
  OutboundTransaction,
  Outcomes,
  Route,
  RouteCapabilities,
  SignatureOutcome,
  StatusSearch,
  SubmitOptions,
  SubmitRequest,
} from "../../../src/gateway/submission/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { makeFacts } from "./model.ts";
import { capabilitiesOf, emptySnapshot, ModelStore } from "./model-routes-and-store.ts";

const noOptions: SubmitOptions = {
  swqosOnly: false,
  mevProtect: false,
  revertProtection: false,
  resendsMax: null,
};

type LandingListener = Parameters<LandingObservations["watch"]>[1];
type WithdrawalListener = Parameters<LandingObservations["watch"]>[2];

export class Harness implements LandingObservations, Outcomes {
  readonly clock = new ManualClock();
  readonly random: SeededRandom;
  readonly store: ModelStore;
  readonly outbound: OutboundTransaction[] = [];
  readonly warnings: string[] = [];
  readonly landings = new Map<string, LandingListener>();
  readonly withdrawals = new Map<string, WithdrawalListener>();
  /** Whether the chain's blocks have markers. */
  mayRestart = false;
  readonly answers = new Map<string, SignatureOutcome>();
  readonly requests: string[][] = [];
  leaders: LeaderContext = { slot: 4n, current: "A", next: "B" };
  isBlockhashExpired = false;
  /** When the node first reported it. */
  expiryReportedNs: bigint | null = null;
  /** The cluster confirms nothing any more. */
  isClusterStopped = false;
  #confirmedSlot = 0n;
  nonce: string | null = null;
  takes = true;
  /** Signatures that every queue refuses. */
  readonly full = new Set<string>();
  /** Events that a route reports during an offer. */
  answer: (outbound: OutboundTransaction) => void = () => {};
  /** Called when the routes shall send what was offered. */
  flushed: () => void = () => {};
  /** Names of the routes that accepted something, in order. */
  readonly routesUsed: string[] = [];
  isWatchFull = false;
  isNodeFailing = false;
  readonly readable: TransactionFacts[] = [];
  readonly pipeline: Pipeline;
  readonly #hasNode: boolean;

  /** Changed by a reload. */
  minimumTipLamports = 0n;
  partnerUnitLamports = 0n;
  routes: readonly Route[];

  constructor(
    limits: Partial<PipelineLimits> = {},
    has: {
      node?: boolean;
      routes?: readonly Partial<RouteCapabilities>[];
      tips?: LandedTips;
      nonces?: NonceListener;
      seed?: number;
    } = {},
  ) {
    this.random = new SeededRandom(has.seed ?? 3);
    this.#hasNode = has.node !== false;
    this.store = new ModelStore(this.clock, this.random);
    this.store.failShare = 0;
    this.routes = this.routesLike(has.routes ?? [{ mevSafe: true }]);
    this.pipeline = new Pipeline(
      {
        clock: this.clock,
        log: { warn: (text: unknown) => void this.warnings.push(String(text)) },
        routes: () => this.routes,
        policy: () => ({
          denyLeaders: new Set(["bad"]),
          minimumTipLamports: this.minimumTipLamports,
          partners: new Set(["A"]),
          partnerUnitLamports: this.partnerUnitLamports,
        }),
        store: this.store.of(() => true),
        landings: this,
        outcomes: this.#hasNode ? this : null,
        leaders: () => this.leaders,
        slotNs: () => null,
        ...(has.tips && { landedTips: has.tips }),
        ...(has.nonces && { nonces: has.nonces }),
        inspect: (wire) => {
          const found = this.readable.find((facts) => Buffer.compare(facts.wire, wire) === 0);
          if (!found) throw new Error("no transaction any more");
          return found;
        },
      },
      limits,
    );
  }

  /** Routes for `routes`, which a reload replaces. */
  routesLike(all: readonly Partial<RouteCapabilities>[]): Route[] {
    return all.map((some) => this.#route(capabilitiesOf(some)));
  }

  #route(capabilities: RouteCapabilities): Route {
    return {
      capabilities,
      isUp: true,
      offer: (outbound) => {
        const [first] = outbound.transactions;
        if (!this.takes || this.full.has(first?.signature ?? "")) return false;
        this.outbound.push(outbound);
        this.routesUsed.push(capabilities.name);
        this.answer(outbound);
        return true;
      },
      flush: () => this.flushed(),
      snapshot: () => emptySnapshot(capabilities),
      close: async () => {},
    };
  }

  watch(
    signature: Uint8Array,
    observed: LandingListener,
    withdrawn?: WithdrawalListener,
  ): () => void {
    if (this.isWatchFull) throw new ShredwayError("watch_refused", "full");
    const name = Buffer.from(signature).toString("hex");
    this.landings.set(name, observed);
    this.withdrawals.set(name, withdrawn);
    return () => {
      this.landings.delete(name);
      this.withdrawals.delete(name);
    };
  }

  observe({ signatureBytes }: TransactionFacts, slot: bigint): void {
    const listener = this.landings.get(Buffer.from(signatureBytes).toString("hex"));
    listener?.({ slot, seenNs: this.clock.nowNs(), mayRestart: this.mayRestart });
  }

  /** The block of this slot begins again without it. */
  withdraw({ signatureBytes }: TransactionFacts, slot: bigint): void {
    const listener = this.withdrawals.get(Buffer.from(signatureBytes).toString("hex"));
    listener?.({ slot, seenNs: this.clock.nowNs() });
  }

  async signatureStatuses(
    signatures: readonly string[],
    _search?: StatusSearch,
  ): Promise<(SignatureOutcome | null)[]> {
    this.requests.push([...signatures]);
    if (this.isNodeFailing) throw new Error("the node failed");
    return signatures.map((signature) => this.answers.get(signature) ?? null);
  }

  async blockhashState(): Promise<BlockhashState> {
    if (this.isBlockhashExpired) this.expiryReportedNs ??= this.clock.nowNs();
    if (!this.isClusterStopped) this.#confirmedSlot = this.clock.nowNs() / 400_000_000n;
    return { isValid: !this.isBlockhashExpired, slot: this.#confirmedSlot };
  }

  async nonceValue(): Promise<string | null> {
    return this.nonce;
  }

  facts(nonce = false): TransactionFacts {
    const bytes = () => this.random.fillBytes(new Uint8Array(32));
    return makeFacts(this.random, {
      lifetime: bytes(),
      ...(nonce ? { nonceAccount: bytes() } : {}),
    });
  }

  request(
    facts: TransactionFacts,
    options: Partial<SubmitOptions> = {},
    accountId = "ann",
  ): SubmitRequest {
    return {
      accountId,
      method: "sendTransaction",
      transactions: [facts],
      isBundle: false,
      options: { ...noOptions, ...options },
      receivedNs: this.clock.nowNs(),
    };
  }

  /** A pair with one nonce value, which the node reports as present. */
  pair(like: TransactionFacts | null = null): readonly [TransactionFacts, TransactionFacts] {
    const first = this.facts(true);
    const created = {
      lifetime: (like ?? first).lifetime,
      nonceAccount: (like ?? first).nonce?.account ?? new Uint8Array(32),
    };
    this.nonce = pubkeyOf(created.lifetime);
    this.isBlockhashExpired = true;
    return [makeFacts(this.random, created), makeFacts(this.random, created)];
  }

  /** Submits, advances time by 100 ms, and returns the outcome. */
  submit(...request: Parameters<Harness["request"]>): Promise<string> {
    return this.#outcome(this.pipeline.submit(this.request(...request)));
  }

  submitPair(
    pair: readonly TransactionFacts[],
    options: Partial<SubmitOptions> = {},
    accountId = "ann",
  ): Promise<string> {
    const [first, second] = pair.map((facts) => ({
      ...this.request(facts, options, accountId),
      method: "sendIdeal" as const,
    }));
    if (!first || !second) throw new Error("expected two transactions");
    return this.#outcome(this.pipeline.submitPair(first, second));
  }

  async #outcome(submitted: Promise<void>): Promise<string> {
    const outcome = submitted.then(
      () => "accepted",
      (error: unknown) =>
        error instanceof ShredwayError ? `${error.reason}: ${error.message}` : String(error),
    );
    await this.clock.advance(100);
    return outcome;
  }

  /** Restarts the process on the same disk. */
  async next(...facts: TransactionFacts[]): Promise<Harness> {
    this.pipeline.stop();
    const harness = new Harness({}, { seed: 4, node: this.#hasNode });
    harness.readable.push(...facts);
    this.store.copyTo(harness.store);
    harness.nonce = this.nonce;
    harness.isBlockhashExpired = this.isBlockhashExpired;
    await harness.pipeline.restore();
    return harness;
  }

  async state(facts: TransactionFacts, accountId = "ann"): Promise<string> {
    const [status] = await this.pipeline.statuses(accountId, [facts.signature]);
    return status ? `${status.state} ${status.reason}` : "unknown";
  }

  refuseAll(isFinal: boolean): void {
    for (const outbound of this.outbound.splice(0)) {
      const atNs = this.clock.nowNs();
      outbound.report({ kind: "sent", atNs, bytes: 1 });
      outbound.report({ kind: "refused", atNs, reason: "no", isFinal });
    }
  }
}
