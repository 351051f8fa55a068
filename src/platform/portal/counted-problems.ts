// Counted problems: faults that the service counts and does not log one by one.
//
// Used by live-feed.ts for the operator's view, once a second while a feed is open. A red number of a table
// is therefore also in the list of problems, with the time of its last change.

import { maskKeys } from "../../core/log.ts";
import type { RouteSnapshot } from "../../gateway/submission/types.ts";
import { timeText } from "./api-key-actions.ts";
import type { Sample } from "./sampler.ts";
import type { ProblemView } from "./types.ts";

interface Fault {
  /** Stable while the count grows. */
  readonly name: string;
  readonly count: bigint;
  readonly text: string;
  /** Wall time of the newest one; null: unknown, but the count may change. */
  readonly atNs: bigint | null;
}

function number(value: bigint): string {
  return value.toLocaleString("en-US");
}

function dropsOf({ now, minuteAgo }: Sample): Fault[] {
  return now.workers.flatMap(({ receive_drops: drops }, i) => {
    if (drops === 0n) return [];
    const recent = drops - (minuteAgo.workers[i]?.receive_drops ?? 0n);
    const text =
      `relay: worker ${i}: the kernel dropped ${number(drops)} packets since the start, ` +
      `${number(recent)} in the last minute; raise relay.receive.bufferBytes or relay.workers`;
    return [{ name: `drops ${i}`, count: drops, text, atNs: null }];
  });
}

function failuresOf(routes: readonly RouteSnapshot[]): Fault[] {
  return routes.flatMap(({ name, failed, refused, lastFailure, lastFailureNs }) => {
    const count = failed + refused;
    if (count === 0n && lastFailure === "") return [];
    const last = lastFailure === "" ? "" : `; last failure: ${maskKeys(lastFailure)}`;
    const text = `route ${name}: ${number(failed)} requests failed, ${number(refused)} were refused${last}`;
    return [{ name: `route ${name}`, count, text, atNs: lastFailureNs }];
  });
}

export class CountedProblems {
  /** The last count of each fault, and the time of its last change; null: before the first look. */
  readonly #seen = new Map<string, { readonly count: bigint; readonly atNs: bigint | null }>();

  /** Forgets the counts, because nobody watches them. */
  forget(): void {
    this.#seen.clear();
  }

  /** Called once a second, so that times are exact to a second. `nowNs` is wall time. */
  views(sample: Sample | null, routes: readonly RouteSnapshot[], nowNs: bigint): ProblemView[] {
    const faults = [...(sample ? dropsOf(sample) : []), ...failuresOf(routes)];
    return faults.map(({ name, count, text, atNs }) => {
      const seen = this.#seen.get(name);
      const changedNs = seen && seen.count !== count ? nowNs : (seen?.atNs ?? null);
      this.#seen.set(name, { count, atNs: changedNs });
      const newestNs = atNs ?? changedNs;
      const time = newestNs === null ? null : timeText(newestNs);
      return { time, level: "warn", text, count: 1 };
    });
  }
}
