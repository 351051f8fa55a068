// Metrics: the name, the meaning and the reader of each value on /metrics.
//
// The lists of this folder consist of these. exposition.ts writes them for Prometheus, and document.ts
// writes docs/metrics.md from the same lists, so every metric is documented.

import type { HistogramValue } from "../../core/duration-histogram.ts";

export type { HistogramValue } from "../../core/duration-histogram.ts";

export type MetricType = "counter" | "gauge" | "histogram";
export type MetricValue = number | bigint;

/** Adds one sample. `labels` are the label values, in the order of the metric's label names. */
type Add<Value> = (labels: readonly string[], value: Value) => void;

interface Described {
  /** The name in Prometheus; the name of a counter ends in _total. */
  readonly name: string;
  readonly labels: readonly string[];
  /** One sentence. */
  readonly help: string;
  /** A name that the next release no longer writes. */
  readonly formerName?: string;
}

/** `Facts`: the values of one part of the service at the time of the scrape. */
export type Metric<Facts> = Described &
  (
    | {
        readonly type: "counter" | "gauge";
        readonly read: (facts: Facts, add: Add<MetricValue>) => void;
      }
    | {
        readonly type: "histogram";
        readonly read: (facts: Facts, add: Add<HistogramValue>) => void;
      }
  );

const noLabels: readonly string[] = [];

/** `read` returns null if the value is unknown; the scrape then omits the metric. */
export function counter<Facts>(
  name: string,
  help: string,
  read: (facts: Facts) => MetricValue | null,
): Metric<Facts> {
  return { name, help, type: "counter", labels: noLabels, read: single(read) };
}

export function gauge<Facts>(
  name: string,
  help: string,
  read: (facts: Facts) => MetricValue | null,
): Metric<Facts> {
  return { name, help, type: "gauge", labels: noLabels, read: single(read) };
}

export function histogram<Facts>(
  name: string,
  help: string,
  read: (facts: Facts) => HistogramValue | null,
): Metric<Facts> {
  return { name, help, type: "histogram", labels: noLabels, read: single(read) };
}

export function counters<Facts>(
  name: string,
  labels: readonly string[],
  help: string,
  read: (facts: Facts, add: Add<MetricValue>) => void,
): Metric<Facts> {
  return { name, help, type: "counter", labels, read };
}

export function gauges<Facts>(
  name: string,
  labels: readonly string[],
  help: string,
  read: (facts: Facts, add: Add<MetricValue>) => void,
): Metric<Facts> {
  return { name, help, type: "gauge", labels, read };
}

export function histograms<Facts>(
  name: string,
  labels: readonly string[],
  help: string,
  read: (facts: Facts, add: Add<HistogramValue>) => void,
): Metric<Facts> {
  return { name, help, type: "histogram", labels, read };
}

function single<Facts, Value>(read: (facts: Facts) => Value | null) {
  return (facts: Facts, add: Add<Value>): void => {
    const value = read(facts);
    if (value !== null) add(noLabels, value);
  };
}

/** The same metric, also written under its former name for one release. */
export function renamed<Facts>(formerName: string, metric: Metric<Facts>): Metric<Facts> {
  return { ...metric, formerName };
}

/** The unit at the end of a name; undefined: a plain count. */
export function unitOf(name: string): string | undefined {
  return /_(seconds|bytes|lamports|ratio)(?:_total)?$/.exec(name)?.[1];
}
