// The pipeline in a world where everything goes wrong: every accepted transaction has one end, and
// the end is the truth. A seed that fails is in the name of its test.

import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { Pipeline } from "../../src/submission/pipeline.ts";
import type {
  Parcel,
  RouteCapabilities,
  SubmitMethod,
  SubmitOptions,
  SubmitRequest,
} from "../../src/submission/types.ts";
import type { TransactionFacts } from "../../src/transactions/facts.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ModelChain, makeFacts, textOf } from "./model.ts";
import { capabilitiesOf, ModelRoute, ModelStore } from "./model-parts.ts";

const resendMs = 1_000;
const limits = {
  openMax: 10_000,
  endedMax: 5_000,
  resendMs,
  firstAskMs: 2_500,
  askMs: 1_000,
  settleMs: 4_000,
};

const ways: readonly Partial<RouteCapabilities>[] = [
  { name: "swqos-1", kind: "swqos" },
  { name: "swqos-safe", kind: "swqos", mevSafe: true },
  { name: "builder", kind: "block-builder", modes: ["transaction", "bundle"], mevSafe: true },
  { name: "tpu", kind: "tpu" },
  { name: "alt", kind: "alt-partner", minimumTipLamports: 100_000n, leaders: new Set(["B", "C"]) },
];

const accounts = ["ann", "ben", "cat"];

interface Asked {
  readonly request: SubmitRequest;
  isAcknowledged: boolean;
}

/** A clock of a process that can be killed: nothing of it happens afterwards. */
function killable(clock: Clock, isAlive: () => boolean): Clock {
  const alive = (action: () => void) => () => {
    if (isAlive()) action();
  };
  return {
    nowNs: () => clock.nowNs(),
    monotonicNs: () => clock.monotonicNs(),
    after: (ms, action) => clock.after(ms, alive(action)),
    every: (ms, action) => {
      const timer = clock.every(ms, () => (isAlive() ? action() : timer.cancel()));
      return timer;
    },
    sleep: async (ms, signal) => {
      await clock.sleep(ms, signal);
      if (!isAlive()) await new Promise(() => {});
    },
  };
}

