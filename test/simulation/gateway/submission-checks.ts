// The checks of the gateway: the answers to callers, the calls to partners, and the counters.
//
// They share no code with the gateway. They know what customers signed, what partners received and answered,
// and what the chain contains. docs/simulation.md lists the invariants.

import type { FastPathSnapshot } from "../../../src/gateway/fast-path/fast-path.ts";
import type { PipelineSnapshot } from "../../../src/gateway/submission/pipeline.ts";
import type { RouteSnapshot } from "../../../src/gateway/submission/types.ts";
import { Violation } from "../relay-checks.ts";
import type { SimulatedDisk } from "../simulated-disk.ts";
import { type AccountRecord, type EndKind, endKinds, newAccountRecord } from "./account-record.ts";
import type { Chain } from "./chain.ts";
import { LandedTipChecks } from "./landed-tip-checks.ts";
import type { NodeMood } from "./node.ts";
import {
  costlyTip,
  leadersName,
  type PartnerName,
  type PartnerView,
  partnerNames,
  partnerProblemOf,
  type RouteName,
} from "./partners.ts";
import { ResendChecks } from "./resend-checks.ts";
import { checkRouteCounts } from "./route-counts.ts";
import { lastEnds, type ShownEvent, type ShownStatus, ShownTimeline } from "./shown-timeline.ts";
import { minimumTip, type SentTransaction } from "./transactions.ts";
import { WithdrawalChecks } from "./withdrawal-checks.ts";

/** Ends of transactions that no block contains. */
const absentEnds: ReadonlySet<string> = new Set(["expired", "superseded"]);
/** With a healthy node, an end is known so long after nothing can change it. */
const endMs = 16_000;
/** A call that left before a final refusal was known arrives within this time. */
const refusalMs = 2_500;
/** A reported end is on the disk after this time, however slow the disk is. */
const durableMs = 5_000;
/** A timeline has at most so many events; beyond it, those in the middle are dropped. */
const eventsMax = 64;

interface KnownBefore {
  readonly isAcknowledged: boolean;
  readonly reported: EndKind | null;
}

interface Question {
  readonly customer: number;
  readonly signature: string;
  /** An answer may be older than an event that the customer received while it waited. */
  readonly before: KnownBefore;
}

/** Without leaders, the gateway has no route to them. */
export type PartnerViews = Readonly<Record<PartnerName, PartnerView>> & {
  readonly [leadersName]?: PartnerView;
};

interface ChecksOptions {
  readonly chain: Chain;
  readonly partners: PartnerViews;
  readonly disk: SimulatedDisk;
  readonly nowMs: () => number;
  /** Only few ended transactions remain in memory. */
  readonly forgetsEnded: boolean;
}

export class SubmissionChecks {
  readonly withdrawals = new WithdrawalChecks();
  readonly landedTips: LandedTipChecks;
  readonly #resends: ResendChecks;
  readonly #copies: ResendChecks; // over QUIC to the leaders
  readonly #options: ChecksOptions;
  /** Partners and leaders by the names of their routes. */
  readonly #views: ReadonlyMap<string, PartnerView>;
  readonly #records = new Map<string, AccountRecord>();
  /** The same by signature. */
  readonly #owners = new Map<string, AccountRecord[]>();
  readonly #refusedMs = new Map<string, number>();
  /** Since when the service runs, the cluster works, and the node is healthy. */
  #quietSinceMs = 0;
  /** Calls of this life that could be accepted, and those that were. */
  #calls = { possible: 0, acknowledged: 0 };
  /**
   * Signatures by their ends that were reported in this life, and whether none was reported before. An end of
   * an earlier life is reported to another customer without being counted.
   */
  #ended = new Map<string, Map<string, boolean>>();

  constructor(options: ChecksOptions) {
    this.#options = options;
    this.#views = new Map(Object.entries(options.partners));
    const { chain, nowMs } = options;
    this.landedTips = new LandedTipChecks({
      submissions: () => this.#owners.values(),
      chain,
      nowMs,
    });
    this.#resends = new ResendChecks({ ...options, names: ["staked", "builder"] });
    this.#copies = new ResendChecks({ ...options, names: [leadersName] });
  }

  get records(): Iterable<AccountRecord> {
    return this.#records.values();
  }

