// `shredway land`: sends the same kind of transaction through several senders at the same moment, and reports
// which one lands, how often and how fast.
//
// Reads the options; tools/land/ runs the benchmark. With --sandbox it brings its own chain and three senders.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../core/clock.ts";
import { messageOf, quote } from "../../core/errors.ts";
import { createLogger } from "../../core/log.ts";
import { parsePubkey, u64Max } from "../../core/primitives.ts";
import { readKeyPair } from "../../platform/solana/key-file.ts";
import { type LandChoice, type LandOutputs, runLanding } from "../land/landing.ts";
import { LandNode } from "../land/node.ts";
import { type LandPlan, roundCost, type SenderPlan } from "../land/plan.ts";
import { readSenders, sendersMax } from "../land/sender-options.ts";
import { computeUnitsOf } from "../land/transaction.ts";
import { parseFeed } from "../listen/feed-options.ts";
import { type Arguments, type Command, usageError } from "../terminal/command.ts";
import type { Terminal } from "../terminal/terminal.ts";

const marks = ["amount", "memo"] as const;
const defaults = { rounds: 60, intervalMs: 1000, waitSeconds: 90, timeoutSeconds: 10, pollMs: 400 };
/** The sandbox has slots of 200 ms, and its transactions land within a second or never. */
const sandboxDefaults = { rounds: 60, intervalMs: 400, waitSeconds: 4, pollMs: 100 };
const sandboxTipLamports = 10_000n;
const roundsMax = 10_000;
const unitsMax = 1_400_000;

export const land: Command = {
  name: "land",
  summary: "compare senders: landed share, time to landing and cost of the same transactions",
  usage: [
    'land --sender "NAME=URL [WORD…]" … [--senders FILE] --payer FILE --rpc URL [--budget LAMPORTS] [--rounds N] ' +
      "[--interval MS] [--mark MARK] [--price N] [--units N] [--same-nonce --nonce-account ADDRESS] [--feed FEED] " +
      "[--wait S] [--poll MS] [--timeout S] [--dry-run] [--journal FILE | --resume FILE] [--json] [--svg FILE] [--html FILE] [--csv FILE]",
    "land --sandbox [--same-nonce] [the options of the measurement and the output]",
  ],
  description: `
Sends one transaction through each of 1 to ${sendersMax} senders at the same moment, round after round, and reports for
each sender the time to its response, the landed share, slots and time to landing, the position in the block, drops
by reason, and the cost. Comparisons are paired, and a difference is claimed only if its interval excludes chance.

The transactions cost money: fee and tip of each. Without --budget the command only states the cost and checks
everything. A budget is never exceeded. A journal knows every signed transaction before it is sent, so after a kill
the same command with --resume continues, and nothing is paid twice.

Words of a sender: dialect=rpc|shredway|jito|astralane|text|bytes|quic, tip=LAMPORTS, tip-to=ADDRESS, price=N,
max-retries=N, api-key-file=FILE, api-key=KEY, header=Name:value, mev-protect, swqos-only, bundle-only, and for QUIC
alpn=PROTOCOL, fingerprint=HEX, unverified. docs/land.md explains them and each number.

--sandbox needs nothing else: a chain in this process, and three senders with a known delay and share of drops.`,
  options: {
    sender: {
      value: "SENDER",
      repeated: true,
      help: '"NAME=URL WORD…": a sender; may be repeated',
    },
    senders: { value: "FILE", help: "file with one sender on each line" },
    payer: { value: "FILE", help: "key pair of the payer, in the format of Solana's tools" },
    rpc: { value: "URL", help: "node for blockhashes and outcomes" },
    budget: {
      value: "LAMPORTS",
      help: "the most that all transactions may cost; without it, only the cost is stated",
    },
    rounds: { value: "N", help: `number of rounds (default ${defaults.rounds})` },
    interval: {
      value: "MS",
      help: `mean time between rounds (default ${defaults.intervalMs}, in the sandbox ${sandboxDefaults.intervalMs})`,
    },
    mark: {
      value: "MARK",
      choices: marks,
      help: "the difference between the transactions: amount or memo (default amount)",
    },
    price: { value: "N", help: "micro-lamports per compute unit (default 0)" },
    units: {
      value: "N",
      help: `limit of compute units (default ${computeUnitsOf.amount}, with memos ${computeUnitsOf.memo})`,
    },
    "same-nonce": {
      help: "let the transactions of a round compete for one nonce: exactly one can land",
    },
    "nonce-account": { value: "ADDRESS", help: "nonce account of the payer, for --same-nonce" },
    feed: {
      value: "FEED",
      help: "observe landings in shreds: PORT or ADDRESS:PORT, optionally with @SENDER",
    },
    wait: {
      value: "S",
      help: `wait for landings after the last round (default ${defaults.waitSeconds}, in the sandbox ${sandboxDefaults.waitSeconds})`,
    },
    poll: {
      value: "MS",
      help: `interval of queries to the node (default ${defaults.pollMs}, in the sandbox ${sandboxDefaults.pollMs})`,
    },
    timeout: {
      value: "S",
      help: `limit of each response of a sender (default ${defaults.timeoutSeconds})`,
    },
    "dry-run": { help: "check everything, state the cost, and send nothing" },
    journal: { value: "FILE", help: "journal of the run (default land-RUN.journal)" },
    resume: { value: "FILE", help: "continue the run of this journal" },
    sandbox: { help: "use a chain in this process with three senders" },
    json: { help: "one JSON object a second, and one with final: true at the end" },
    svg: { value: "FILE", help: "write a picture of the result" },
    html: { value: "FILE", help: "write a page: charts, tables, verdict" },
    csv: { value: "FILE", help: "write one line per transaction" },
  },
  examples: [
    "shredway land --sandbox",
    "shredway land --sandbox --html land.html --csv land.csv",
    'shredway land --sender "ours=https://gateway.example dialect=shredway tip=10000 api-key-file=key.txt" --sender "node=https://rpc.example" --payer payer.json --rpc https://rpc.example',
    "shredway land --senders senders.txt --payer payer.json --rpc https://rpc.example --feed 20001 --rounds 300 --budget 20000000",
    "shredway land --senders senders.txt --payer payer.json --rpc https://rpc.example --feed 20001 --rounds 300 --budget 20000000 --resume land-5f0c2b1a.journal",
  ],
  run,
};

