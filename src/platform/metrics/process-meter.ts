// ProcessMeter: CPU time and memory of the process, and the lag of its event loop.
//
// One per service; src/app/operations.ts creates and closes it. It measures the delay of a timer continuously,
// because a measurement at the time of the scrape would miss every delay between two scrapes.

import { readdirSync } from "node:fs";
import { constants, PerformanceObserver, performance } from "node:perf_hooks";
import type { Clock, Timer } from "../../core/clock.ts";
import { DurationHistogram } from "../../core/duration-histogram.ts";
import { openFilesLimit } from "../../core/files.ts";
import type { ProcessFacts } from "./process-list.ts";

const tickMs = 50;

const collectionKinds = new Map<unknown, string>([
  [constants.NODE_PERFORMANCE_GC_MAJOR, "major"],
  [constants.NODE_PERFORMANCE_GC_MINOR, "minor"],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, "incremental"],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, "weakcb"],
]);

function openFiles(): number | null {
  try {
    return readdirSync("/proc/self/fd").length - 1; // without the descriptor of this read
  } catch {
    return null;
  }
}

function kindOf(entry: object): string {
  const detail: unknown = "detail" in entry ? entry.detail : undefined;
  const kind = typeof detail === "object" && detail && "kind" in detail ? detail.kind : undefined;
  return collectionKinds.get(kind) ?? "other";
}

export class ProcessMeter {
  readonly #clock: Clock;
  readonly #lag = new DurationHistogram();
  readonly #collections = new Map<string, DurationHistogram>();
  readonly #observer: PerformanceObserver;
  readonly #timer: Timer;
  readonly #maxFiles = openFilesLimit();
  #tickedNs: bigint;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#tickedNs = clock.monotonicNs();
    this.#timer = clock.every(tickMs, () => this.#tick());
    for (const kind of collectionKinds.values()) {
      this.#collections.set(kind, new DurationHistogram());
    }
    this.#observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        this.#collections.get(kindOf(entry))?.add(entry.duration / 1000);
      }
    });
    this.#observer.observe({ entryTypes: ["gc"] });
  }

  facts(): ProcessFacts {
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    return {
      cpu: { userSeconds: user / 1e6, systemSeconds: system / 1e6 },
      residentBytes: rss,
      heapUsedBytes: heapUsed,
      heapTotalBytes: heapTotal,
      externalBytes: external,
      openFiles: openFiles(),
      maxFiles: this.#maxFiles,
      startedSeconds: performance.timeOrigin / 1000,
      loopActiveSeconds: performance.eventLoopUtilization().active / 1000,
      loopLag: this.#lag.value(),
      collections: Array.from(this.#collections, ([kind, durations]) => [kind, durations.value()]),
    };
  }

  close(): void {
    this.#timer.cancel();
    this.#observer.disconnect();
  }

  #tick(): void {
    const nowNs = this.#clock.monotonicNs();
    this.#lag.addNs(nowNs - this.#tickedNs - BigInt(tickMs) * 1_000_000n);
    this.#tickedNs = nowNs;
  }
}
