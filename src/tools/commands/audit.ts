// `shredway audit`: recomputes the registrations and tiers of an account, and reports every difference.
//
// Reads the service's database, also while the service runs, and asks a Solana node about each registered
// transaction. It changes nothing. docs/audit.md describes what is compared.

import { tierRulesOf } from "../../app/tier-rules.ts";
import { systemClock } from "../../core/clock.ts";
import type { Config } from "../../core/configuration/configuration.ts";
import { shredTipAddressesOf } from "../../core/configuration/shred-tips.ts";
import { quote } from "../../core/errors.ts";
import { RpcClient } from "../../platform/solana/rpc-client.ts";
import type { Store } from "../../platform/store/store.ts";
import { type AuditReport, auditAccount } from "../audit/account-audit.ts";
import { Chain } from "../audit/chain-facts.ts";
import type { Difference } from "../audit/differences.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import { toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { configOf, withReadStore } from "./store-command.ts";

/** No difference, but the chain could not confirm everything. */
const incomplete = 3;
/** Texts by exit code. */
const verdicts: Readonly<Record<number, string>> = {
  [exitCodes.ok]: "no difference",
  [exitCodes.failed]: "different",
  [incomplete]: "incomplete",
};
/** Printed lines of each kind; JSON has all of them. */
const linesMax = 100;

export const audit: Command = {
  name: "audit",
  summary: "recompute an account's registrations and tiers, and report every difference",
  usage: [
    "audit --account NAME --config FILE [--from TIME] [--to TIME] [--rpc URL | --offline] [--json]",
  ],
  description: `
Recomputes what the service stored about an account: the amount and state of each registered tip from the
transaction on the chain, and the tier history and the present tier from the counted tips. The computation is
independent of the service's own. It reads the database of the configuration, also while the service runs, and
changes nothing.

Thresholds, tip addresses and the node come from the configuration. The node needs the history of the period. TIME
is ISO 8601 in UTC, such as 2026-11-01 or 2026-11-01T12:00:00Z. Without --from, the audit begins with the account's
first registration; with it, it begins with the stored tier at that time.

The exit code is 0 if everything was checked and nothing differs, 1 if something differs or the audit failed, 2 for
wrong usage, and 3 if nothing differs but the node could not answer for each registration.`,
  options: {
    account: { value: "NAME", help: "the account" },
    config: { value: "FILE", help: "the service's configuration" },
    from: { value: "TIME", help: "begin of the period (default: the first registration)" },
    to: { value: "TIME", help: "end of the period (default: now)" },
    rpc: { value: "URL", help: "another node than solana.rpc of the configuration" },
    offline: { help: "do not ask a node; check only the tiers" },
    json: { help: "print one JSON object" },
  },
  examples: [
    "shredway audit --account alpha --config shredway.yaml",
    "shredway audit --account alpha --config shredway.yaml --from 2026-11-01 --to 2026-12-01 --json",
  ],
  run,
};

const timePattern = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?Z)?$/;

/** Null: not given. Throws ShredwayError "usage". */
function timeOf(args: Arguments, name: string): number | null {
  const text = args.text(name);
  if (text === undefined) return null;
  const ms = timePattern.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  throw usageError(
    `--${name}: invalid value ${quote(text)}; expected a UTC time such as 2026-11-01 or 2026-11-01T12:00:00Z`,
  );
}

interface Choice {
  readonly account: string;
  readonly config: Config;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly chain: Chain | null;
}

/** Throws ShredwayError "usage". */
function readChoice(args: Arguments): Choice {
  const account = args.required("account", "alpha");
  args.required("config", "shredway.yaml");
  const config = configOf(args);
  if (!config) throw usageError("--config: expected the file of the service's configuration");
  const [fromMs, toMs] = [timeOf(args, "from"), timeOf(args, "to")];
  if (fromMs !== null && toMs !== null && fromMs >= toMs) {
    throw usageError(`--to: expected a time after --from, got ${quote(args.text("to"))}`);
  }
  return { account, config, fromMs, toMs, chain: chainOf(args, config) };
}

