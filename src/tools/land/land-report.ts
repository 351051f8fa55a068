// Report of a landing benchmark: every number that `--json` prints and that screens and pages show. Pure.
//
// Times are nanoseconds, amounts lamports, shares between 0 and 1. Missing values are null. Only rounds in which
// every sender was called count, except for the cost.

import { type Interval, isOutside } from "../report/bootstrap.ts";
import {
  type Comparison,
  comparisonOf,
  type Estimate,
  type Percentiles,
  percentilesOf,
  shareOf,
  Turns,
} from "./land-statistics.ts";
import { costOf, type LandPlan, publicAddress } from "./plan.ts";
import { isComplete, type RoundRecord, type TransactionRecord } from "./records.ts";

export interface LandFacts {
  readonly plan: LandPlan;
  readonly rounds: readonly RoundRecord[];
  readonly seconds: number;
  /** "shreds", or "node" with the interval of its polls. */
  readonly observedBy: "shreds" | "node";
  /** Resolution of the times to landing. */
  readonly resolutionNs: number;
  /** The most that all signed transactions can cost. */
  readonly reservedLamports: bigint;
  readonly notes: readonly string[];
}

export interface SenderReport {
  readonly name: string;
  readonly dialect: string;
  /** Host, without keys. */
  readonly address: string;
  readonly tipLamports: bigint;
  readonly feeLamports: bigint;
  readonly sent: number;
  /** Without an end yet. */
  readonly open: number;
  /** In a confirmed block, also with an error. */
  readonly landed: number;
  /** In a confirmed block with an error. */
  readonly failed: number;
  /** Share of the transactions with an end. */
  readonly landedShare: Estimate;
  readonly responseNs: Percentiles;
  readonly timeNs: Percentiles;
  readonly slots: Percentiles;
  readonly position: {
    readonly count: number;
    /** Median number of transactions before it in its block, and their share of the block. */
    readonly index: number | null;
    readonly share: number | null;
    /** Median of the first data shred of its FEC set; null without a shred feed. */
    readonly fecSet: number | null;
  };
  /** Transactions that did not land, by reason. */
  readonly drops: Readonly<Record<string, number>>;
  readonly cost: {
    readonly feesLamports: bigint;
    readonly tipsLamports: bigint;
    readonly totalLamports: bigint;
    readonly perLandingLamports: bigint | null;
  };
}

export interface PairReport extends Comparison {
  readonly a: string;
  readonly b: string;
  /** Whether both intervals of the order exclude chance; null: too few rounds. */
  readonly isTimeSignificant: boolean | null;
  /** Whether the interval of the difference excludes zero; null: too few rounds. */
  readonly isLandedSignificant: boolean | null;
}

export interface LandReport {
  readonly seconds: number;
  readonly observedBy: "shreds" | "node";
  readonly resolutionNs: number;
  readonly sameNonce: boolean;
  readonly rounds: {
    readonly planned: number;
    readonly complete: number;
    /** A kill interrupted them: they cost, and compare nothing. */
    readonly interrupted: number;
  };
  /** Turns of leaders, from which the intervals come. */
  readonly turns: number;
  readonly budget: {
    readonly limitLamports: bigint;
    readonly reservedLamports: bigint;
    readonly spentLamports: bigint;
  };
  readonly senders: readonly SenderReport[];
  readonly pairs: readonly PairReport[];
  readonly notes: readonly string[];
}

function isLanded(transaction: TransactionRecord | undefined): boolean {
  return Boolean(transaction?.end?.landing);
}

/** The reason why a transaction did not land; null: it did, or it has no end. */
function dropReason({ end, answer }: TransactionRecord): string | null {
  if (!end || end.landing) return null;
  if (end.state === "superseded") return "superseded";
  if (answer?.error) return `rejected: ${answer.error.reason}`;
  return end.state;
}

function median(values: readonly (number | null | undefined)[]): number | null {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.toSorted((a, b) => a - b)[Math.ceil(known.length / 2) - 1] ?? null;
}

function costReport(plan: LandPlan, number: number, rounds: readonly RoundRecord[]) {
  const sender = plan.senders[number];
  const { feeLamports, tipLamports } = sender
    ? costOf(plan, sender)
    : { feeLamports: 0n, tipLamports: 0n };
  let [fees, tips, landings] = [0n, 0n, 0n];
  for (const { transactions } of rounds) {
    const state = transactions[number]?.end?.state;
    if (state !== "landed" && state !== "failed") continue;
    fees += feeLamports;
    landings++;
    if (state === "landed") tips += tipLamports;
  }
  return {
    feesLamports: fees,
    tipsLamports: tips,
    totalLamports: fees + tips,
    perLandingLamports: landings === 0n ? null : (fees + tips) / landings,
  };
}

function counts(reasons: readonly (string | null)[]): Record<string, number> {
  const found: Record<string, number> = {};
  for (const reason of reasons) if (reason !== null) found[reason] = (found[reason] ?? 0) + 1;
  return found;
}

