// Metrics of the process and of its build.
//
// process_* and nodejs_* have the names that Prometheus client libraries use, so common dashboards work.

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
    "Always 1. The labels are the versions of Shredway and Node.js, and the library that checks signatures.",
    ({ version, nodeVersion, ed25519 }, add) => add([version, nodeVersion, ed25519], 1),
  ),
];

export const checkMetrics: readonly Metric<CheckFacts>[] = [
  gauge(
    "shredway_ready",
    "1: ready for traffic, as /health/ready reports. 0: not ready.",
    ({ isReady }) => (isReady ? 1 : 0),
  ),
  gauges(
    "shredway_check_ok",
    ["check"],
    "1: the check of /health/ready passes. 0: it fails.",
    ({ checks }, add) => {
      for (const { name, ok } of checks) add([name], ok ? 1 : 0);
    },
  ),
];

export const processMetrics: readonly Metric<ProcessFacts>[] = [
  counter(
    "process_cpu_seconds_total",
    "CPU time of all threads of the process.",
    ({ cpu }) => cpu.userSeconds + cpu.systemSeconds,
  ),
  counters(
    "nodejs_cpu_seconds_total",
    ["mode"],
    "CPU time of all threads of the process, by mode.",
    ({ cpu }, add) => {
      add(["user"], cpu.userSeconds);
      add(["system"], cpu.systemSeconds);
    },
  ),
  gauge(
    "process_resident_memory_bytes",
    "Resident memory of the process.",
    ({ residentBytes }) => residentBytes,
  ),
  gauge(
    "process_start_time_seconds",
    "Start time of the process as Unix time.",
    ({ startedSeconds }) => startedSeconds,
  ),
  gauge("process_open_fds", "Open file descriptors.", ({ openFiles }) => openFiles),
  gauge("process_max_fds", "Maximum number of open file descriptors.", ({ maxFiles }) => maxFiles),
  gauge(
    "nodejs_heap_size_used_bytes",
    "Used JavaScript heap.",
    ({ heapUsedBytes }) => heapUsedBytes,
  ),
  gauge(
    "nodejs_heap_size_total_bytes",
    "Allocated JavaScript heap.",
    ({ heapTotalBytes }) => heapTotalBytes,
  ),
  gauge(
    "nodejs_external_memory_bytes",
    "Memory of objects outside the JavaScript heap.",
    ({ externalBytes }) => externalBytes,
  ),
  histogram(
    "nodejs_eventloop_lag_seconds",
    "Delay of a 50 ms timer: the time that other work in the event loop also waits.",
    ({ loopLag }) => loopLag,
  ),
  counter(
    "nodejs_eventloop_active_seconds_total",
    "Time during which the event loop was busy. The rate of this counter is the utilisation.",
    ({ loopActiveSeconds }) => loopActiveSeconds,
  ),
  histograms(
    "nodejs_gc_duration_seconds",
    ["kind"],
    "Duration of garbage collections by kind.",
    ({ collections }, add) => {
      for (const [kind, durations] of collections) add([kind], durations);
    },
  ),
];
