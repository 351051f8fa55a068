// The customers of the gateway: they sign and submit transactions, repeat calls, follow the timelines, and
// compare each answer with their knowledge.

import type { TimelineEvent } from "../../../src/gateway/submission/types.ts";
import type { HttpCallers, PreparedCall } from "../http/http-callers.ts";
import type { RawCall } from "../http/request-forms.ts";
import type { LeaderSlots } from "../leader-slots.ts";
import { Violation } from "../relay-checks.ts";
import { accounts } from "../scenario.ts";
import type { SimulatedDisk } from "../simulated-disk.ts";
import { type Answer, answerOf, isRecord, type SenderCalls } from "./answers.ts";
import {
  type Call,
  fittingPartners,
  isForPartnersOnly,
  paramsOf,
  rawOf,
  refusalOf,
  signaturesIn,
} from "./call-rules.ts";
import { ancestorOf, type Chain } from "./chain.ts";
import { keyText } from "./created-keys.ts";
import type { GatewayLife } from "./gateway-life.ts";
import type { GatewayAction } from "./gateway-scenario.ts";
import type { KeyKind } from "./key-kinds.ts";
import type { MinimumTips } from "./minimum-tips.ts";
import type { NonceChecks } from "./nonce-checks.ts";
import type { PartnerName, SimulatedPartner } from "./partners.ts";
import type { ShownEvent, ShownStatus } from "./shown-timeline.ts";
import type { SubmissionChecks } from "./submission-checks.ts";
import { minimumTip, type Transactions } from "./transactions.ts";

/** After an outage, a partner is tried again within this time. */
const recoveredMs = 18_000;
/** Calls that are remembered for repetitions. */
const callsKept = 12;
/** Statuses that are asked for at once. */
const askedMax = 200;

interface SendersOptions {
  readonly chain: Chain;
  readonly transactions: Transactions;
  readonly partners: Readonly<Record<PartnerName, SimulatedPartner>>;
  readonly checks: SubmissionChecks;
  readonly nonceChecks: NonceChecks;
  /** The gateway; null: the service does not run. */
  readonly gateway: () => GatewayLife | null;
  readonly http: HttpCallers;
  readonly minimumTips: MinimumTips;
  readonly slots: LeaderSlots;
  readonly disk: SimulatedDisk;
  readonly nowMs: () => number;
  /** Writes to the trace. */
  readonly note: (text: string) => void;
  /** Runs an action that may throw Violation. */
  readonly guard: (action: () => void) => void;
}

/** A status that a customer can read. Only its form is checked. */
function statusOf(value: unknown): ShownStatus | null {
  if (!isRecord(value)) return null;
  const { signature, state, events } = value;
  if (typeof signature !== "string" || typeof state !== "string" || !Array.isArray(events))
    throw new Violation("a status has its form", JSON.stringify(value));
  return { signature, state, events };
}

function shownEvent(event: TimelineEvent): ShownEvent {
  const route = "route" in event ? event.route : undefined;
  const attempt = "attempt" in event ? event.attempt : undefined;
  const slot = "slot" in event && event.slot !== null ? Number(event.slot) : undefined;
  const reason = "reason" in event ? event.reason : undefined;
  const sibling = "sibling" in event ? event.sibling : undefined;
  return { kind: event.kind, route, attempt, slot, reason, sibling };
}

export class Senders implements SenderCalls {
  readonly #options: SendersOptions;
  readonly #calls: Call[] = [];
  /** When the present life of the service began to serve. */
  #servedSinceMs = 0;

  constructor(options: SendersOptions) {
    this.#options = options;
  }