/** Complete rounds, and their turns; null: without intervals. */
interface ReportContext {
  readonly facts: LandFacts;
  readonly rounds: readonly RoundRecord[];
  readonly turns: Turns | null;
}

function senderReport(number: number, { facts, rounds, turns }: ReportContext): SenderReport {
  const { plan } = facts;
  const sender = plan.senders[number];
  if (!sender) throw new RangeError(`unknown sender number ${number}; expected one of the plan`);
  const own = rounds.flatMap(({ transactions }) => transactions[number] ?? []);
  const landings = own.map(({ end }) => end?.landing ?? null);
  const ended = own.filter(({ end }) => end !== null);
  const hasAllEnds = ended.length === own.length;
  const { tipLamports, feeLamports } = costOf(plan, sender);
  const blocks = landings.flatMap((landing) => landing?.block ?? []);
  return {
    name: sender.name,
    dialect: sender.dialect,
    address: publicAddress(sender),
    tipLamports,
    feeLamports,
    sent: own.length,
    open: own.length - ended.length,
    landed: landings.filter((landing) => landing !== null).length,
    failed: own.filter(({ end }) => end?.state === "failed").length,
    // The groups of the bootstrap need every round.
    landedShare: shareOf(ended.map(isLanded), hasAllEnds ? turns : null),
    responseNs: percentilesOf(
      own.map(({ answer }) => answer?.responseNs ?? null),
      turns,
    ),
    timeNs: percentilesOf(
      landings.map((landing) => landing?.timeNs ?? null),
      turns,
    ),
    slots: percentilesOf(
      landings.map((landing) => landing?.slots ?? null),
      turns,
    ),
    position: {
      count: blocks.length,
      index: median(blocks.map(({ index }) => index)),
      share: median(blocks.map(({ index, transactions }) => index / transactions)),
      fecSet: median(landings.map((landing) => landing?.shred?.fecSet)),
    },
    drops: counts(own.map(dropReason)),
    cost: costReport(plan, number, facts.rounds),
  };
}

/** Above 0: `a` is earlier in the chain. null: not both landed, or the order is unknown. */
function chainOrder(a: TransactionRecord, b: TransactionRecord): number | null {
  const [first, second] = [a.end?.landing, b.end?.landing];
  if (!first || !second) return null;
  if (first.slot !== second.slot) return second.slot - first.slot;
  if (first.block && second.block) return second.block.index - first.block.index;
  return null;
}

function advanceNs(a: TransactionRecord, b: TransactionRecord): number | null {
  const [first, second] = [a.end?.landing?.timeNs ?? null, b.end?.landing?.timeNs ?? null];
  return first === null || second === null ? null : second - first;
}

function excludes(interval: Interval | null, value: number): boolean | null {
  return interval && isOutside(interval, value);
}

function pairReport(a: number, b: number, context: ReportContext): PairReport {
  const { facts, rounds, turns } = context;
  const { senders } = facts.plan;
  const both = rounds.flatMap(({ transactions }) => {
    const [first, second] = [transactions[a], transactions[b]];
    return first && second ? [{ first, second }] : [];
  });
  const pairs = (senders.length * (senders.length - 1)) / 2;
  const comparison = comparisonOf(
    {
      landedA: both.map(({ first }) => isLanded(first)),
      landedB: both.map(({ second }) => isLanded(second)),
      order: both.map(({ first, second }) => chainOrder(first, second)),
      advanceNs: both.map(({ first, second }) => advanceNs(first, second)),
    },
    turns,
    pairs,
  );
  const order = excludes(comparison.winShare.interval, 0.5);
  const time = excludes(comparison.advanceNs.interval, 0);
  return {
    a: senders[a]?.name ?? "",
    b: senders[b]?.name ?? "",
    ...comparison,
    isTimeSignificant: order === null || time === null ? null : order && time,
    isLandedSignificant: excludes(comparison.landedDifference.interval, 0),
  };
}

/** `withIntervals` costs up to some hundred milliseconds, too much for a live screen. */
export function landReport(facts: LandFacts, withIntervals: boolean): LandReport {
  const { plan } = facts;
  const rounds = facts.rounds.filter(isComplete);
  const turns = new Turns(rounds.map(({ slot }) => slot));
  const context = { facts, rounds, turns: withIntervals ? turns : null };
  const senders = plan.senders.map((_, number) => senderReport(number, context));
  return {
    seconds: facts.seconds,
    observedBy: facts.observedBy,
    resolutionNs: facts.resolutionNs,
    sameNonce: plan.nonceAccount !== null,
    rounds: {
      planned: plan.rounds,
      complete: rounds.length,
      interrupted: facts.rounds.length - rounds.length,
    },
    turns: turns.count,
    budget: {
      limitLamports: plan.budgetLamports,
      reservedLamports: facts.reservedLamports,
      spentLamports: senders.reduce((sum, { cost }) => sum + cost.totalLamports, 0n),
    },
    senders,
    pairs: senders.flatMap((_, a) =>
      senders.slice(a + 1).map((__, i) => pairReport(a, a + 1 + i, context)),
    ),
    notes: facts.notes,
  };
}
