// Counts of the load's calls by kind: answers, rejections by reason, calls without an answer, durations.

import { ShredwayCallError } from "../../src/client/index.ts";
import { messageOf } from "../../src/core/errors.ts";
import { LagHistogram } from "../../src/core/log-linear-histogram.ts";

export interface KindCounts {
  calls: number;
  ok: number;
  /** The service did not answer, or closed the connection. */
  unanswered: number;
  readonly rejected: Map<string, number>;
  /** The last message of each reason. */
  readonly messages: Map<string, string>;
  readonly durations: LagHistogram;
}

const silentReasons: readonly string[] = ["unreachable", "timeout", "answer_invalid"];

export class CallCounts {
  readonly kinds = new Map<string, KindCounts>();
  #underWay = 0;

  get underWay(): number {
    return this.#underWay;
  }

  kind(name: string): KindCounts {
    const known = this.kinds.get(name);
    if (known) return known;
    const made: KindCounts = {
      calls: 0,
      ok: 0,
      unanswered: 0,
      rejected: new Map(),
      messages: new Map(),
      durations: new LagHistogram(),
    };
    this.kinds.set(name, made);
    return made;
  }

  /** Runs one call. Returns undefined if it did not succeed. */
  async run<T>(name: string, call: () => Promise<T>): Promise<T | undefined> {
    const counts = this.kind(name);
    counts.calls++;
    this.#underWay++;
    const begin = performance.now();
    try {
      const result = await call();
      counts.ok++;
      counts.durations.record((performance.now() - begin) * 1e6);
      return result;
    } catch (error) {
      const reason = error instanceof ShredwayCallError ? error.reason : "unreachable";
      if (silentReasons.includes(reason)) counts.unanswered++;
      counts.rejected.set(reason, (counts.rejected.get(reason) ?? 0) + 1);
      counts.messages.set(reason, messageOf(error));
      return undefined;
    } finally {
      this.#underWay--;
    }
  }
}