/** Options that the sandbox replaces. */
const ownOptions = [
  "sender",
  "senders",
  "payer",
  "rpc",
  "nonce-account",
  "feed",
  "journal",
  "resume",
] as const;

function amount(args: Arguments, name: string): bigint | undefined {
  const text = args.text(name);
  if (text === undefined) return undefined;
  if (/^\d{1,20}$/.test(text) && BigInt(text) <= u64Max) return BigInt(text);
  throw usageError(`--${name}: invalid value ${quote(text)}; expected an integer up to ${u64Max}`);
}

interface Measurement {
  readonly rounds: number;
  readonly intervalMs: number;
  readonly waitSeconds: number;
  readonly pollMs: number;
}

function readMark(args: Arguments): LandPlan["mark"] {
  const text = args.text("mark") ?? "amount";
  const mark = marks.find((each) => each === text);
  if (mark !== undefined) return mark;
  throw usageError(`--mark: invalid value ${quote(text)}; expected ${marks.join(" or ")}`);
}

/** `budget`: undefined if none is given. */
function readPlan(
  args: Arguments,
  senders: readonly SenderPlan[],
  nonceAccount: string | null,
  { rounds, intervalMs }: Measurement,
): { readonly plan: LandPlan; readonly budget: bigint | undefined } {
  const mark = readMark(args);
  const budget = amount(args, "budget");
  const plan: LandPlan = {
    senders,
    rounds: args.integer("rounds", { min: 1, max: roundsMax }) ?? rounds,
    intervalMs: args.integer("interval", { min: 1, max: 3_600_000 }) ?? intervalMs,
    mark,
    nonceAccount,
    budgetLamports: budget ?? 0n,
    computeUnits: args.integer("units", { min: 1, max: unitsMax }) ?? computeUnitsOf[mark],
    price: amount(args, "price") ?? 0n,
  };
  const cost = roundCost(plan) * BigInt(plan.rounds);
  if (budget !== undefined && budget < cost) {
    throw usageError(
      `--budget: ${plan.rounds} rounds cost up to ${cost} lamports, got a budget of ${budget}; raise it, or use at most --rounds ${budget / roundCost(plan)}`,
    );
  }
  return { plan, budget };
}

function readNonceAccount(args: Arguments): string | null {
  const text = args.text("nonce-account");
  if (!args.flag("same-nonce")) {
    if (text !== undefined) throw usageError("--nonce-account requires --same-nonce");
    return null;
  }
  try {
    return parsePubkey(text ?? args.required("nonce-account", "ADDRESS"));
  } catch (error) {
    throw usageError(`--nonce-account: ${messageOf(error)}`);
  }
}

function readOutputs(args: Arguments): LandOutputs {
  return {
    json: args.flag("json"),
    svg: args.text("svg"),
    html: args.text("html"),
    csv: args.text("csv"),
  };
}