  send(event: Extract<GatewayAction, { kind: "send" }>): void {
    const { chain, transactions } = this.#options;
    const block = ancestorOf(chain.tip, event.age) ?? chain.tip;
    if (!block || !this.#options.gateway()) return;
    const { customer, key, method, maxRetries, isSteady = false } = event;
    const blockhash = Buffer.from(block.hash, "hex");
    const signed = event.transactions.map((each) => transactions.sign(customer, each, blockhash));
    void this.submit({ customer, key, method, transactions: signed, maxRetries, isSteady });
  }

  sendAlt(event: Extract<GatewayAction, { kind: "send alt" }>): void {
    const { chain, transactions } = this.#options;
    const block = ancestorOf(chain.tip, event.age) ?? chain.tip;
    if (!block || !this.#options.gateway()) return;
    const { customer, key, transaction, enableFallback } = event;
    const signed = transactions.sign(customer, transaction, Buffer.from(block.hash, "hex"));
    const call = { customer, key, method: "sendAlt", maxRetries: null, enableFallback } as const;
    void this.submit({ ...call, transactions: [signed] });
  }

  /** Another customer, or the same one, sends the transactions of an earlier call. */
  sendAgain({
    customer,
    choice,
    maxRetries,
  }: Extract<GatewayAction, { kind: "send again" }>): void {
    const call = this.#calls[choice % Math.max(1, this.#calls.length)];
    if (call) void this.#send({ ...call, customer, key: "own", maxRetries });
  }

  /** The service runs again: customers subscribe, and ask for everything that was acknowledged. */
  restarted(gateway: GatewayLife): void {
    const { checks, guard, note } = this.#options;
    this.#servedSinceMs = this.#options.nowMs();
    checks.restarted();
    for (const [customer, { id }] of accounts.entries()) {
      gateway.subscribe(id, (signature, event) => {
        const shown = shownEvent(event);
        note(`customer ${customer} hears ${JSON.stringify(shown)} of ${signature.slice(0, 8)}`);
        guard(() => checks.pushed(customer, signature, shown));
      });
    }
    this.#ask(() => true);
  }

  /** Customers ask for what has no end yet. */
  ask(): void {
    this.#options.http.check();
    this.#ask(({ reported }) => reported === null);
  }

  #ask(isAsked: (record: { readonly reported: string | null }) => boolean): void {
    const { checks } = this.#options;
    const records = [...checks.records];
    for (const customer of accounts.keys()) {
      const own = records.filter((record) => record.customer === customer && isAsked(record));
      const strange = records.find(
        ({ transaction }) => !checks.find(customer, transaction.signature),
      );
      const asked = [...own.slice(-askedMax), ...(strange ? [strange] : [])];
      const signatures = asked.map(({ transaction }) => transaction.signature);
      if (signatures.length > 0) void this.#askFor(customer, signatures);
    }
  }

  async #askFor(customer: number, signatures: readonly string[]): Promise<void> {
    const { checks, disk, guard } = this.#options;
    const questions = signatures.map((signature) => {
      return { customer, signature, before: checks.known(customer, signature) };
    });
    const answer = await this.call(customer, "own", "getTransactionStatus", [signatures]);
    if (!answer) return;
    guard(() => {
      if (!("result" in answer)) {
        if (answer.reason === "store_failed" && disk.wasSilentLately) return;
        throw new Violation("a status is answered", `reason ${answer.reason}`);
      }
      const statuses: unknown[] = Array.isArray(answer.result) ? answer.result : [];
      for (const [i, question] of questions.entries())
        checks.shown(question, statusOf(statuses[i]));
    });
  }

  /** null: the service was killed, or the connection was cut, before the answer came. */
  async call(
    customer: number,
    key: KeyKind,
    method: string,
    params: readonly unknown[],
  ): Promise<Answer | null> {
    return this.#answerOf(this.#prepare(customer, key, { method, params }));
  }

