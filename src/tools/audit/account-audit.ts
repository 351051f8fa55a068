// Audit of one account: reads the stored facts, asks the chain, recomputes, and collects differences.
//
// Called by the command audit. The stored state, its time and its order are read in one statement, so an audit of a
// running service compares one consistent moment; whatever happens later is left out.

import { isShredwayError, messageOf, ShredwayError } from "../../core/errors.ts";
import type {
  AuditedRegistration,
  SqlAuditStore,
} from "../../platform/store/tables/audit-store.ts";
import type { TierRules } from "../../shreds/tiers/types.ts";
import type { Chain, ChainFact } from "./chain-facts.ts";
import {
  countedFactsOf,
  type Difference,
  ofEvents,
  ofRegistration,
  ofState,
} from "./differences.ts";
import { anchorOf, recomputeTiers } from "./tier-recomputation.ts";

export interface AuditTask {
  readonly accountId: string;
  /** Null: since the first registration. */
  readonly fromMs: number | null;
  /** Null: up to the last checkpoint of the tiers. */
  readonly toMs: number | null;
  readonly rules: TierRules;
  /** Null: the chain is not asked. */
  readonly chain: Chain | null;
  readonly nowMs: () => number;
  /** Called after each page of registrations with their number so far. */
  readonly onProgress: (checked: number) => void;
}

/** A registration that the chain could not confirm or refute. */
interface Unchecked {
  readonly signature: string;
  readonly reason: string;
}

/** Its time is later than this machine's clock: the clock of the service was ahead, or this one is behind. */
interface AheadOfClock {
  readonly signature: string;
  readonly registeredMs: number;
}

export interface AuditReport {
  readonly fromMs: number;
  readonly toMs: number;
  readonly registrations: number;
  readonly counted: number;
  /** Registrations that the node was asked about and answered. */
  readonly onChain: number;
  readonly events: number;
  readonly tier: string | null;
  readonly sumLamports: bigint;
  readonly differences: readonly Difference[];
  readonly unchecked: readonly Unchecked[];
  /** Part of `registrations`, and checked like the others. */
  readonly ahead: readonly AheadOfClock[];
}

/** Facts in memory; each has about 300 bytes. */
const registrationsMax = 1_000_000;
const questionsMax = 8;

/** Throws ShredwayError. */
export async function auditAccount(store: SqlAuditStore, task: AuditTask): Promise<AuditReport> {
  const { accountId, rules } = task;
  const nowMs = task.nowMs();
  const stored = await store.state(accountId);
  const evaluatedMs = stored?.evaluatedMs ?? nowMs;
  const untilMs = Math.min(task.toMs ?? evaluatedMs, evaluatedMs);
  const fromMs = task.fromMs ?? 0;
  // Tips before the period may still be in its sum.
  const facts = await readFacts(store, accountId, fromMs === 0 ? 0 : fromMs - 2 * rules.windowMs);
  const readMs = task.nowMs();
  const { asked, ahead } = chosen([...facts.values()], { fromMs, toMs: task.toMs, nowMs, readMs });
  const { differences, unchecked, onChain } = await checkRegistrations(asked, task, nowMs);
  const all = await store.events(accountId);
  const eventCount = stored?.state?.eventCount ?? 0n;
  const events = all.filter(({ number }) => number <= eventCount);
  const horizon = { untilMs, order: stored?.countedOrder ?? 0n };
  const tips = countedFactsOf([...facts.values()]);
  const inPeriod = events.filter(({ atMs }) => atMs >= fromMs && atMs <= untilMs);
  const anchor = anchorOf(events, fromMs);
  const { events: expected, state } = recomputeTiers(tips, horizon, {
    rules,
    anchor,
    stored: inPeriod,
  });
  differences.push(...ofEvents(inPeriod, expected));
  if (stored && untilMs === evaluatedMs) differences.push(...ofState(stored.state, state));
  const firstMs = asked.reduce((least, one) => Math.min(least, one.registeredMs), untilMs);
  return {
    fromMs: task.fromMs ?? firstMs,
    toMs: task.toMs ?? untilMs,
    registrations: asked.length,
    counted: asked.filter((one) => one.state === "counted").length,
    onChain,
    events: inPeriod.length,
    tier: state.tier,
    sumLamports: state.sumLamports,
    differences,
    unchecked,
    ahead: ahead.map(({ signature, registeredMs }) => ({ signature, registeredMs })),
  };
}

interface Period {
  readonly fromMs: number;
  readonly toMs: number | null;
  /** When the audit began, and when it had read the registrations. */
  readonly nowMs: number;
  readonly readMs: number;
}

/** The registrations of the period, without those that arrived while they were read. */
function chosen(
  registrations: readonly AuditedRegistration[],
  { fromMs, toMs, nowMs, readMs }: Period,
) {
  const isAhead = ({ registeredMs }: AuditedRegistration) => registeredMs > readMs;
  const asked = registrations.filter((one) => {
    const { registeredMs } = one;
    if (registeredMs < fromMs) return false;
    return toMs === null ? registeredMs <= nowMs || isAhead(one) : registeredMs <= toMs;
  });
  return { asked, ahead: asked.filter(isAhead) };
}

/** Facts by signature; a claimed registration replaces an own one that was read before the claim. */
async function readFacts(
  store: SqlAuditStore,
  accountId: string,
  sinceMs: number,
): Promise<ReadonlyMap<string, AuditedRegistration>> {
  const facts = new Map<string, AuditedRegistration>();
  for await (const page of store.registrations(accountId, Math.max(0, sinceMs))) {
    for (const one of page) facts.set(one.signature, one);
    if (facts.size <= registrationsMax) continue;
    throw new ShredwayError(
      "value_invalid",
      `the account has more than ${registrationsMax} registrations in this period; choose a later --from`,
    );
  }
  return facts;
}

interface Checked {
  readonly differences: Difference[];
  readonly unchecked: Unchecked[];
  onChain: number;
}

async function checkRegistrations(
  registrations: readonly AuditedRegistration[],
  { chain, onProgress }: AuditTask,
  nowMs: number,
): Promise<Checked> {
  const checked: Checked = { differences: [], unchecked: [], onChain: 0 };
  // A node that does not answer at all ends the audit here, before a thousand failures.
  const firstSlot = await chain?.firstSlot();
  let next = 0;
  const worker = async (): Promise<void> => {
    for (;;) {
      const registration = registrations[next++];
      if (!registration) return;
      const { signature } = registration;
      const fact = await factOf(registration, chain, firstSlot ?? 0n);
      if (typeof fact === "string") checked.unchecked.push({ signature, reason: fact });
      else if (fact !== undefined) checked.onChain++;
      const known = typeof fact === "string" ? undefined : fact;
      checked.differences.push(...ofRegistration(registration, known, nowMs));
      if (next % 1000 === 0) onProgress(next);
    }
  };
  await Promise.all(Array.from({ length: questionsMax }, worker));
  return checked;
}

/** A text: why the chain could not answer. */
async function factOf(
  { signature, slot }: AuditedRegistration,
  chain: Chain | null,
  firstSlot: bigint,
): Promise<ChainFact | null | undefined | string> {
  if (!chain) return undefined;
  try {
    const fact = await chain.fact(signature);
    if (fact || slot >= firstSlot) return fact;
    return `the node's history begins with slot ${firstSlot}, after the registered slot ${slot}`;
  } catch (error) {
    if (isShredwayError(error, "rpc_failed")) return messageOf(error);
    throw error;
  }
}
