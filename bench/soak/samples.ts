// Samples of the service's process and of the feed, once per interval.

import { readdirSync, readFileSync } from "node:fs";

export interface ProcessSample {
  readonly seconds: number;
  readonly rssBytes: number;
  readonly threads: number;
  readonly descriptors: number;
  /** Used JavaScript heap; null: the metrics did not answer. */
  readonly heapBytes: number | null;
}

interface ProcessFacts {
  readonly rssBytes: number;
  readonly threads: number;
  readonly descriptors: number;
}

/** null: the process has ended. */
export function readProcess(pid: number): ProcessFacts | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const field = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? Number.NaN);
    return {
      rssBytes: field("VmRSS") * 1024,
      threads: field("Threads"),
      descriptors: readdirSync(`/proc/${pid}/fd`).length,
    };
  } catch {
    return null;
  }
}

/** Values of the Prometheus metrics, with their labels, and the sum of each name without labels. */
export async function readMetrics(url: string): Promise<Map<string, number> | null> {
  try {
    const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(5000) });
    const values = new Map<string, number>();
    for (const line of (await response.text()).split("\n")) {
      const [, name, labels = "", value] = /^(\w+)(\{.*\})? (\S+)$/.exec(line) ?? [];
      if (name === undefined) continue;
      values.set(name, (values.get(name) ?? 0) + Number(value));
      if (labels !== "") values.set(`${name}${labels}`, Number(value));
    }
    return values;
  } catch {
    return null;
  }
}

export interface Trend {
  readonly first: number;
  readonly last: number;
  readonly max: number;
  /** Mean of the last three quarters. */
  readonly mean: number;
  /** Rise of the fitted line over the last three quarters. */
  readonly rise: number;
  /** Number of samples of the fit. */
  readonly count: number;
}

/** Line through the last three quarters of the time, by least squares. */
export function trendOf(
  points: readonly { readonly seconds: number; readonly value: number }[],
): Trend {
  const first = points[0] ?? { seconds: 0, value: 0 };
  const last = points.at(-1) ?? first;
  const fromSeconds = first.seconds + (last.seconds - first.seconds) / 4;
  const fitted = points.filter(({ seconds }) => seconds >= fromSeconds);
  const count = fitted.length;
  const meanOf = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / count;
  const meanSeconds = meanOf(fitted.map(({ seconds }) => seconds));
  const mean = meanOf(fitted.map(({ value }) => value));
  let above = 0;
  let below = 0;
  for (const { seconds, value } of fitted) {
    above += (seconds - meanSeconds) * (value - mean);
    below += (seconds - meanSeconds) ** 2;
  }
  const perSecond = below === 0 ? 0 : above / below;
  return {
    first: first.value,
    last: last.value,
    max: Math.max(...points.map(({ value }) => value)),
    mean,
    rise: perSecond * (last.seconds - fromSeconds),
    count,
  };
}

export interface FeedSample {
  readonly seconds: number;
  /** Datagrams that the whole source has sent. */
  readonly sent: number;
  /** Different shreds by destination. */
  readonly received: ReadonlyMap<string, number>;
  /** The fault at this time. */
  readonly fault: string;
}

export interface Silence {
  readonly seconds: number;
  readonly fault: string;
}

/** Longest time in which a destination received nothing, although the source sent. */
export function longestSilence(samples: readonly FeedSample[], name: string): Silence {
  let longest: Silence = { seconds: 0, fault: "none" };
  let sinceSeconds = samples[0]?.seconds ?? 0;
  for (let i = 1; i < samples.length; i++) {
    const before = samples[i - 1];
    const now = samples[i];
    if (!before || !now) continue;
    const isSilent =
      now.sent > before.sent && (now.received.get(name) ?? 0) === (before.received.get(name) ?? 0);
    if (!isSilent) {
      sinceSeconds = now.seconds;
      continue;
    }
    const seconds = now.seconds - sinceSeconds;
    if (seconds > longest.seconds) longest = { seconds, fault: now.fault };
  }
  return longest;
}