function readTimes(args: Arguments, { waitSeconds, pollMs }: Measurement) {
  return {
    waitMs: 1000 * (args.positive("wait", 3600) ?? waitSeconds),
    pollMs: args.integer("poll", { min: 20, max: 60_000 }) ?? pollMs,
    timeoutMs: 1000 * (args.positive("timeout", 600) ?? defaults.timeoutSeconds),
  };
}

function readNode(url: string): LandNode {
  try {
    return new LandNode(url);
  } catch (error) {
    throw usageError(`--rpc: ${messageOf(error)}`);
  }
}

/** The port of a feed, written as for `listen` and `race`. */
function readFeed(args: Arguments): LandChoice["feed"] {
  const text = args.text("feed");
  if (text === undefined) return null;
  const feed = parseFeed(`feed=${text}`);
  if (!feed.group) return feed;
  throw usageError(
    `--feed: got the multicast group ${feed.group.address}; expected PORT or ADDRESS:PORT`,
  );
}

function checkRounds(plan: LandPlan): void {
  if (plan.nonceAccount === null || plan.senders.length >= 2) return;
  throw usageError("--same-nonce: got one sender; expected at least two, which compete");
}

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  args.exclusive("journal", "resume");
  if (args.flag("sandbox")) return runInSandbox(args, terminal);
  const senders = readSenders(args.texts("sender"), args.text("senders"));
  const { plan, budget } = readPlan(args, senders, readNonceAccount(args), defaults);
  checkRounds(plan);
  const nodeUrl = args.required("rpc", "https://rpc.example");
  const node = readNode(nodeUrl);
  const feed = readFeed(args);
  const times = readTimes(args, defaults);
  const payer = readKeyPair(args.required("payer", "payer.json"));
  const isDryRun = budget === undefined || args.flag("dry-run");
  if (isDryRun && args.given("resume"))
    throw usageError("--resume requires --budget, and no --dry-run");
  const choice: LandChoice = {
    plan,
    payer,
    node,
    nodeUrl,
    feed,
    ...times,
    isDryRun,
    journal: args.text("journal"),
    resume: args.text("resume"),
    outputs: readOutputs(args),
  };
  return runLanding(choice, terminal);
}

async function runInSandbox(args: Arguments, terminal: Terminal): Promise<number> {
  for (const name of ownOptions) {
    if (args.given(name))
      throw usageError(`--${name} is not allowed with --sandbox, which brings its own`);
  }
  const { SenderSandbox } = await import("../../sandbox/sender-sandbox.ts"); // large
  const log = createLogger({ level: "silent" });
  const sandbox = await SenderSandbox.open({ clock: systemClock, log });
  const folder = mkdtempSync(join(tmpdir(), "shredway-land-"));
  try {
    const words = (dialect: string) =>
      `dialect=${dialect} tip=${sandboxTipLamports} tip-to=${sandbox.tipAddress}`;
    const texts = sandbox.senders.map(
      ({ name, url, dialect }) => `${name}=${url} ${words(dialect)}`,
    );
    const senders = readSenders(texts, undefined);
    // The account does not exist yet, but decides the cost.
    const isShared = args.flag("same-nonce");
    const { plan } = readPlan(args, senders, isShared ? sandbox.tipAddress : null, sandboxDefaults);
    const times = readTimes(args, sandboxDefaults);
    sandbox.start();
    const nonceAccount = isShared ? await sandbox.createNonceAccount() : null;
    const complete = { ...plan, nonceAccount };
    const cost = roundCost(complete) * BigInt(plan.rounds);
    const choice: LandChoice = {
      plan: {
        ...complete,
        budgetLamports: plan.budgetLamports === 0n ? cost : plan.budgetLamports,
      },
      payer: sandbox.payer,
      node: new LandNode(sandbox.nodeUrl),
      nodeUrl: sandbox.nodeUrl,
      feed: { name: "feed", port: 0, listen: ["127.0.0.1:0"] },
      ...times,
      isDryRun: args.flag("dry-run"),
      journal: join(folder, "land.journal"),
      resume: undefined,
      outputs: readOutputs(args),
      onFeed: ([address = ""]) => sandbox.sendShredsTo(address),
    };
    const print = (text: string) => (args.flag("json") ? terminal.note(text) : terminal.line(text));
    for (const { name, delayMs, drop } of sandbox.senders) {
      print(`sandbox: ${name} delays by ${delayMs} ms and drops ${(100 * drop).toFixed(0)} %`);
    }
    return await runLanding(choice, terminal);
  } finally {
    sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
