// Simulated environment of the pipeline that detects every broken guarantee.
//
// Used by simulation.test.ts, which submits and restarts at random. It records requests, reports
// and the true state; `violations` describes inconsistencies.

import { ShredwayError } from "../../../src/core/errors.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { lifetimeKeyOf } from "../../../src/core/transactions/lifetimes.ts";
import { defaultLimits } from "../../../src/gateway/submission/limits.ts";
import { Pipeline } from "../../../src/gateway/submission/pipeline.ts";
import type {
  OutboundTransaction,
  RouteCapabilities,
  SubmitMethod,
  SubmitOptions,
  SubmitRequest,
  TimelineEvent,
} from "../../../src/gateway/submission/types.ts";
import { killableClock } from "../../support/clocks/killable-clock.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { ModelChain, makeFacts, textOf } from "./model.ts";
import { capabilitiesOf, ModelRoute, ModelStore } from "./model-routes-and-store.ts";

const resendMs = 1_000;
const limits = {
  openMax: 10_000,
  endedMax: 5_000,
  resendMs,
  firstAskMs: 2_500,
  askMs: 1_000,
  settleMs: 4_000,
};

const routesUsed: readonly Partial<RouteCapabilities>[] = [
  { name: "swqos-1", kind: "swqos" },
  { name: "swqos-safe", kind: "swqos", mevSafe: true },
  { name: "builder", kind: "block-builder", modes: ["transaction", "bundle"], mevSafe: true },
  { name: "tpu", kind: "tpu" },
  { name: "alt", kind: "alt-partner", minimumTipLamports: 100_000n, leaders: new Set(["B", "C"]) },
];

export const accounts = ["ann", "ben", "cat"];

interface Call {
  readonly request: SubmitRequest;
  isAcknowledged: boolean;
}

/** Transactions of one call. */
type PairCall = readonly [Call, Call];

function nonceKeyOf({ nonce, lifetime }: TransactionFacts): string | null {
  return nonce && lifetimeKeyOf({ nonce, lifetime });
}

export function factsOf({ request }: Call): TransactionFacts {
  const [facts] = request.transactions;
  if (!facts) throw new Error("expected a transaction");
  return facts;
}

