// Metrics of the process, under the names that every Prometheus client gives them, and what it is built of.
//
// process_* and nodejs_* are read by dashboards of others, too; the rest is Shredway's own.

import type { HistogramValue } from "../../core/duration-histogram.ts";
import { counter, counters, gauge, gauges, histogram, histograms, type Metric } from "./types.ts";

export interface ProcessFacts {
  readonly cpu: { readonly userSeconds: number; readonly systemSeconds: number };
  readonly residentBytes: number;
  readonly heapUsedBytes: number;
  readonly heapTotalBytes: number;
  readonly externalBytes: number;
  readonly openFiles: number | null;
  readonly maxFiles: number | null;
  /** Unix time. */
  readonly startedSeconds: number;
  readonly loopActiveSeconds: number;
  readonly loopLag: HistogramValue;
  readonly collections: Iterable<readonly [kind: string, durations: HistogramValue]>;
}

export interface BuildFacts {
  readonly version: string;
  readonly nodeVersion: string;
  readonly ed25519: string;
}

export interface CheckFacts {
  readonly isReady: boolean;
  readonly checks: readonly { readonly name: string; readonly ok: boolean }[];
}

export const buildMetrics: readonly Metric<BuildFacts>[] = [
  gauges(
    "shredway_build_info",
    ["version", "node_version", "ed25519"],
    "Always 1: versions of Shredway and Node.js, and the library that checks signatures.",
    ({ version, nodeVersion, ed25519 }, add) => add([version, nodeVersion, ed25519], 1),
  ),
];

export const checkMetrics: readonly Metric<CheckFacts>[] = [
  gauge("shredway_ready", "1: ready for traffic, as /health/ready says. 0: not.", ({ isReady }) =>
    isReady ? 1 : 0,
  ),
  gauges(
    "shredway_check_ok",
    ["check"],
    "1: the check of /health/ready holds. 0: it does not.",
    ({ checks }, add) => {
      for (const { name, ok } of checks) add([name], ok ? 1 : 0);
    },
  ),
];

export const processMetrics: readonly Metric<ProcessFacts>[] = [
  counter(
    "process_cpu_seconds_total",
    "Processor time of the process, all threads.",
    ({ cpu }) => cpu.userSeconds + cpu.systemSeconds,
  ),
  counters(
    "nodejs_cpu_seconds_total",
    ["mode"],
    "Processor time of the process by mode, all threads.",
    ({ cpu }, add) => {
      add(["user"], cpu.userSeconds);
      add(["system"], cpu.systemSeconds);
    },
  ),
  gauge(
    "process_resident_memory_bytes",
    "Memory of the process that is in RAM.",
    ({ residentBytes }) => residentBytes,
  ),
  gauge(
    "process_start_time_seconds",
    "When the process began; Unix time.",
    ({ startedSeconds }) => startedSeconds,
  ),
  gauge("process_open_fds", "Open file descriptors.", ({ openFiles }) => openFiles),
  gauge("process_max_fds", "File descriptors that may be open.", ({ maxFiles }) => maxFiles),
  gauge("nodejs_heap_size_used_bytes", "Heap in use.", ({ heapUsedBytes }) => heapUsedBytes),
  gauge("nodejs_heap_size_total_bytes", "Heap taken.", ({ heapTotalBytes }) => heapTotalBytes),
  gauge(
    "nodejs_external_memory_bytes",
    "Memory of objects outside the heap.",
    ({ externalBytes }) => externalBytes,
  ),
  histogram(
    "nodejs_eventloop_lag_seconds",
    "How late a timer of 50 ms came: so long everything in the event loop waits.",
    ({ loopLag }) => loopLag,
  ),
  counter(
    "nodejs_eventloop_active_seconds_total",
    "Time in which the event loop was at work; its rate is the utilisation.",
    ({ loopActiveSeconds }) => loopActiveSeconds,
  ),
  histograms(
    "nodejs_gc_duration_seconds",
    ["kind"],
    "Garbage collections by kind.",
    ({ collections }, add) => {
      for (const [kind, durations] of collections) add([kind], durations);
    },
  ),
];
