// Runs a landing benchmark from its plan to its report: checks, journal, senders, shred feed, screen and files.
//
// Called by commands/land.ts. Everything that can be wrong is checked before the first transaction is signed.

import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { systemClock } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import type { KeyPair } from "../../core/key-pair.ts";
import { createLogger } from "../../core/log.ts";
import { type FeedOption, leadersFromNode } from "../listen/feed-options.ts";
import { exitCodes, usageError } from "../terminal/command.ts";
import { toJson } from "../terminal/formatting.ts";
import { messageIn } from "../terminal/log-lines.ts";
import { every, type Terminal } from "../terminal/terminal.ts";
import { Budget } from "./budget.ts";
import { Journal } from "./journal.ts";
import type { JournalState } from "./journal-reader.ts";
import { landPage } from "./land-page.ts";
import { landSvg } from "./land-picture.ts";
import { type LandFacts, landReport } from "./land-report.ts";
import { amountText, costLines, landLine, landLines, landSummary } from "./land-screen.ts";
import { landVerdict } from "./land-verdict.ts";
import type { LandNode } from "./node.ts";
import { type OpenSender, openSenders } from "./open-senders.ts";
import { costOf, type LandPlan, publicPlan, roundCost } from "./plan.ts";
import type { RoundRecord } from "./records.ts";
import { LandRun } from "./run.ts";
import { ShredObserver } from "./shred-observer.ts";
import { landTransaction, markLamportsMax, messageOfWire } from "./transaction.ts";
import { transactionTable } from "./transaction-table.ts";

const refreshMs = 1000;
/** An account must keep this balance, or nothing. */
const rentExemptLamports = 890_880n;

export interface LandOutputs {
  readonly json: boolean;
  readonly svg: string | undefined;
  readonly html: string | undefined;
  readonly csv: string | undefined;
}

export interface LandChoice {
  readonly plan: LandPlan;
  readonly payer: KeyPair;
  readonly node: LandNode;
  readonly nodeUrl: string;
  /** Feed of shreds; null: the node reports landings. */
  readonly feed: FeedOption | null;
  readonly waitMs: number;
  readonly pollMs: number;
  readonly timeoutMs: number;
  /** Only state the cost. */
  readonly isDryRun: boolean;
  /** Journal to create; undefined: a file in the current folder. */
  readonly journal: string | undefined;
  /** Journal to continue. */
  readonly resume: string | undefined;
  readonly outputs: LandOutputs;
  /** Called with the addresses of the shred feed. */
  readonly onFeed?: (addresses: readonly string[]) => void;
}

function write(file: string, content: string): void {
  try {
    writeFileSync(file, content);
  } catch (cause) {
    throw new ShredwayError("system", `cannot write ${file}: ${messageOf(cause)}`, { cause });
  }
}

async function checkPayer({ plan, payer, node }: LandChoice): Promise<void> {
  const needed = roundCost(plan) * BigInt(plan.rounds) + markLamportsMax + rentExemptLamports;
  const balance = await node.balance(payer.address);
  if (balance >= needed) return;
  throw new ShredwayError(
    "value_invalid",
    `payer ${payer.address}: expected a balance of at least ${amountText(needed)}, got ${amountText(balance)}`,
  );
}

/** The plan computes fees; a chain with other rules would break the budget. */
async function checkFees(
  { plan, payer, node }: LandChoice,
  senders: readonly OpenSender[],
): Promise<void> {
  const { blockhash } = await node.blockhash();
  for (const [i, { plan: sender, tipTo }] of senders.entries()) {
    const mark = { run: "00000000", round: 0, sender: i };
    const wire = landTransaction({ plan, sender, payer, tipTo, mark, lifetime: blockhash });
    const fee = await node.fee(messageOfWire(wire));
    const { feeLamports } = costOf(plan, sender);
    if (fee === null || fee <= feeLamports) continue;
    throw new ShredwayError(
      "value_invalid",
      `sender ${sender.name}: expected a fee of at most ${feeLamports} lamports, but the node asks for ${fee}`,
    );
  }
}