function chainOf(args: Arguments, config: Config): Chain | null {
  args.exclusive("rpc", "offline");
  if (args.flag("offline")) return null;
  const url = args.text("rpc") ?? config.solana?.rpc;
  if (url === undefined) {
    throw usageError(
      "no node: solana.rpc is not configured; expected --rpc URL, or --offline to check only the tiers",
    );
  }
  const addresses = shredTipAddressesOf(config);
  if (addresses.size > 0) return new Chain(new RpcClient(url), addresses);
  throw usageError(
    "no shred-tip address: tips.shredAddresses is empty; expected the addresses that were paid",
  );
}

async function accountIdOf(store: Store, name: string): Promise<string> {
  const accounts = await store.keys.accounts();
  const found = accounts.find((one) => one.name === name);
  if (found) return found.id;
  const known = accounts.map((one) => one.name).slice(0, 20);
  const expected =
    known.length === 0 ? "the database has no accounts" : `expected one of ${known.join(", ")}`;
  throw usageError(`--account: unknown account ${quote(name)}; ${expected}`);
}

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const choice = readChoice(args);
  let code: number = exitCodes.failed;
  await withReadStore(args, terminal, async (store) => {
    const { account, config, ...period } = choice;
    const report = await auditAccount(store.audit, {
      ...period,
      accountId: await accountIdOf(store, account),
      rules: tierRulesOf(config),
      nowMs: () => Number(systemClock.nowNs() / 1_000_000n),
      onProgress: (checked) => terminal.note(`audit: ${checked} registrations checked`),
    });
    code = codeOf(report);
    if (args.flag("json")) terminal.line(toJson(jsonOf(account, report, choice.chain !== null)));
    else for (const line of linesOf(account, report, choice.chain !== null)) terminal.line(line);
  });
  return code;
}

function codeOf({ differences, unchecked }: AuditReport): number {
  if (differences.length > 0) return exitCodes.failed;
  return unchecked.length > 0 ? incomplete : exitCodes.ok;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function jsonOf(account: string, report: AuditReport, isOnline: boolean): object {
  const { fromMs, toMs, differences, unchecked, ahead, ...counts } = report;
  return {
    account,
    from: iso(fromMs),
    to: iso(toMs),
    isChainAsked: isOnline,
    ...counts,
    verdict: verdicts[codeOf(report)],
    differences,
    unchecked,
    ahead: ahead.map(({ signature, registeredMs }) => ({
      signature,
      registered: iso(registeredMs),
    })),
  };
}

function differenceText({
  kind,
  subject,
  field,
  stored,
  expected,
  explanation,
}: Difference): string {
  const name = subject === null ? "" : ` ${subject}`;
  return `DIFFERENT ${kind}${name}: ${field} is ${stored ?? "absent"}, expected ${expected ?? "none"}: ${explanation}`;
}

function aheadCount(count: number): string {
  return count === 1 ? "1 of them is" : `${count} of them are`;
}

function aheadText({ signature, registeredMs }: AuditReport["ahead"][number]): string {
  return `ahead of the clock ${signature}: registered at ${iso(registeredMs)}`;
}

/** At most `linesMax`, with the number of the others. */
function bounded(lines: readonly string[]): string[] {
  const more = lines.length - linesMax;
  return more > 0 ? [...lines.slice(0, linesMax), `… and ${more} more; see --json`] : [...lines];
}

function linesOf(account: string, report: AuditReport, isOnline: boolean): string[] {
  const { registrations, counted, onChain, events, tier, sumLamports } = report;
  const { differences, unchecked, ahead } = report;
  const chain = isOnline ? `${onChain} compared with the chain` : "not compared with the chain";
  const verdict = {
    0: "no difference",
    1: `${differences.length} differences`,
    3: `no difference, but ${unchecked.length} registrations could not be checked`,
  }[codeOf(report)];
  return [
    `${account}, ${iso(report.fromMs)} to ${iso(report.toMs)}`,
    `  registrations: ${registrations}, ${counted} of them counted; ${chain}`,
    ...(ahead.length > 0 ? [`  ${aheadCount(ahead.length)} ahead of this machine's clock`] : []),
    `  tier events: ${events}; tier ${tier ?? "none"}, sum ${sumLamports} lamports`,
    ...bounded(differences.map(differenceText)),
    ...bounded(unchecked.map(({ signature, reason }) => `unchecked ${signature}: ${reason}`)),
    ...bounded(ahead.map(aheadText)),
    `result: ${verdict ?? ""}`,
  ];
}
