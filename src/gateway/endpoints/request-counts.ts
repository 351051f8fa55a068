// Counts requests and calls of the gateway by path, method, result and duration.
//
// gateway.ts reports every request, request-context.ts every call; the metrics read the counts.
// Paths and methods that the gateway does not know share one entry, so callers cannot grow the
// tables.

import { DurationHistogram, type HistogramValue } from "../../core/duration-histogram.ts";
import type { Reason } from "../../core/errors.ts";
import { socketStreamMethods } from "../../relay/streams/socket-streams.ts";
import type { HttpResponse } from "../http/types.ts";
import { methods } from "../methods/method-table.ts";
import { subscriptionMethods } from "./subscription-session.ts";

interface Group {
  readonly name: string;
  readonly statuses: Map<number, number>;
  readonly durations: DurationHistogram;
}

/** Group of all other paths. */
const unknownPath = "unknown";
const otherMethod = "other";
const groupByPath: Readonly<Record<string, string>> = {
  "/": "relay",
  "/relay": "relay",
  "/relayb": "relayb",
  "/relay2": "relay2",
  "/shred-pay": "shred_pay",
  "/gethealth": "health",
  "/status": "status",
  "/stream": "stream",
  "/tip_floor": "tip_floor",
  "/tip_floor/history": "tip_history",
  "/tip_stream": "tip_stream",
  "/api/v1/bundles/tip_floor": "tip_floor",
  "/metrics": "metrics",
  "/openrpc.json": "description",
  "/openapi.json": "description",
};
const groupByPrefix: readonly (readonly [string, string])[] = [
  ["/api/v1/", "block_engine"],
  ["/api/", "tracker"],
  ["/health/", "health"],
  ["/portal", "portal"],
];
const knownMethods: ReadonlySet<string> = new Set([
  ...Object.keys(methods),
  ...subscriptionMethods,
  ...socketStreamMethods,
]);

function groupOf(path: string): string {
  if (Object.hasOwn(groupByPath, path)) return groupByPath[path] ?? unknownPath;
  return groupByPrefix.find(([prefix]) => path.startsWith(prefix))?.[1] ?? unknownPath;
}

export class RequestCounts {
  readonly #nowNs: () => bigint;
  readonly #isReadMethod: (method: string) => boolean;
  readonly #groups = new Map<string, Group>();
  /** Counts by method and reason. */
  readonly #calls = new Map<string, Map<string, number>>();
  readonly #refusals = new Map<Reason, number>();

  /** `nowNs`: monotonic. `isReadMethod`: whether the method is passed on to the node. */
  constructor(nowNs: () => bigint, isReadMethod: (method: string) => boolean) {
    this.#nowNs = nowNs;
    this.#isReadMethod = isReadMethod;
    const names = new Set([...Object.values(groupByPath), ...groupByPrefix.map(([, to]) => to)]);
    for (const name of [...names, unknownPath]) {
      const durations = new DurationHistogram();
      this.#groups.set(name, { name, statuses: new Map(), durations });
    }
  }

  /** Calls `answer` and counts its response. `isKnown`: the gateway serves the path. */
  answered<Answer extends HttpResponse | Promise<HttpResponse>>(
    path: string,
    isKnown: boolean,
    answer: () => Answer,
  ): Answer {
    const begunNs = this.#nowNs();
    const group = this.#groups.get(isKnown ? groupOf(path) : unknownPath);
    const returned = answer();
    if (!group) return returned;
    if (returned instanceof Promise) {
      // The server answers a rejection with 500; the caller that awaits `returned` handles it.
      returned.then(
        ({ status }) => this.#count(group, status, begunNs),
        () => this.#count(group, 500, begunNs),
      );
    } else {
      this.#count(group, returned.status, begunNs);
    }
    return returned;
  }

  /** Counts one JSON-RPC call; `reason` null: it succeeded. */
  called(method: string, reason: Reason | null): void {
    const isKnown = knownMethods.has(method) || this.#isReadMethod(method);
    const name = isKnown ? method : otherMethod;
    let reasons = this.#calls.get(name);
    if (!reasons) {
      reasons = new Map();
      this.#calls.set(name, reasons);
    }
    const key = reason ?? "ok";
    reasons.set(key, (reasons.get(key) ?? 0) + 1);
  }

  /** Counts a refusal by the HTTP server itself. */
  refused(reason: Reason): void {
    this.#refusals.set(reason, (this.#refusals.get(reason) ?? 0) + 1);
  }

  // ---- read by the metrics ----

  *requests(): Iterable<readonly [path: string, status: number, count: number]> {
    for (const { name, statuses } of this.#groups.values()) {
      for (const [status, count] of statuses) yield [name, status, count];
    }
  }

  *durations(): Iterable<readonly [path: string, durations: HistogramValue]> {
    for (const { name, statuses, durations } of this.#groups.values()) {
      if (statuses.size > 0) yield [name, durations.value()];
    }
  }

  *calls(): Iterable<readonly [method: string, reason: string, count: number]> {
    for (const [method, reasons] of this.#calls) {
      for (const [reason, count] of reasons) yield [method, reason, count];
    }
  }

  refusals(): Iterable<readonly [reason: string, count: number]> {
    return this.#refusals;
  }

  #count({ statuses, durations }: Group, status: number, begunNs: bigint): void {
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    durations.addNs(this.#nowNs() - begunNs);
  }
}
