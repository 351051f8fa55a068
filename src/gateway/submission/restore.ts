// Restore: turns open records into submissions again.
//
// pipeline.ts calls it at startup, and for records of dead nodes. A bundle is sent again only if it is
// complete; the transactions of an incomplete one are observed to their ends. What a record does not
// contain (which routes refused it, what is still in flight) is assumed conservatively.

import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { bundleIdOf, Submission } from "./tracked-transaction.ts";
import type { SubmissionRecord, TimelineEvent } from "./types.ts";

interface Restored {
  readonly submission: Submission;
  readonly records: readonly SubmissionRecord[];
  readonly facts: readonly TransactionFacts[];
  /** It must not be sent again: a part is missing. */
  readonly isPart: boolean;
}

export type Inspect = (wire: Uint8Array) => TransactionFacts | Promise<TransactionFacts>;

/**
 * Whether it was last submitted as part of a bundle, and not on its own: after that it keeps the id of its
 * earlier bundle. sendTransaction submits only bundles of one, which have revert protection.
 */
function isOfBundle({ bundleId, method, options, signature }: SubmissionRecord): boolean {
  if (bundleId === null || method === "sendBundle") return bundleId !== null;
  const mayBeOwnBundle = method === "sendTransaction" && options.revertProtection;
  return mayBeOwnBundle && bundleId === bundleIdOf([signature]);
}

/** Groups the records of each bundle, in order. */
function groups(records: readonly SubmissionRecord[]): SubmissionRecord[][] {
  const byKey = new Map<string, SubmissionRecord[]>();
  for (const record of records) {
    const { accountId, bundleId, signature } = record;
    const key = `${accountId} ${isOfBundle(record) ? bundleId : signature}`;
    const group = byKey.get(key);
    if (group) group.push(record);
    else byKey.set(key, [record]);
  }
  return [...byKey.values()].map((group) =>
    group.toSorted((a, b) => a.bundleIndex - b.bundleIndex),
  );
}

type Queued = Extract<TimelineEvent, { readonly kind: "queued" }>;

function queuedIn(events: readonly TimelineEvent[]): Queued[] {
  return events.flatMap((event) => (event.kind === "queued" ? [event] : []));
}

/** The number of the last attempt: they are numbered through all calls of the account. */
function attemptsOf(records: readonly SubmissionRecord[]): number {
  const queued = records.flatMap(({ events }) => queuedIn(events));
  return queued.reduce((most, { attempt }) => Math.max(most, attempt), 0);
}

/** Attempts that routes took since the newest call. Those before it belong to earlier submissions. */
function ownQueued(records: readonly SubmissionRecord[]): Queued[] {
  return records.flatMap(({ events }) => {
    return queuedIn(events.slice(events.findLastIndex(({ kind }) => kind === "received") + 1));
  });
}

/** Whether no route sent anything of the attempt, because it dropped it or could not connect. */
function isLost(records: readonly SubmissionRecord[], attempt: number): boolean {
  const events = records[0]?.events ?? []; // every transaction of a bundle has the same
  const ofAttempt = events.filter((event) => "attempt" in event && event.attempt === attempt);
  const queued = ofAttempt.filter(({ kind }) => kind === "queued").length;
  const unsent = ofAttempt.filter(({ kind }) => kind === "dropped" || kind === "failed").length;
  return queued > 0 && unsent === queued && ofAttempt.length === 2 * queued;
}

async function factsOf(
  { wire, signature }: SubmissionRecord,
  inspect: Inspect,
): Promise<TransactionFacts | null> {
  try {
    const facts = wire && (await inspect(wire));
    return facts?.signature === signature ? facts : null;
  } catch {
    return null; // accepted before, refused now: reported as unreadable
  }
}

async function restored(group: readonly SubmissionRecord[], inspect: Inspect) {
  const facts = await Promise.all(group.map((record) => factsOf(record, inspect)));
  const readable = group.flatMap((record, i) => {
    const known = facts[i];
    return known ? [{ record, known }] : [];
  });
  const unreadable = group.filter((_, i) => !facts[i]);
  const [first] = readable;
  if (!first) return { restored: null, unreadable };
  const records = readable.map(({ record }) => record);
  const { accountId, method, bundleId, options, receivedNs } = first.record;
  const isBundle = isOfBundle(first.record);
  const submission = new Submission({
    accountId,
    method,
    isBundle,
    options,
    receivedNs,
    transactions: readable.map(({ known }) => known),
  });
  // The last attempts may be missing: timelines are written every second.
  const { sending } = submission;
  const own = ownQueued(records);
  const attempts = attemptsOf(records);
  const routes = own.map(({ route }) => route);
  const firstAttempt = own.reduce((least, { attempt }) => Math.min(least, attempt), attempts);
  sending.continueFrom(attempts, routes);
  sending.resends = attempts - firstAttempt;
  if (own.length === 0 || isLost(records, attempts)) sending.isAttemptMissing = true;
  const isPart = isBundle && bundleIdOf(records.map(({ signature }) => signature)) !== bundleId;
  const all: Restored = { submission, records, facts: submission.transactions, isPart };
  return { restored: all, unreadable };
}

const groupsAtOnce = 256;

/** `unreadable`: records whose bytes are missing or are refused. */
export async function restoreFrom(
  records: readonly SubmissionRecord[],
  inspect: Inspect,
): Promise<{ restored: Restored[]; unreadable: SubmissionRecord[] }> {
  const all = groups(records);
  const result: { restored: Restored[]; unreadable: SubmissionRecord[] } = {
    restored: [],
    unreadable: [],
  };
  for (let at = 0; at < all.length; at += groupsAtOnce) {
    const part = all.slice(at, at + groupsAtOnce);
    for (const one of await Promise.all(part.map((group) => restored(group, inspect)))) {
      if (one.restored) result.restored.push(one.restored);
      result.unreadable.push(...one.unreadable);
    }
  }
  return result;
}