  #prepare(
    customer: number,
    key: KeyKind,
    call: {
      readonly method: string;
      readonly params: readonly unknown[];
      readonly raw?: RawCall;
      readonly isSteady?: boolean;
    },
  ): PreparedCall {
    const isKeyValid = key === "own" || key === "reader";
    return this.#options.http.prepare(customer, {
      ...call,
      key: keyText(customer, key),
      isKeyValid,
    });
  }

  async #answerOf(prepared: PreparedCall): Promise<Answer | null> {
    const gateway = this.#options.gateway();
    if (!gateway) return null;
    const json = await prepared.send();
    return json !== null && this.#options.gateway() === gateway ? answerOf(json) : null;
  }

  /** It may be repeated later. */
  async submit(call: Call): Promise<void> {
    this.#calls.push(call);
    if (this.#calls.length > callsKept) this.#calls.shift();
    await this.#send(call);
  }

  async #send(call: Call): Promise<void> {
    const { customer, key, method, transactions } = call;
    const { checks, nonceChecks, guard, note, nowMs } = this.#options;
    if (!this.#options.gateway()) return;
    // The operator may lower the minimum before the call arrives.
    const mayBeAccepted = refusalOf(call, minimumTip) === null;
    const isAlt = isForPartnersOnly(call);
    const params = paramsOf(call);
    const { isSteady = false } = call;
    const request = { method, params, raw: rawOf(call), isSteady };
    const prepared = this.#prepare(customer, key, request);
    if (!prepared.isComplete) {
      void prepared.send();
      return;
    }
    const isResent = method === "sendTransaction" && call.maxRetries === null;
    const form = { isForPartnersOnly: isAlt, isResent };
    const records = mayBeAccepted ? checks.submitted(customer, transactions, form) : [];
    const pair = call.pair ? nonceChecks.submitted(call, call.pair) : null;
    const inUse = pair ? nonceChecks.inUse(pair) : [];
    const wasInUse = pair ? nonceChecks.mayBeInUse(pair) : false;
    const beganMs = nowMs();
    const before = this.#worldOf(call);
    const answer = await this.#answerOf(prepared);
    if (!answer) return;
    note(`customer ${customer} ${method}: ${JSON.stringify(answer)}`);
    guard(() => {
      const after = this.#worldOf(call);
      const world = {
        mayBeRefused: before.mayBeRefused || after.mayBeRefused,
        isPartnerSlot: before.isPartnerSlot || after.isPartnerSlot,
        isStrangeSlot: before.isStrangeSlot || after.isStrangeSlot,
      };
      const minimums = this.#options.minimumTips.since(beganMs);
      const refusals = minimums.map((minimum) => refusalOf(call, minimum));
      if (!("result" in answer)) {
        const { reason } = answer;
        if (pair && reason === "nonce_in_use" && wasInUse) return;
        if (pair && nonceChecks.mayBeRefused(pair, reason, beganMs)) return;
        if (isAlt && reason === "non_partner_slot" && world.isStrangeSlot) return;
        this.#refused(call, answer, refusals, world.mayBeRefused);
        // Otherwise only another call may have submitted them.
        if (mayBeAccepted && !refusals.includes(null))
          checks.refusedByRules(customer, transactions);
        return;
      }
      const refusal = refusals.includes(null) ? null : (refusals[0] ?? null);
      if (refusal !== null)
        throw new Violation(
          refusal.startsWith("tip")
            ? "a transaction without the required tip is never accepted"
            : "an invalid call is refused",
          `${method}: accepted in spite of ${refusal}`,
        );
      // One that has landed is accepted again, and not sent.
      if (isAlt && !world.isPartnerSlot && transactions.every((each) => checks.isOpen(each)))
        throw new Violation("an invalid call is refused", `${method}: no partner leads`);
      const expected = transactions.map(({ signature }) => signature);
      if (JSON.stringify(signaturesIn(method, answer.result)) !== JSON.stringify(expected))
        throw new Violation("an answer is true", `${method}: ${JSON.stringify(answer.result)}`);
      checks.accepted(records, method === "sendBundle");
      if (pair) nonceChecks.accepted(pair, inUse, beganMs);
    });
  }

  #worldOf(call: Call) {
    const slots = this.#options.slots.ofPartners();
    return {
      mayBeRefused: this.#mayBeRefused(call),
      isPartnerSlot: slots.some,
      isStrangeSlot: !slots.all,
    };
  }

  #refused(
    { method, customer }: Call,
    { reason, data }: Extract<Answer, { reason: string }>,
    refusals: readonly (string | null)[],
    mayBeRefused: boolean,
  ): void {
    const { checks } = this.#options;
    const isForRoutes = reason === "no_route" || reason === "batch_failed";
    const isForDisk = reason === "store_failed" || reason === "batch_failed";
    const isOfWorld =
      (isForRoutes && mayBeRefused) || (isForDisk && this.#options.disk.hasFailedLately);
    if (!refusals.includes(reason) && !(refusals.includes(null) && isOfWorld))
      throw new Violation(
        "a refusal is true",
        `${method}: ${reason}, expected ${refusals.join(" or ")}`,
      );
    // A part of a batch was accepted.
    const sent: unknown[] = Array.isArray(data["sent"]) ? data["sent"] : [];
    const records = sent.flatMap((signature) => checks.find(customer, String(signature)) ?? []);
    checks.accepted(records, false);
  }

  /** Whether a valid call may fail: no partner works, or what it sends cannot land any longer. */
  #mayBeRefused(call: Call): boolean {
    const { partners, checks, nowMs } = this.#options;
    if (call.transactions.some((transaction) => !checks.isOpen(transaction))) return true;
    return !fittingPartners(call).some((name) => {
      const sinceMs = partners[name].goodSinceMs;
      if (sinceMs === null) return false;
      return nowMs() - sinceMs > recoveredMs || sinceMs <= this.#servedSinceMs;
    });
  }
}