  /** Acknowledged submissions, and the part that landed. */
  get totals(): { readonly accepted: number; readonly landed: number } {
    const accepted = [...this.#records.values()].filter(({ isAcknowledged }) => isAcknowledged);
    const landed = accepted.filter(({ firstEnd }) => firstEnd === "landed");
    return { accepted: accepted.length, landed: landed.length };
  }

  find(customer: number, signature: string): AccountRecord | undefined {
    return this.#records.get(`${customer} ${signature}`);
  }

  /** Whether no end of it was reported. */
  isOpen({ signature }: SentTransaction): boolean {
    return this.#ownersOf(signature).every(({ firstEnd }) => firstEnd === null);
  }

  /** Whether the service may not have ended it yet in this life. */
  mayBeOpen({ signature }: SentTransaction): boolean {
    return this.#ownersOf(signature).some(({ isEnded }) => !isEnded);
  }

  /** A customer submits them with a key that may do so, and nothing is wrong with them. */
  submitted(
    customer: number,
    transactions: readonly SentTransaction[],
    { isForPartnersOnly, isResent }: Pick<AccountRecord, "isForPartnersOnly" | "isResent">,
  ): AccountRecord[] {
    this.#calls.possible += transactions.length;
    return transactions.map((transaction) => {
      const key = `${customer} ${transaction.signature}`;
      const known = this.#records.get(key);
      const record = known ?? newAccountRecord(customer, transaction, this.#options.nowMs());
      record.calls++;
      record.isForPartnersOnly &&= isForPartnersOnly;
      record.isResent &&= isResent;
      this.#records.set(key, record);
      const owners = this.#owners.get(transaction.signature) ?? [];
      if (!known) this.#owners.set(transaction.signature, [...owners, record]);
      return record;
    });
  }

  /** The gateway accepted a call with these. `isBundle`: they count as one submission. */
  accepted(records: readonly AccountRecord[], isBundle: boolean): void {
    const isNew = ({ calls, transaction }: AccountRecord): boolean =>
      calls === 1 && this.#ownersOf(transaction.signature).length === 1;
    const fresh = records.filter(isNew).length;
    this.#calls.acknowledged += isBundle ? Number(fresh === records.length) : fresh;
    for (const record of records) record.isAcknowledged = true;
  }

  /** A partner has received a call. null: bytes that no customer signed. */
  received(name: PartnerName, signed: readonly (SentTransaction | null)[]): void {
    for (const { signature } of this.#checked(name, signed)) {
      this.#checkRefused(name, signature, this.#ownersOf(signature));
      this.#resends.received(signature);
    }
  }

  /** The last byte of a copy has left for a leader. null: bytes that no customer signed. */
  leftForLeader(leadsNear: boolean, signed: SentTransaction | null): void {
    for (const { signature } of this.#checked(leadersName, [signed])) {
      if (!leadsNear)
        throw new Violation("a leader gets transactions near its slots only", signature);
      this.#copies.received(signature);
    }
  }

  /** Throws Violation if these were not for the partner. */
  #checked(name: RouteName, signed: readonly (SentTransaction | null)[]): SentTransaction[] {
    const invariant = "a partner receives nothing that was not accepted";
    const tip = signed.reduce((sum, one) => sum + (one?.tip ?? 0), 0);
    if (tip < minimumTip)
      throw new Violation("a transaction without the required tip is never accepted", name);
    if (name === "costly" && tip < costlyTip)
      throw new Violation(invariant, `${name}: tip ${tip}, its minimum is ${costlyTip}`);
    return signed.map((one) => {
      if (!one) throw new Violation(invariant, `${name}: bytes that nobody signed`);
      const owners = this.#ownersOf(one.signature);
      if (owners.length === 0) throw new Violation(invariant, `${name}: ${one.signature}`);
      const isForPartnersOnly = owners.every((record) => record.isForPartnersOnly);
      const problem = partnerProblemOf(name, one, isForPartnersOnly);
      if (problem !== null) throw new Violation(invariant, `${name}: ${one.signature} ${problem}`);
      return one;
    });
  }

  /** A partner that refused it for good does not get it again, unless it is submitted again. */
  #checkRefused(name: PartnerName, signature: string, owners: readonly AccountRecord[]): void {
    const nowMs = this.#options.nowMs();
    const sinceMs = nowMs - (this.#refusedMs.get(`${name} ${signature}`) ?? nowMs);
    const [owner] = owners;
    if (sinceMs <= refusalMs || owners.length > 1 || (owner?.calls ?? 0) > 1) return;
    throw new Violation(
      "a partner that refused for good gets nothing again",
      `${name}: ${signature} after ${sinceMs} ms`,
    );
  }

  #ownersOf(signature: string): readonly AccountRecord[] {
    return this.#owners.get(signature) ?? [];
  }