export class Simulation {
  readonly clock = new ManualClock();
  readonly random: SeededRandom;
  readonly chain: ModelChain;
  readonly store: ModelStore;
  readonly routes: ModelRoute[];
  readonly requests: Call[] = [];
  readonly pairs: PairCall[] = [];
  readonly violations: string[] = [];
  readonly accepted: TransactionFacts[] = [];
  readonly byWire = new Map<string, TransactionFacts>();
  /** Ends that this process reported or stored: "account signature". */
  #ended = new Map<string, string>();
  /** Ends of earlier processes. They may be reported once more to an account that submits again. */
  #endedEarlier = new Set<string>();
  readonly #submittedAgain = new Set<string>();
  /** The last sent attempt by route and signature. */
  readonly #left = new Map<string, { readonly attempt: number; readonly atNs: bigint }>();
  #life = 0;
  #isSubmitting = false;
  readonly #offeredLate = new Set<string>();
  /** Nonce values that this process reported as spent. */
  #spent = new Set<string>();
  nodeFailShare = 0.15;
  pipeline: Pipeline;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.chain = new ModelChain(this.clock, this.random);
    this.store = new ModelStore(this.clock, this.random);
    this.routes = routesUsed.map((way) => {
      const route = new ModelRoute(capabilitiesOf(way), this);
      route.onOffer = (outbound) => this.#checkOffer(route.capabilities, outbound);
      route.onLeave = (outbound) => this.#checkLeave(route.capabilities, outbound);
      return route;
    });
    this.pipeline = this.#start();
  }

  #start(): Pipeline {
    const run = ++this.#life;
    const isAlive = () => run === this.#life;
    const { chain, routes } = this;
    const node = chain.node(6, () => this.nodeFailShare);
    const alive = async <T>(answer: Promise<T>): Promise<T> => {
      const settled = await answer.then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      if (!isAlive()) return new Promise(() => {});
      if ("error" in settled) throw settled.error;
      return settled.value;
    };
    const shown = routes.map((route) => ({
      capabilities: route.capabilities,
      get isUp() {
        return route.isUp;
      },
      offer: (outbound: OutboundTransaction) =>
        route.offer({
          ...outboundFields(outbound),
          report: (event) => {
            if (isAlive()) outbound.report(event);
          },
        }),
      snapshot: () => route.snapshot(),
      close: () => route.close(),
    }));
    const policy = {
      denyLeaders: new Set(["denied"]),
      minimumTipLamports: 10_000n,
      partners: new Set(["B", "C"]),
      partnerUnitLamports: 0n,
    };
    const pipeline = new Pipeline(
      {
        clock: killableClock(this.clock, isAlive),
        log: { warn: () => {} },
        routes: () => shown,
        policy: () => policy,
        store: this.store.of(isAlive),
        landings: {
          watch: (signature, observed, withdrawn) =>
            chain.watch(
              signature,
              (observation) => {
                if (isAlive()) observed(observation);
              },
              (withdrawal) => {
                if (isAlive()) withdrawn?.(withdrawal);
              },
            ),
        },
        outcomes: {
          signatureStatuses: (signatures) => alive(node.signatureStatuses(signatures)),
          blockhashState: (blockhash) => alive(node.blockhashState(blockhash)),
          nonceValue: (account) => alive(node.nonceValue(account)),
        },
        leaders: () => chain.leaderContext,
        slotNs: () => 400_000_000n,
        inspect: async (wire) => {
          const facts = this.byWire.get(Buffer.from(wire).toString("hex"));
          if (!facts) throw new Error("expected bytes that were made here");
          return facts;
        },
      },
      limits,
    );
    for (const account of accounts) {
      pipeline.subscribe(account, (signature, { kind }) => {
        const key = `${account} ${signature}`;
        // Refused transactions may start again, as well as those whose acceptance was never
        // reported.
        const isNew = this.#ended.get(key) === "rejected" || !this.store.records.has(key);
        if (kind === "received" && isNew) this.#ended.delete(key);
        if (kind === "received" && this.#endedEarlier.delete(key)) this.#submittedAgain.add(key);
        if (!/landed|expired|superseded|rejected/.test(kind)) return;
        if (this.#ended.has(key) && !this.#submittedAgain.delete(key))
          this.violations.push(`${key}: a second end, ${kind}`);
        this.#ended.set(key, kind);
        if (!kind.startsWith("landed")) return;
        const nonceKey = this.#nonceKeyOf(signature);
        if (nonceKey !== null) this.#spent.add(nonceKey);
      });
      pipeline.subscribe(account, () => {
        throw new Error("a listener that throws");
      });
    }
    return pipeline;
  }

  async restart(): Promise<void> {
    this.pipeline = this.#start(); // everything of the earlier process ends here
    this.#spent = new Set();
    this.#ended = new Map(
      [...this.store.records].flatMap(([key, { state }]) =>
        state === "open" ? [] : [[key, state]],
      ),
    );
    this.#endedEarlier = new Set(this.#ended.keys());
    this.#submittedAgain.clear();
    const restored = this.pipeline.restore();
    await this.clock.advance(1);
    await restored;
  }

  facts(description: Parameters<typeof makeFacts>[1]): TransactionFacts {
    const facts = makeFacts(this.random, description);
    this.accepted.push(facts);
    this.byWire.set(Buffer.from(facts.wire).toString("hex"), facts);
    if (this.random.happens(0.15)) this.chain.failing.add(facts.signature);
    return facts;
  }

  fresh(): TransactionFacts {
    return this.facts({
      lifetime: this.chain.latestBlockhash,
      tipLamports: this.random.happens(0.3) ? 200_000n : 20_000n,
    });
  }

  noncePair(): TransactionFacts[] {
    const nonceAccount = this.random.fillBytes(new Uint8Array(32));
    const lifetime = this.random.fillBytes(new Uint8Array(32));
    this.chain.setNonce(textOf(nonceAccount), textOf(lifetime));
    return this.pairLike({ lifetime, nonceAccount });
  }

  pairLike(description: { lifetime: Uint8Array; nonceAccount: Uint8Array }): TransactionFacts[] {
    // One of the two pays a higher tip.
    const [tipLamports] = this.random.happens(0.5) ? [200_000n] : [20_000n];
    return [this.facts(description), this.facts({ ...description, tipLamports })];
  }

  #nonceKeyOf(signature: string): string | null {
    const facts = this.accepted.find((one) => one.signature === signature);
    return facts ? nonceKeyOf(facts) : null;
  }

  submit(transactions: readonly TransactionFacts[], some: Partial<SubmitRequest> = {}): void {
    const method: SubmitMethod = transactions.length > 1 ? "sendBundle" : "sendTransaction";
    const request: SubmitRequest = {
      accountId: accounts[this.random.below(accounts.length)] ?? "",
      method,
      isBundle: transactions.length > 1,
      transactions,
      options: this.options(),
      receivedNs: this.clock.nowNs(),
      ...some,
    };
    const call = { request, isAcknowledged: false };
    this.requests.push(call);
    this.#isSubmitting = true;
    const submitted = this.pipeline.submit(request);
    this.#isSubmitting = false;
    void this.#acknowledged(submitted, call);
  }

  submitPair(transactions: readonly TransactionFacts[], accountId: string): void {
    const options = { ...this.options(), swqosOnly: false };
    const [first, second] = transactions.map((facts): Call => {
      const receivedNs = this.clock.nowNs();
      const method = "sendIdeal";
      const request = { accountId, method, isBundle: false, options, receivedNs } as const;
      return { request: { ...request, transactions: [facts] }, isAcknowledged: false };
    });
    if (!first || !second) throw new Error("expected two transactions");
    const rivals = this.#rivalsOf(first, second);
    const isInUse = rivals.some((pair) => this.#isOpen(pair));
    this.requests.push(first, second);
    this.pairs.push([first, second]);
    this.#isSubmitting = true;
    const submitted = this.pipeline.submitPair(first.request, second.request);
    this.#isSubmitting = false;
    const name = factsOf(first).signature;
    submitted.then(
      () => isInUse && this.violations.push(`${name}: accepted while its nonce is in use`),
      (error: unknown) => {
        const isSo = error instanceof ShredwayError && error.reason === "nonce_in_use";
        if (isSo && rivals.length === 0) this.violations.push(`${name}: nobody uses its nonce`);
      },
    );
    for (const call of [first, second]) void this.#acknowledged(submitted, call);
  }

  /** Other pairs of the same nonce value. */
  #rivalsOf(...pair: PairCall): PairCall[] {
    const own = pair.map((call) => factsOf(call).signature);
    return this.pairs.filter(
      (other) =>
        nonceKeyOf(factsOf(other[0])) === nonceKeyOf(factsOf(pair[0])) &&
        other.some((call) => !own.includes(factsOf(call).signature)),
    );
  }

  /** A part of it is still being sent as a pair, according to the account's last call. */
  #isOpen(pair: PairCall): boolean {
    return pair.some((call) => {
      const { signature } = factsOf(call);
      const { accountId } = call.request;
      const last = this.requests.findLast(
        ({ request }) =>
          request.accountId === accountId && request.transactions[0]?.signature === signature,
      );
      const isPair = last?.request.method === "sendIdeal" && last.isAcknowledged;
      const sentForNs = BigInt(defaultLimits.resendForMs) * 1_000_000n;
      // A repetition changes nothing: the first call determines the start.
      const first = this.requests.find(
        ({ request, isAcknowledged }) =>
          isAcknowledged &&
          request.accountId === accountId &&
          request.transactions[0]?.signature === signature,
      );
      const isSent = isPair && (first?.request.receivedNs ?? 0n) >= this.clock.nowNs() - sentForNs;
      return isSent && !this.#ended.has(`${accountId} ${signature}`);
    });
  }

  async #acknowledged(submitted: Promise<void>, call: Call): Promise<void> {
    const { accountId, transactions } = call.request;
    try {
      await submitted;
    } catch {
      return; // refused: no acceptance was reported
    }
    call.isAcknowledged = true;
    for (const { signature } of transactions) {
      const isStored = this.store.records.has(`${accountId} ${signature}`);
      if (!isStored) this.violations.push(`${signature}: acknowledged, not kept`);
    }
  }

  options(): SubmitOptions {
    const { random } = this;
    return {
      swqosOnly: random.happens(0.1),
      mevProtect: random.happens(0.25),
      revertProtection: random.happens(0.1),
      resendsMax: random.happens(0.3) ? random.below(3) : null,
    };
  }

  #ownersOf({ transactions }: OutboundTransaction): Call[] {
    return this.requests.filter(({ request }) =>
      request.transactions.some(({ signature }) => signature === transactions[0]?.signature),
    );
  }

  #checkLeave(route: RouteCapabilities, outbound: OutboundTransaction): void {
    const owners = this.#ownersOf(outbound);
    const isProtected = owners.every(({ request }) => request.options.mevProtect);
    this.#checkResend(route, outbound, owners);
    if (isProtected && this.chain.leaderContext.current === "denied") {
      this.violations.push(`${outbound.transactions[0]?.signature}: left for a denied leader`);
    }
  }

  /** Unsent transactions may be offered again; sent ones only if the caller allows resends. */
  #checkResend(
    route: RouteCapabilities,
    outbound: OutboundTransaction,
    owners: readonly Call[],
  ): void {
    const [first] = outbound.transactions;
    if (!first) return;
    if (owners.length === 1 && owners[0]?.request.options.resendsMax === 0) {
      const key = `${route.name} ${first.signature}`;
      const before = this.#left.get(key);
      this.#left.set(key, { attempt: outbound.attempt, atNs: this.clock.nowNs() });
      // An attempt that a kill removed from the timeline is repeated.
      const isThat = (event: TimelineEvent): boolean =>
        before !== undefined &&
        event.kind === "queued" &&
        event.attempt === before.attempt &&
        event.atNs <= before.atNs;
      const isStored = [...this.store.records.values()].some(
        ({ signature, events }) => signature === first.signature && events.some(isThat),
      );
      if (isStored) this.violations.push(`${first.signature}: sent again by the service`);
    }
  }

  #checkOffer(route: RouteCapabilities, outbound: OutboundTransaction): void {
    const [first] = outbound.transactions;
    if (!first) return void this.violations.push("an empty transaction");
    const owners = this.#ownersOf(outbound);
    // It ended for all accounts: it must not be sent any more.
    const isOver = owners.every(({ request }) => {
      const end = this.#ended.get(`${request.accountId} ${first.signature}`);
      return end !== undefined && !(end === "rejected" && this.#isSubmitting);
    });
    // After a restart, a call is offered before the store can report its end.
    const isExcused = this.#isSubmitting && this.#life > 1;
    if (isOver && isExcused) {
      for (const { signature } of outbound.transactions) this.#offeredLate.add(signature);
    } else if (isOver) this.violations.push(`${first.signature}: sent after its end`);
    if (owners.every(({ request }) => request.options.mevProtect)) {
      const { current, next } = this.chain.leaderContext;
      const isDenied = [current, next].some((leader) => leader === null || leader === "denied");
      if (isDenied) this.violations.push(`${first.signature}: sent while a denied leader is near`);
      if (!route.mevSafe) this.violations.push(`${first.signature}: sent by ${route.name}`);
    }
    const isPair = owners.every(({ request }) => request.method === "sendIdeal");
    if (isPair && this.#spent.has(nonceKeyOf(first) ?? "") && !isExcused) {
      this.violations.push(`${first.signature}: sent after its nonce was spent`);
    }
    if (owners.every(({ request }) => request.options.swqosOnly) && route.kind !== "swqos") {
      this.violations.push(`${first.signature}: sent by ${route.name}`);
    }
  }

  /** All faults end; open transactions may end. */
  calm(): void {
    this.nodeFailShare = 0;
    this.store.failShare = 0;
    this.chain.isLossy = false;
    for (const route of this.routes) route.isUp = true;
  }

  /** The owners spend their nonces with other transactions. */
  advanceNonces(): void {
    for (const { nonce } of this.accepted) {
      if (!nonce) continue;
      const value = this.random.fillBytes(new Uint8Array(32));
      this.chain.setNonce(textOf(nonce.account), textOf(value));
    }
  }

  checkEnds(): void {
    for (const { request, isAcknowledged } of this.requests) {
      if (!isAcknowledged) continue;
      for (const facts of request.transactions) this.#checkEnd(request, facts);
    }
  }

  /**
   * At most one transaction per nonce value landed; others may only report that one as their
   * successor.
   */
  checkPairs(): void {
    for (const facts of this.accepted) {
      const key = nonceKeyOf(facts);
      if (key === null) continue;
      const landed = this.accepted.filter(
        (one) => nonceKeyOf(one) === key && this.chain.outcomeOf(one.signature) !== null,
      );
      if (landed.length > 1) this.violations.push(`${facts.signature}: two of one nonce value`);
      for (const account of accounts) {
        const record = this.store.records.get(`${account} ${facts.signature}`);
        const end = record?.events.at(-1);
        if (end?.kind !== "superseded" || end.reason !== "sibling_landed") continue;
        if (end.sibling !== landed[0]?.signature) {
          this.violations.push(`${facts.signature}: superseded by another one`);
        }
      }
    }
  }

  #checkEnd({ accountId }: SubmitRequest, facts: TransactionFacts): void {
    const record = this.store.records.get(`${accountId} ${facts.signature}`);
    const actual = this.chain.outcomeOf(facts.signature);
    const landed = actual?.err === null ? "landed" : "landed_failed";
    const reported = `${record?.state} (${record?.reason})`;
    // Rejected for this account, then landed for another account or after a restart.
    const isByOther = accounts.some((account) => {
      const other = this.store.records.get(`${account} ${facts.signature}`);
      return other !== undefined && other.state !== "rejected";
    });
    const isExcused = isByOther || this.#offeredLate.has(facts.signature);
    if (record?.state === "rejected" && isExcused) return;
    if (actual) {
      if (record?.state !== landed)
        this.violations.push(`${facts.signature}: ${landed}, not ${reported}`);
      else if (record.slot !== actual.slot)
        this.violations.push(`${facts.signature}: another slot`);
      return;
    }
    const expected = facts.nonce ? ["superseded", "rejected"] : ["expired", "rejected"];
    if (!record || !expected.includes(record.state)) {
      this.violations.push(`${facts.signature}: ${expected.join(" or ")}, not ${reported}`);
    }
  }
}

function outboundFields(outbound: OutboundTransaction): Omit<OutboundTransaction, "report"> {
  const { mode, transactions, revertProtection, attempt, leader, deniedLeaders, deadlineNs } =
    outbound;
  return { mode, transactions, revertProtection, attempt, leader, deniedLeaders, deadlineNs };
}
