// Verdict of a landing benchmark in sentences that claim no more than the numbers show. Pure.

import type { Interval } from "../report/bootstrap.ts";
import { formatLag, grouped, percent } from "../report/number-text.ts";
import type { LandReport, PairReport, SenderReport } from "./land-report.ts";

function range(interval: Interval | null, text: (value: number) => string): string {
  return interval ? ` (${text(interval.low)} to ${text(interval.high)})` : "";
}

function senderSentence(sender: SenderReport, { sameNonce }: LandReport): string {
  const { name, landed, sent, landedShare, timeNs } = sender;
  const share = `${percent(landedShare.value)}${range(landedShare.interval, percent)}`;
  const did = sameNonce ? "won" : "landed";
  const counted = `${name} ${did} ${grouped(landed)} of ${grouped(sent)}, ${share}`;
  const { value } = timeNs.p50;
  if (value === null) return `${counted}.`;
  return `${counted}, in ${formatLag(value)}${range(timeNs.p50.interval, formatLag)} in the median.`;
}

function timeSentence(pair: PairReport): string {
  const { a, b, both, winShare, advanceNs, isTimeSignificant } = pair;
  if (both === 0) return `No round landed both by ${a} and by ${b}.`;
  const median = advanceNs.value;
  const side = median === null || median === 0 ? "" : median > 0 ? " ahead" : " behind";
  const by =
    median === null
      ? ""
      : `, ${formatLag(Math.abs(median))}${side} in the median${range(advanceNs.interval, formatLag)}`;
  const text = `Of the ${grouped(both)} rounds in which both landed, ${a} was before ${b} in ${percent(winShare.value)}${range(winShare.interval, percent)}${by}`;
  if (isTimeSignificant === null) return `${text}; too few rounds to exclude chance.`;
  return isTimeSignificant ? `${text}.` : `${text}: no difference beyond chance.`;
}

function points(value: number): string {
  return (100 * value).toFixed(1);
}

function landedSentence(pair: PairReport, sameNonce: boolean): string {
  const { a, b, landedDifference, isLandedSignificant } = pair;
  const { value, interval } = landedDifference;
  const [more, less] = (value ?? 0) < 0 ? [b, a] : [a, b];
  const flipped = interval && more === b && { low: -interval.high, high: -interval.low };
  const size = `${points(Math.abs(value ?? 0))} percentage points${range(flipped || interval, points)}`;
  const did = sameNonce ? "won" : "landed";
  const text =
    value === 0
      ? `${a} and ${b} ${did} equally often${range(interval, points)}`
      : `${more} ${did} more often than ${less} by ${size}`;
  if (isLandedSignificant === null) return `${text}; too few rounds to exclude chance.`;
  return isLandedSignificant ? `${text}.` : `${text}: no difference beyond chance.`;
}

function warnings(report: LandReport): string[] {
  const { interrupted } = report.rounds;
  const silent = report.senders.filter(({ sent, responseNs, drops }) => {
    const rejected = Object.keys(drops).some((reason) => reason.startsWith("rejected"));
    return sent > 0 && responseNs.count === 0 && rejected;
  });
  const waiting = report.senders.filter(({ open, drops }) => open + (drops["not_landed"] ?? 0) > 0);
  const unsettled = waiting.reduce(
    (sum, { open, drops }) => sum + open + (drops["not_landed"] ?? 0),
    0,
  );
  return [
    ...silent.map(({ name }) => `${name} never answered.`),
    ...(interrupted > 0
      ? [
          `${grouped(interrupted)} rounds were interrupted; they count as cost and in no comparison.`,
        ]
      : []),
    ...(unsettled > 0
      ? [
          `${grouped(unsettled)} transactions had no final state when the benchmark ended; they may still land and cost.`,
        ]
      : []),
  ];
}

/** One sentence per line: each sender, then each pair. */
export function landVerdict(report: LandReport): string[] {
  if (report.rounds.complete === 0) {
    return ["No result: no round was sent to every sender.", ...warnings(report), ...report.notes];
  }
  const pairs = report.pairs.flatMap((pair) => [
    ...(report.sameNonce ? [] : [timeSentence(pair)]),
    landedSentence(pair, report.sameNonce),
  ]);
  return [
    ...report.senders.map((sender) => senderSentence(sender, report)),
    ...pairs,
    ...warnings(report),
    ...report.notes,
  ];
}