  /** The rules refused the only call with these: no partner may have them. */
  refusedByRules(customer: number, transactions: readonly SentTransaction[]): void {
    for (const { signature } of transactions) {
      const [owner, ...others] = this.#ownersOf(signature);
      if (owner?.customer !== customer || owner.calls > 1 || others.length > 0) continue;
      if (owner.isAcknowledged) continue;
      for (const [name, view] of this.#views)
        if (view.receptionOf(signature).received > 0)
          throw new Violation(
            "a partner receives nothing that was not accepted",
            `${name}: ${signature} was refused`,
          );
    }
  }

  refusedForGood(name: PartnerName, signature: string): void {
    const key = `${name} ${signature}`;
    if (!this.#refusedMs.has(key)) this.#refusedMs.set(key, this.#options.nowMs());
  }

  /** The service sends an event of a transaction to a subscriber. */
  pushed(customer: number, signature: string, event: ShownEvent): void {
    const record = this.find(customer, signature);
    if (!record)
      throw new Violation("a customer sees its own transactions only", `${customer} ${signature}`);
    if (event.kind === "received") {
      record.isEnded = false;
      // A transaction that every partner refused begins again when it is submitted again.
      if (record.reported === "rejected") record.reported = null;
      if (record.firstEnd === "rejected") record.firstEnd = null;
    }
    const problem = record.live.add(event, true);
    if (problem !== null) throw new Violation("a timeline is in order", `${signature}: ${problem}`);
    this.#checkTrue(record, event, record.live);
    this.withdrawals.pushed(customer, signature, event, this.#options.nowMs());
    record.attempts.add(event, this.#options.nowMs());
    const end = endKinds.find((kind) => kind === event.kind);
    if (!end) return;
    record.attempts.clear(); // results are not shown after the end
    this.#checkEnd(record, end, true);
  }

  /** The knowledge of the customer before it asks. */
  known(customer: number, signature: string): KnownBefore {
    const { isAcknowledged = false, reported = null } = this.find(customer, signature) ?? {};
    return { isAcknowledged, reported };
  }

  /** The customer asked. null: the service does not know it. */
  shown(question: Question, status: ShownStatus | null): void {
    const { customer, signature, before } = question;
    const record = this.find(customer, signature);
    if (!status) {
      if (!before.isAcknowledged) return;
      throw new Violation("nothing acknowledged is lost", `${signature} of customer ${customer}`);
    }
    if (!record)
      throw new Violation("a customer sees its own transactions only", `${customer} ${signature}`);
    const timeline = new ShownTimeline();
    const isWhole = status.events.length < eventsMax;
    for (const event of status.events) {
      const problem = timeline.add(event, isWhole);
      if (problem !== null)
        throw new Violation("a timeline is in order", `${signature}: ${problem}`);
      this.#checkTrue(record, event, timeline);
    }
    const end = endKinds.find((kind) => kind === status.state);
    if (end) this.#checkEnd(record, end, false);
    else if (before.reported !== null && lastEnds.has(before.reported))
      throw new Violation(
        "a submission has one final state",
        `${signature}: ${before.reported}, then ${status.state}`,
      );
  }

  #checkTrue({ transaction }: AccountRecord, event: ShownEvent, timeline: ShownTimeline): void {
    const problem = this.#problemOf(transaction, event, timeline);
    if (problem !== null)
      throw new Violation("a timeline is true", `${transaction.signature}: ${problem}`);
  }

  #problemOf(
    transaction: SentTransaction,
    { kind, route, slot, reason, sibling }: ShownEvent,
    timeline: ShownTimeline,
  ): string | null {
    const { signature } = transaction;
    const { chain } = this.#options;
    if (sibling !== undefined && !this.#hasSuperseded(sibling, transaction))
      return `superseded by ${sibling}, which did not land with its nonce value`;
    if (route !== undefined) {
      const view = this.#views.get(route);
      if (!view) return `unknown partner ${route}`;
      if (kind !== "sent" && kind !== "acknowledged" && kind !== "refused") return null;
      const { received, acknowledged, refused } = view.receptionOf(signature);
      const facts = { sent: received, acknowledged, refused };
      const count = timeline.count(kind, route);
      if (count <= facts[kind]) return null;
      return `${kind} ${count} times at ${route}, in truth ${facts[kind]}`;
    }
    if (kind === "landed" || kind === "landed_failed") {
      const block = chain.find(signature, chain.confirmed);
      if (!block || block.slot === BigInt(slot ?? -1)) return null; // without a block, the end is false
      return `${kind} in slot ${slot}, in truth in slot ${block.slot}`;
    }
    const isOfBlock = kind === "seen" || (kind === "withdrawn" && reason === "update_parent");
    if (!isOfBlock || chain.wasShown(signature, BigInt(slot ?? 0))) return null;
    return `${kind} in slot ${slot}, which never had it`;
  }

  /** Whether it landed with the nonce value of `other`. */
  #hasSuperseded(signature: string, { nonce, blockhash }: SentTransaction): boolean {
    const { chain } = this.#options;
    const landed = this.#ownersOf(signature)[0]?.transaction;
    const isOfNonce = landed?.nonce?.account === nonce?.account && landed?.blockhash === blockhash;
    return isOfNonce && chain.find(signature, chain.confirmed) !== undefined;
  }

  #checkEnd(record: AccountRecord, end: EndKind, isPushed: boolean): void {
    const { transaction, reported, firstEnd } = record;
    const { signature } = transaction;
    if (firstEnd !== null && firstEnd !== end && lastEnds.has(firstEnd))
      throw new Violation(
        "a submission has one final state",
        `${signature}: ${firstEnd}, then ${end}`,
      );
    const isFirst = this.isOpen(transaction);
    const problem = reported === end ? null : this.#problemOfEnd(transaction, end);
    if (problem !== null)
      throw new Violation("an end is true", `${signature}: ${end}, but ${problem}`);
    if (reported !== end) record.reportedMs = this.#options.nowMs();
    if (isPushed || reported !== end) record.endedMs = this.#options.nowMs();
    record.reported = end;
    record.firstEnd = end;
    if (!isPushed) return;
    if (record.isEnded)
      throw new Violation("a submission has one final state", `${signature}: ${end} twice`);
    record.isEnded = true;
    const ended = this.#ended.get(end) ?? new Map<string, boolean>();
    this.#ended.set(end, ended);
    // It counts again when it has left the memory and another customer submits it.
    const key = this.#options.forgetsEnded ? `${record.customer} ${signature}` : signature;
    if (!ended.has(key)) ended.set(key, isFirst);
  }

  /** The fact that contradicts the end; null: none. */
  #problemOfEnd(transaction: SentTransaction, end: EndKind): string | null {
    const { signature, nonce } = transaction;
    const { chain, partners } = this.#options;
    if (end === "landed" || end === "landed_failed") {
      const block = chain.find(signature, chain.confirmed);
      if (!block) return "no confirmed block contains it";
      const isFailed = block.landed.get(signature) !== null;
      if (isFailed === (end === "landed_failed")) return null;
      return isFailed ? "it failed" : "it succeeded";
    }
    // Every partner may refuse what an earlier call has landed.
    const isFirstCall = this.#ownersOf(signature).reduce((sum, { calls }) => sum + calls, 0) <= 1;
    if ((absentEnds.has(end) || isFirstCall) && chain.find(signature, chain.tip))
      return "a block contains it";
    if (absentEnds.has(end)) {
      if ((end === "superseded") !== (nonce !== null))
        return nonce ? "it has a nonce" : "it has none";
      return chain.isValid(transaction, chain.tip) ? "it can still land" : null;
    }
    const all = partnerNames.map((name) => partners[name].receptionOf(signature));
    return all.every(({ refusedForGood }) => refusedForGood === 0) ? "no partner refused it" : null;
  }