class World {
  readonly clock = new ManualClock();
  readonly random: SeededRandom;
  readonly chain: ModelChain;
  readonly store: ModelStore;
  readonly routes: ModelRoute[];
  readonly asked: Asked[] = [];
  readonly violations: string[] = [];
  readonly made: TransactionFacts[] = [];
  readonly byWire = new Map<string, TransactionFacts>();
  /** Ends that this process was told of, or that are on the disk: "account signature". */
  #ended = new Set<string>();
  readonly #offers = new Map<string, number>();
  #life = 0;
  #isSubmitting = false;
  readonly #offeredLate = new Set<string>();
  nodeFailShare = 0.15;
  pipeline: Pipeline;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.chain = new ModelChain(this.clock, this.random);
    this.store = new ModelStore(this.clock, this.random);
    this.routes = ways.map((way) => {
      const route = new ModelRoute(capabilitiesOf(way), this);
      route.onOffer = (parcel) => this.#checkOffer(route.capabilities, parcel);
      route.onLeave = (parcel) => this.#checkLeave(route.capabilities, parcel);
      return route;
    });
    this.pipeline = this.#start();
  }

  #start(): Pipeline {
    const life = ++this.#life;
    const isAlive = () => life === this.#life;
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
      offer: (parcel: Parcel) =>
        route.offer({
          ...parcelFields(parcel),
          report: (event) => {
            if (isAlive()) parcel.report(event);
          },
        }),
      snapshot: () => route.snapshot(),
      close: () => route.close(),
    }));
    const policy = { denyLeaders: new Set(["denied"]), minimumTipLamports: 10_000n };
    const pipeline = new Pipeline(
      {
        clock: killable(this.clock, isAlive),
        log: { warn: () => {} },
        routes: () => shown,
        policy: () => policy,
        store: this.store.of(isAlive),
        sights: {
          watch: (signature, listener) =>
            chain.watch(signature, (sight) => {
              if (isAlive()) listener(sight);
            }),
        },
        outcomes: {
          signatureStatuses: (signatures) => alive(node.signatureStatuses(signatures)),
          isBlockhashValid: (blockhash) => alive(node.isBlockhashValid(blockhash)),
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
        if (!/landed|expired|superseded|rejected/.test(kind)) return;
        const key = `${account} ${signature}`;
        if (this.#ended.has(key)) this.violations.push(`${key}: a second end, ${kind}`);
        this.#ended.add(key);
      });
      pipeline.subscribe(account, () => {
        throw new Error("a listener that throws");
      });
    }
    return pipeline;
  }

  async restart(): Promise<void> {
    this.pipeline = this.#start(); // what ran before is dead from here on
    this.#ended = new Set(
      [...this.store.records].filter(([, { state }]) => state !== "open").map(([key]) => key),
    );
    const restored = this.pipeline.restore();
    await this.clock.advance(1);
    await restored;
  }

  facts(made: Parameters<typeof makeFacts>[1]): TransactionFacts {
    const facts = makeFacts(this.random, made);
    this.made.push(facts);
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
    return [this.facts({ lifetime, nonceAccount }), this.facts({ lifetime, nonceAccount })];
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
    const asked = { request, isAcknowledged: false };
    this.asked.push(asked);
    this.#isSubmitting = true;
    const submitted = this.pipeline.submit(request);
    this.#isSubmitting = false;
    void this.#acknowledged(submitted, asked);
  }

  async #acknowledged(submitted: Promise<void>, asked: Asked): Promise<void> {
    const { accountId, transactions } = asked.request;
    try {
      await submitted;
    } catch {
      return; // refused: nobody was promised anything
    }
    asked.isAcknowledged = true;
    for (const { signature } of transactions) {
      const isKept = this.store.records.has(`${accountId} ${signature}`);
      if (!isKept) this.violations.push(`${signature}: acknowledged, not kept`);
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

  #ownersOf({ transactions }: Parcel): Asked[] {
    return this.asked.filter(({ request }) =>
      request.transactions.some(({ signature }) => signature === transactions[0]?.signature),
    );
  }

  #checkLeave(route: RouteCapabilities, parcel: Parcel): void {
    const owners = this.#ownersOf(parcel);
    const isProtected = owners.every(({ request }) => request.options.mevProtect);
    this.#checkResend(route, parcel, owners);
    if (isProtected && this.chain.leaderContext.current === "denied") {
      this.violations.push(`${parcel.transactions[0]?.signature}: left for a denied leader`);
    }
  }

  /** What never left may be offered again; what left, only by the caller's leave. */
  #checkResend(route: RouteCapabilities, parcel: Parcel, owners: readonly Asked[]): void {
    const [first] = parcel.transactions;
    if (!first) return;
    if (owners.length === 1 && owners[0]?.request.options.resendsMax === 0) {
      const key = `${route.name} ${first.signature}`;
      const count = (this.#offers.get(key) ?? 0) + 1;
      this.#offers.set(key, count);
      const isKept = [...this.store.records.values()].some(
        ({ signature, events }) =>
          signature === first.signature && events.some(({ kind }) => kind === "queued"),
      );
      if (count > 1 && isKept)
        this.violations.push(`${first.signature}: sent again by the service`);
    }
  }

  #checkOffer(route: RouteCapabilities, parcel: Parcel): void {
    const [first] = parcel.transactions;
    if (!first) return void this.violations.push("an empty parcel");
    const owners = this.#ownersOf(parcel);
    // Ended for everybody who asked: nobody sends it any more.
    const isOver = owners.every(({ request }) =>
      this.#ended.has(`${request.accountId} ${first.signature}`),
    );
    // After a restart a call is offered before the store can say that it ended.
    const isExcused = this.#isSubmitting && this.#life > 1;
    if (isOver && isExcused) {
      for (const { signature } of parcel.transactions) this.#offeredLate.add(signature);
    } else if (isOver) this.violations.push(`${first.signature}: sent after its end`);
    if (owners.every(({ request }) => request.options.mevProtect)) {
      const { current, next } = this.chain.leaderContext;
      const isDenied = [current, next].some((leader) => leader === null || leader === "denied");
      if (isDenied) this.violations.push(`${first.signature}: sent while a denied leader is near`);
      if (!route.mevSafe) this.violations.push(`${first.signature}: sent by ${route.name}`);
    }
    if (owners.every(({ request }) => request.options.swqosOnly) && route.kind !== "swqos") {
      this.violations.push(`${first.signature}: sent by ${route.name}`);
    }
  }

  /** Everything gets well; what is open may end. */
  calm(): void {
    this.nodeFailShare = 0;
    this.store.failShare = 0;
    this.chain.isLossy = false;
    for (const route of this.routes) route.isUp = true;
  }

  /** The owners use their nonces otherwise. */
  advanceNonces(): void {
    for (const { nonce } of this.made) {
      if (!nonce) continue;
      const value = this.random.fillBytes(new Uint8Array(32));
      this.chain.setNonce(textOf(nonce.account), textOf(value));
    }
  }

  checkEnds(): void {
    for (const { request, isAcknowledged } of this.asked) {
      if (!isAcknowledged) continue;
      for (const facts of request.transactions) this.#checkEnd(request, facts);
    }
  }

  #checkEnd({ accountId }: SubmitRequest, facts: TransactionFacts): void {
    const record = this.store.records.get(`${accountId} ${facts.signature}`);
    const truth = this.chain.outcomeOf(facts.signature);
    const landed = truth?.err === null ? "landed" : "landed_failed";
    const said = `${record?.state} (${record?.reason})`;
    // Rejected for this account, then landed by what another one asked for, or it after a restart.
    const isByOther = accounts.some((account) => {
      const other = this.store.records.get(`${account} ${facts.signature}`);
      return other !== undefined && other.state !== "rejected";
    });
    const isExcused = isByOther || this.#offeredLate.has(facts.signature);
    if (record?.state === "rejected" && isExcused) return;
    if (truth) {
      if (record?.state !== landed)
        this.violations.push(`${facts.signature}: ${landed}, not ${said}`);
      else if (record.slot !== truth.slot) this.violations.push(`${facts.signature}: another slot`);
      return;
    }
    const expected = facts.nonce ? ["superseded", "rejected"] : ["expired", "rejected"];
    if (!record || !expected.includes(record.state)) {
      this.violations.push(`${facts.signature}: ${expected.join(" or ")}, not ${said}`);
    }
  }
}