async function checkNonce({ plan, payer, node }: LandChoice): Promise<void> {
  if (plan.nonceAccount === null) return;
  const { authority } = await node.nonce(plan.nonceAccount);
  if (authority === payer.address) return;
  throw new ShredwayError(
    "nonce_invalid",
    `nonce account ${plan.nonceAccount}: expected the payer ${payer.address} as its authority, got ${authority}`,
  );
}

function checkSamePlan({ head }: JournalState, choice: LandChoice, genesisHash: string): void {
  const now: Readonly<Record<string, string>> = {
    ...publicPlan(choice.plan),
    payer: choice.payer.address,
    chain: genesisHash,
  };
  const before: Readonly<Record<string, string>> = {
    ...head.plan,
    payer: head.payer,
    chain: head.genesisHash,
  };
  for (const name of new Set([...Object.keys(before), ...Object.keys(now)])) {
    if (before[name] === now[name]) continue;
    throw usageError(
      `--resume: ${name} differs: the journal has ${before[name] ?? "none"}, got ${now[name] ?? "none"}; repeat the command of the run unchanged`,
    );
  }
}

async function openJournal(
  choice: LandChoice,
): Promise<{ journal: Journal; earlier: readonly RoundRecord[] }> {
  const genesisHash = await choice.node.genesisHash();
  if (choice.resume !== undefined) {
    const { journal, state } = await Journal.resume(choice.resume);
    try {
      checkSamePlan(state, choice, genesisHash);
    } catch (error) {
      journal.close();
      throw error;
    }
    return { journal, earlier: state.rounds };
  }
  const run = randomBytes(4).toString("hex");
  const journal = await Journal.create(choice.journal ?? `land-${run}.journal`, {
    run,
    startedNs: systemClock.nowNs(),
    genesisHash,
    payer: choice.payer.address,
    plan: publicPlan(choice.plan),
  });
  return { journal, earlier: [] };
}

/** All signed transactions count, also those that never landed. */
function budgetOf({ budgetLamports }: LandPlan, rounds: readonly RoundRecord[]): Budget {
  const budget = new Budget(budgetLamports);
  for (const { round, nonce, transactions } of rounds) {
    budget.record(
      transactions.map(({ sender, lamports }) => ({
        group: nonce ?? `${round}/${sender}`,
        lamports,
      })),
    );
  }
  return budget;
}

/** Prints text that is not data. */
function printer({ outputs }: LandChoice, terminal: Terminal): (text: string) => void {
  return (text) => (outputs.json ? terminal.note(text) : terminal.line(text));
}

/** Resolves to the exit code. Throws ShredwayError; nothing is sent then, unless a message says so. */
export async function runLanding(choice: LandChoice, terminal: Terminal): Promise<number> {
  const { plan, outputs } = choice;
  const print = printer(choice, terminal);
  for (const line of costLines(plan)) print(line);
  for (const file of [outputs.svg, outputs.html, outputs.csv])
    if (file !== undefined) write(file, "");
  await checkPayer(choice);
  await checkNonce(choice);
  const senders = await openSenders(plan.senders, choice.timeoutMs);
  try {
    await checkFees(choice, senders);
    if (choice.isDryRun) {
      const total = roundCost(plan) * BigInt(plan.rounds);
      print(`dry run: every sender answers, nothing was sent; start it with --budget ${total}`);
      return exitCodes.ok;
    }
    return await withFeed(choice, terminal, senders);
  } finally {
    for (const { sender } of senders) sender.close();
  }
}