  /** The service was killed. It reports an end before the end is on the disk. */
  crashed(): void {
    this.withdrawals.crashed();
    const sinceMs = this.#options.disk.workedBeforeMs - durableMs;
    for (const record of this.#records.values()) {
      if (record.reportedMs > sinceMs) record.reported = null;
      record.live.restart(record.reported);
      record.attempts.clear();
    }
  }

  /** The service runs again. */
  restarted(): void {
    this.#quietSinceMs = this.#options.nowMs();
    this.#calls = { possible: 0, acknowledged: 0 };
    this.#ended = new Map();
    this.#refusedMs.clear();
    this.landedTips.unsettle();
    this.#resends.restarted();
    this.#copies.restarted();
    for (const record of this.#records.values()) record.isEnded = false;
  }

  /** Called once in each slot while the service runs. */
  check(
    node: NodeMood,
    counts: PipelineSnapshot,
    routes: readonly RouteSnapshot[],
    fastPath: FastPathSnapshot,
  ): void {
    const nowMs = this.#options.nowMs();
    if (node !== "healthy" || this.#options.chain.isStopped) this.#quietSinceMs = nowMs;
    for (const record of this.#records.values()) this.#checkDue(record, nowMs);
    for (const owners of this.#owners.values()) {
      this.#resends.check(owners, routes);
      this.#copies.check(owners, routes);
    }
    this.#checkCounts(counts);
    this.withdrawals.check(nowMs);
    // The fast path has sent them, and no submission has adopted them.
    const extra = fastPath.abandoned + fastPath.unclaimed;
    for (const route of routes) checkRouteCounts(route, this.#views.get(route.name), extra);
  }

  #checkDue(record: AccountRecord, nowMs: number): void {
    const { transaction, reported } = record;
    const { signature } = transaction;
    const { chain } = this.#options;
    const overdue = record.attempts.overdue(nowMs);
    if (overdue) throw new Violation("an attempt has a result", `${signature}: ${overdue}`);
    // Most ends are the truth by what was checked when they were reported.
    if (reported !== null && !absentEnds.has(reported)) return;
    const isLanded = chain.find(signature, chain.confirmed) !== undefined;
    if (isLanded && reported !== null)
      throw new Violation("an end is true", `${signature}: ${reported}, but a block contains it`);
    if (reported !== null || !record.isAcknowledged) return;
    const isOver = isLanded || chain.isOver(transaction);
    record.overSinceMs = isOver ? (record.overSinceMs ?? nowMs) : null;
    if (record.overSinceMs === null) return;
    const sinceMs = nowMs - Math.max(record.overSinceMs, this.#quietSinceMs);
    if (sinceMs > endMs)
      throw new Violation(
        "every acknowledged submission reaches a final state",
        `${signature} (${isLanded ? "landed" : "it cannot land"}) after ${sinceMs} ms`,
      );
  }

  #checkCounts({ open, accepted, ends }: PipelineSnapshot): void {
    const fail = (text: string): never => {
      throw new Violation("counters of submissions match", text);
    };
    for (const kind of ["landed", "landed_failed", "expired", "superseded"] as const) {
      const ended = [...(this.#ended.get(kind)?.values() ?? [])];
      const least = ended.filter((isFirst) => isFirst).length;
      if (ends[kind] < BigInt(least) || ends[kind] > BigInt(ended.length))
        fail(`${least} to ${ended.length} ended as ${kind}, ${ends[kind]} were counted`);
    }
    const { possible, acknowledged } = this.#calls;
    if (accepted > BigInt(possible) || accepted < BigInt(acknowledged))
      fail(`${acknowledged} to ${possible} were accepted, ${accepted} were counted`);
    const all = [...this.#records.values()];
    const openLeast = all.filter(
      ({ firstEnd, isAcknowledged }) => firstEnd === null && isAcknowledged,
    );
    const openMost = all.filter(({ isEnded }) => !isEnded);
    const [least, most] = [signaturesOf(openLeast), signaturesOf(openMost)];
    if (open < least || open > most) fail(`${least} to ${most} are open, ${open} were counted`);
  }
}

function signaturesOf(records: readonly AccountRecord[]): number {
  return new Set(records.map(({ transaction: { signature } }) => signature)).size;
}
