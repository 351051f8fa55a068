// Reloads under submissions: what was accepted continues until its one end, whatever the new configuration.

import fc from "fast-check";
import { expect, it } from "vitest";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { endStates, type RouteCapabilities } from "../../../src/gateway/submission/types.ts";
import { Harness } from "./harness.ts";

const kinds = { "swqos-1": "swqos", "swqos-2": "swqos", alt: "alt-partner" } as const;
const names = ["swqos-1", "swqos-2", "alt"] as const;
type Name = (typeof names)[number];

function route(name: Name, minimumTipLamports: number): Partial<RouteCapabilities> {
  const leaders = name === "alt" ? new Set(["A"]) : null;
  return { name, kind: kinds[name], leaders, minimumTipLamports: BigInt(minimumTipLamports) };
}

const lamports = fc.constantFrom(0, 10_000, 20_000, 50_000);
const reload = fc.record({
  kind: fc.constant("reload" as const),
  routes: fc.dictionary(fc.constantFrom(...names), lamports),
  minimumTipLamports: lamports,
  partnerUnitLamports: fc.constantFrom(0, 1_000_000),
});
const submit = fc.record({
  kind: fc.constant("submit" as const),
  method: fc.constantFrom("sendTransaction" as const, "sendAlt" as const),
  enableFallback: fc.boolean(),
  isQueued: fc.boolean(),
});
const restart = fc.record({ kind: fc.constant("restart" as const) });
type Reload = typeof reload extends fc.Arbitrary<infer T> ? T : never;
type Submit = typeof submit extends fc.Arbitrary<infer T> ? T : never;

class Run {
  harness = new Harness({}, { routes: names.map((name) => route(name, 10_000)) });
  readonly accepted: TransactionFacts[] = [];
  readonly #ends = new Map<string, string[]>();
  /** Offers that are still in the queue of a route. */
  readonly #queued = new Set<number>();

  constructor() {
    this.#follow();
  }

  #follow(): void {
    this.harness.pipeline.subscribe("ann", (signature, { kind }) => {
      if (!endStates.some((state) => state === kind)) return;
      this.#ends.set(signature, [...(this.#ends.get(signature) ?? []), kind]);
    });
  }

  async submit({ method, enableFallback, isQueued }: Submit): Promise<void> {
    const { harness } = this;
    harness.answer = (outbound) => {
      const atNs = harness.clock.nowNs();
      if (isQueued) this.#queued.add(harness.outbound.length - 1);
      else outbound.report({ kind: "sent", atNs, bytes: 1 });
    };
    const facts = harness.facts();
    const request = { ...harness.request(facts, { enableFallback }), method };
    const outcome = harness.pipeline.submit(request).then(
      () => this.accepted.push(facts),
      () => undefined, // refused: no route takes it now
    );
    await harness.clock.advance(100);
    await outcome;
  }

  async reload(change: Reload): Promise<void> {
    const { harness } = this;
    harness.minimumTipLamports = BigInt(change.minimumTipLamports);
    harness.partnerUnitLamports = BigInt(change.partnerUnitLamports);
    const present = names.filter((name) => change.routes[name] !== undefined);
    harness.routes = harness.routesLike(
      present.map((name) => route(name, change.routes[name] ?? 0)),
    );
    // The removed routes close: what waits in their queues is dropped.
    for (const which of this.#queued) {
      if (present.some((name) => name === harness.routesUsed[which])) continue;
      this.#queued.delete(which);
      const atNs = harness.clock.nowNs();
      harness.outbound[which]?.report({ kind: "dropped", atNs, reason: "route_closed" });
    }
    await harness.clock.advance(2_500);
  }

  async restart(): Promise<void> {
    const { routes, minimumTipLamports, partnerUnitLamports } = this.harness;
    await this.harness.clock.advance(1_500); // everything is written
    this.harness = await this.harness.next(...this.accepted);
    const present = routes.map(({ capabilities }) => capabilities);
    this.harness.routes = this.harness.routesLike(present);
    Object.assign(this.harness, { minimumTipLamports, partnerUnitLamports });
    this.#queued.clear();
    this.#follow();
  }

  /**
   * Brings every route back, with minimums above what anything pays. Returns the accepted transactions that
   * ended or are not offered.
   */
  async stopped(): Promise<string[]> {
    await this.reload({
      kind: "reload",
      routes: Object.fromEntries(names.map((name) => [name, 50_000])),
      minimumTipLamports: 50_000,
      partnerUnitLamports: 1_000_000,
    });
    const before = this.harness.outbound.length;
    await this.harness.clock.advance(2_500);
    const later = this.harness.outbound.slice(before).flatMap(({ transactions }) => transactions);
    const offered = new Set(later.map(({ signature }) => signature));
    const found: string[] = [];
    for (const facts of this.accepted) {
      const state = await this.harness.state(facts);
      const isOffered = offered.has(facts.signature);
      if (state !== "open null" || !isOffered) found.push(`${state}, offered: ${isOffered}`);
    }
    return found;
  }

  /** The ends of each accepted transaction after all of them landed. */
  async ends(): Promise<string[]> {
    for (const { signature } of this.accepted) {
      this.harness.answers.set(signature, { slot: 9n, err: null, commitment: "confirmed" });
    }
    await this.harness.clock.advance(30_000);
    return this.accepted.map(({ signature }) => String(this.#ends.get(signature)));
  }
}

it("continues every accepted submission after any reloads and restarts, to one end", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof({ weight: 3, arbitrary: submit }, { weight: 3, arbitrary: reload }, restart),
        {
          maxLength: 10,
        },
      ),
      async (steps) => {
        const run = new Run();
        for (const step of steps) {
          if (step.kind === "submit") await run.submit(step);
          else if (step.kind === "reload") await run.reload(step);
          else await run.restart();
        }
        expect(await run.stopped()).toEqual([]);
        expect(await run.ends()).toEqual(run.accepted.map(() => "landed"));
      },
    ),
    { numRuns: 25 },
  );
});

it("is sent by a route that took it before its minimums were raised, and by no other one", async () => {
  const run = new Run();
  const values = { minimumTipLamports: 0, partnerUnitLamports: 0, kind: "reload" } as const;
  await run.reload({ ...values, routes: { "swqos-1": 10_000 } });
  await run.submit({
    kind: "submit",
    method: "sendTransaction",
    enableFallback: false,
    isQueued: false,
  });
  await run.reload({ ...values, routes: { "swqos-1": 50_000, "swqos-2": 50_000 } });
  expect(new Set(run.harness.routesUsed)).toEqual(new Set(["swqos-1"]));
  expect(run.harness.routesUsed.length).toBeGreaterThan(1);
});
