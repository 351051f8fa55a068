// What a metric is: its name, what it means, and how it is read from the facts of a part.
//
// The lists of this folder are made of these; exposition.ts writes them for Prometheus, document.ts
// writes docs/metrics.md from the same lists, so no metric can exist undocumented.

import type { HistogramValue } from "../../core/duration-histogram.ts";

export type { HistogramValue } from "../../core/duration-histogram.ts";

export type MetricType = "counter" | "gauge" | "histogram";
export type MetricValue = number | bigint;

/** One value more; `labels` in the order of the metric's. */
type Add<Value> = (labels: readonly string[], value: Value) => void;

interface Described {
  /** As Prometheus shows it: counters end in _total. */
  readonly name: string;
  readonly labels: readonly string[];
  /** One sentence. */
  readonly help: string;
}

/** `Facts`: what the part tells at the moment of the scrape. */
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

/** null: the value is not known now, and nothing is shown. */
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

/** The unit that a name ends with; undefined: it counts things. */
export function unitOf(name: string): string | undefined {
  return /_(seconds|bytes|lamports|ratio)(?:_total)?$/.exec(name)?.[1];
}