async function withFeed(
  choice: LandChoice,
  terminal: Terminal,
  senders: readonly OpenSender[],
): Promise<number> {
  const { feed, nodeUrl } = choice;
  if (!feed) return withJournal(choice, terminal, { senders, observer: null });
  const leaders = await leadersFromNode(nodeUrl, terminal);
  try {
    const log = createLogger({ stream: { write: (line) => terminal.note(messageIn(line)) } });
    if (!leaders.schedule) throw new ShredwayError("rpc_failed", "--feed: no leader schedule");
    const observer = ShredObserver.open(feed, leaders.schedule, log);
    try {
      leaders.follow((schedule) => observer.publishLeaders(schedule));
      choice.onFeed?.(observer.addresses);
      return await withJournal(choice, terminal, { senders, observer });
    } finally {
      observer.close();
    }
  } finally {
    leaders.stop();
  }
}

interface Opened {
  readonly senders: readonly OpenSender[];
  readonly observer: ShredObserver | null;
}

async function withJournal(
  choice: LandChoice,
  terminal: Terminal,
  opened: Opened,
): Promise<number> {
  const { plan, payer, node, waitMs, pollMs } = choice;
  const { journal, earlier } = await openJournal(choice);
  const print = printer(choice, terminal);
  print(
    `journal ${journal.path}${earlier.length > 0 ? `, continued after ${earlier.length} rounds` : ""}`,
  );
  const budget = budgetOf(plan, earlier);
  const run = new LandRun({
    ...opened,
    plan,
    payer,
    node,
    journal,
    budget,
    earlier,
    waitMs,
    pollMs,
    clock: systemClock,
    random: Math.random,
    stopped: terminal.stopped,
    onNote: (text) => terminal.note(text),
  });
  try {
    const startedNs = systemClock.monotonicNs();
    const factsNow = (): LandFacts => ({
      plan,
      rounds: run.rounds,
      seconds: Number(systemClock.monotonicNs() - startedNs) / 1e9,
      observedBy: opened.observer ? "shreds" : "node",
      resolutionNs: opened.observer ? 1 : pollMs * 1e6,
      reservedLamports: budget.reservedLamports,
      notes: notesOf(opened, run.rounds),
    });
    const isFinished = await whileShown(() => run.run(), factsNow, choice, terminal);
    if (!isFinished) print(`stopped; continue with the same command and --resume ${journal.path}`);
    return report(factsNow(), choice, terminal);
  } finally {
    journal.close();
  }
}

function notesOf({ observer }: Opened, rounds: readonly RoundRecord[]): string[] {
  if (!observer) return [];
  if (observer.shreds === 0n)
    return ["The shred feed delivered no valid shreds, so no time to landing is known."];
  const missed = rounds
    .flatMap(({ transactions }) => transactions)
    .filter(({ end, answer }) => end?.landing && answer && !end.landing.shred).length;
  return missed === 0
    ? []
    : [`${missed} landings were not observed in the shred feed; they have no time.`];
}

/** Shows the current result once a second. */
async function whileShown<T>(
  work: () => Promise<T>,
  factsNow: () => LandFacts,
  { outputs: { json } }: LandChoice,
  terminal: Terminal,
): Promise<T> {
  const ending = new AbortController();
  const shown = every(refreshMs, ending.signal, () => {
    const current = landReport(factsNow(), false);
    if (json) terminal.line(toJson({ final: false, ...current }));
    else if (terminal.isLive) terminal.redraw(landLines(current, terminal.paint));
    else terminal.line(landLine(current));
    return true;
  });
  try {
    return await work();
  } finally {
    ending.abort();
    await shown;
    terminal.endBlock();
  }
}

function report(facts: LandFacts, { outputs }: LandChoice, terminal: Terminal): number {
  const final = landReport(facts, true);
  const verdict = landVerdict(final);
  if (outputs.json) terminal.line(toJson({ final: true, verdict, ...final }));
  else for (const line of landSummary(final, verdict, terminal.paint)) terminal.line(line);
  const { svg, html, csv } = outputs;
  if (svg !== undefined) write(svg, landSvg(final, facts.rounds, verdict));
  if (html !== undefined) write(html, landPage(final, facts.rounds, verdict));
  if (csv !== undefined) write(csv, transactionTable(facts.plan, facts.rounds));
  return final.rounds.complete > 0 ? exitCodes.ok : exitCodes.failed;
}