function parcelFields(parcel: Parcel): Omit<Parcel, "report"> {
  const { mode, transactions, revertProtection, attempt, leader, deadlineNs } = parcel;
  return { mode, transactions, revertProtection, attempt, leader, deadlineNs };
}

function submitSomething(world: World): void {
  const { random } = world;
  const what = random.share();
  if (what < 0.5) {
    world.submit([world.fresh()]);
  } else if (what < 0.65) {
    const bundle = Array.from({ length: 1 + random.below(4) }, () => world.fresh());
    world.submit(bundle, { isBundle: true, method: "sendBundle" });
  } else if (what < 0.75) {
    const accountId = "ann";
    for (const facts of world.noncePair()) {
      world.submit([facts], {
        accountId,
        method: "sendIdeal",
        options: { ...world.options(), mevProtect: false, swqosOnly: false },
      });
    }
  } else if (world.asked.length > 0) {
    // The same bytes again: by the same account or another, in the same way or another.
    const { request } =
      world.asked[world.asked.length - 1 - random.below(Math.min(10, world.asked.length))] ?? {};
    if (!request) return;
    const isSame = random.happens(0.6);
    world.submit(request.transactions, isSame ? request : { isBundle: request.isBundle });
  }
}

async function run(seed: number): Promise<World> {
  const world = new World(seed);
  const { random, clock } = world;
  await clock.advance(3_000);
  for (let step = 0; step < 60; step++) {
    const count = random.below(4);
    for (let i = 0; i < count; i++) submitSomething(world);
    for (const route of world.routes) if (random.happens(0.05)) route.isUp = !route.isUp;
    await clock.advance(random.below(700));
    if (random.happens(0.06)) await world.restart();
  }
  world.calm();
  // Nonce transactions that nobody lands stay open: the last of each pair is advanced by its owner.
  await clock.advance(30_000);
  world.advanceNonces();
  await clock.advance(60_000);
  return world;
}

const seeds = Array.from(
  { length: Number(process.env["SHREDWAY_SIMULATION_SEEDS"] ?? 25) },
  (_, i) => i + 1,
);

describe("the pipeline", () => {
  it.each(seeds)("tells the truth, once: seed %i", async (seed) => {
    const world = await run(seed);
    world.checkEnds();
    expect([...world.violations, ...world.store.violations]).toEqual([]);
    const { open, held, store, watch } = world.pipeline.snapshot();
    expect({ open, held, dirty: store.dirty, lifetimes: watch.lifetimes }).toEqual({
      open: 0,
      held: 0,
      dirty: 0,
      lifetimes: 0,
    });
    expect([...world.store.records.values()].filter(({ state }) => state === "open")).toEqual([]);
  });
});
