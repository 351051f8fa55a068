// The customers of the gateway: they sign and submit transactions, repeat calls, follow the timelines, and
// compare each answer with their knowledge.

import type { TimelineEvent } from "../../../src/gateway/submission/types.ts";
import { Violation } from "../relay-checks.ts";
import { accounts } from "../scenario.ts";
import type { SimulatedDisk } from "../simulated-disk.ts";
import { ancestorOf, type Chain } from "./chain.ts";
import { type GatewayLife, keyText } from "./gateway-life.ts";
import type { GatewayAction, SendMethod } from "./gateway-scenario.ts";
import type { KeyKind } from "./key-kinds.ts";
import { costlyTip, type PartnerName, type SimulatedPartner } from "./partners.ts";
import type { ShownStatus, SubmissionChecks } from "./submission-checks.ts";
import { minimumTip, type SentTransaction, type Transactions } from "./transactions.ts";

/** After an outage, a partner is tried again within this time. */
const recoveredMs = 18_000;
/** Every call is answered within this time, or the service was killed. */
const answerMs = 10_000;
/** Calls that are remembered for repetitions. */
const callsKept = 12;
/** Statuses that are asked for at once. */
const askedMax = 200;

interface Call {
  readonly customer: number;
  readonly key: KeyKind;
  readonly method: SendMethod;
  readonly transactions: readonly SentTransaction[];
  readonly maxRetries: number | null;
}

interface SendersOptions {
  readonly chain: Chain;
  readonly transactions: Transactions;
  readonly partners: Readonly<Record<PartnerName, SimulatedPartner>>;
  readonly checks: SubmissionChecks;
  /** The gateway; null: the service does not run. */
  readonly gateway: () => GatewayLife | null;
  readonly disk: SimulatedDisk;
  readonly nowMs: () => number;
  /** Writes to the trace. */
  readonly note: (text: string) => void;
  /** Runs an action that may throw Violation. */
  readonly guard: (action: () => void) => void;
}

type Answer =
  | { readonly result: unknown }
  | { readonly reason: string; readonly data: Readonly<Record<string, unknown>> };

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function answerOf(json: unknown): Answer {
  const error = isRecord(json) ? json["error"] : undefined;
  if (!isRecord(error)) return { result: isRecord(json) ? json["result"] : undefined };
  const data = isRecord(error["data"]) ? error["data"] : {};
  return { reason: String(data["reason"]), data };
}

/** A status that a customer can read. Only its form is checked. */
function statusOf(value: unknown): ShownStatus | null {
  if (!isRecord(value)) return null;
  const { signature, state, events } = value;
  if (typeof signature !== "string" || typeof state !== "string" || !Array.isArray(events))
    throw new Violation("a status has its form", JSON.stringify(value));
  return { signature, state, events };
}

function shownEvent(event: TimelineEvent) {
  const route = "route" in event ? event.route : undefined;
  const attempt = "attempt" in event ? event.attempt : undefined;
  const slot = "slot" in event && event.slot !== null ? Number(event.slot) : undefined;
  const reason = "reason" in event ? event.reason : undefined;
  return { kind: event.kind, route, attempt, slot, reason };
}

export class Senders {
  readonly #options: SendersOptions;
  readonly #calls: Call[] = [];
  /** When the calls began that wait for their answers. */
  readonly #waiting = new Map<Promise<unknown>, number>();
  /** When the present life of the service began to serve. */
  #servedSinceMs = 0;

  constructor(options: SendersOptions) {
    this.#options = options;
  }

  send(event: Extract<GatewayAction, { kind: "send" }>): void {
    const { chain, transactions } = this.#options;
    const block = ancestorOf(chain.tip, event.age) ?? chain.tip;
    if (!block || !this.#options.gateway()) return;
    const { customer, key, method, maxRetries } = event;
    const blockhash = Buffer.from(block.hash, "hex");
    const signed = event.transactions.map((each) => transactions.sign(customer, each, blockhash));
    const call: Call = { customer, key, method, transactions: signed, maxRetries };
    this.#calls.push(call);
    if (this.#calls.length > callsKept) this.#calls.shift();
    void this.#submit(call);
  }

  /** Another customer, or the same one, sends the transactions of an earlier call. */
  sendAgain({
    customer,
    choice,
    maxRetries,
  }: Extract<GatewayAction, { kind: "send again" }>): void {
    const call = this.#calls[choice % Math.max(1, this.#calls.length)];
    if (call) void this.#submit({ ...call, customer, key: "own", maxRetries });
  }

  /** The service runs again: customers subscribe, and ask for everything that was acknowledged. */
  restarted(gateway: GatewayLife): void {
    const { checks, guard, note } = this.#options;
    this.#servedSinceMs = this.#options.nowMs();
    checks.restarted();
    this.#waiting.clear();
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
    this.#checkWaiting();
    this.#ask(({ reported }) => reported === null);
  }

  #checkWaiting(): void {
    const [beganMs] = this.#waiting.values(); // the first one is the oldest
    const sinceMs = this.#options.nowMs() - (beganMs ?? this.#options.nowMs());
    if (sinceMs > answerMs) throw new Violation("every call is answered", `after ${sinceMs} ms`);
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
    const { checks, guard } = this.#options;
    const questions = signatures.map((signature) => {
      return { customer, signature, before: checks.known(customer, signature) };
    });
    const answer = await this.#call(customer, "own", "getTransactionStatus", [signatures]);
    if (!answer) return;
    guard(() => {
      if (!("result" in answer))
        throw new Violation("a status is answered", `reason ${answer.reason}`);
      const statuses: unknown[] = Array.isArray(answer.result) ? answer.result : [];
      for (const [i, question] of questions.entries())
        checks.shown(question, statusOf(statuses[i]));
    });
  }

  /** null: the service was killed before it answered. */
  async #call(
    customer: number,
    key: KeyKind,
    method: string,
    params: readonly unknown[],
  ): Promise<Answer | null> {
    const gateway = this.#options.gateway();
    if (!gateway) return null;
    const answer = gateway.call({
      key: keyText(customer, key),
      address: `192.0.2.${customer}`,
      method,
      params,
    });
    this.#waiting.set(answer, this.#options.nowMs());
    const json = await answer;
    this.#waiting.delete(answer);
    return this.#options.gateway() === gateway ? answerOf(json) : null;
  }

  async #submit(call: Call): Promise<void> {
    const { customer, key, method, transactions, maxRetries } = call;
    const { checks, guard, note } = this.#options;
    if (!this.#options.gateway()) return;
    const texts = transactions.map(({ wire }) => wire.toString("base64"));
    const options = {
      encoding: "base64",
      ...(method === "sendTransaction" && { skipPreflight: true }),
      ...(maxRetries !== null && method === "sendTransaction" && { maxRetries }),
    };
    const refusal = refusalOf(call);
    const records = refusal === null ? checks.submitted(customer, transactions) : [];
    const mayBeRefused = this.#mayBeRefused(call);
    const params = [method === "sendTransaction" ? texts[0] : texts, options];
    const answer = await this.#call(customer, key, method, params);
    if (!answer) return;
    note(`customer ${customer} ${method}: ${JSON.stringify(answer)}`);
    guard(() => {
      if (!("result" in answer)) {
        this.#refused(call, answer, refusal, mayBeRefused || this.#mayBeRefused(call));
        return;
      }
      if (refusal !== null)
        throw new Violation(
          refusal.startsWith("tip")
            ? "a transaction without the required tip is never accepted"
            : "an invalid call is refused",
          `${method}: accepted in spite of ${refusal}`,
        );
      const expected = transactions.map(({ signature }) => signature);
      const got: unknown = method === "sendTransaction" ? [answer.result] : answer.result;
      if (JSON.stringify(got) !== JSON.stringify(expected))
        throw new Violation("an answer is true", `${method}: ${JSON.stringify(answer.result)}`);
      checks.accepted(records, method === "sendBundle");
    });
  }

  #refused(
    { method, customer }: Call,
    { reason, data }: Extract<Answer, { reason: string }>,
    refusal: string | null,
    mayBeRefused: boolean,
  ): void {
    const { checks } = this.#options;
    const isForRoutes = reason === "no_route" || reason === "batch_failed";
    const isForDisk = reason === "store_failed" || reason === "batch_failed";
    const isTrue =
      refusal === null
        ? (isForRoutes && mayBeRefused) || (isForDisk && this.#options.disk.hasFailedLately)
        : reason === refusal;
    if (!isTrue)
      throw new Violation("a refusal is true", `${method}: ${reason}, expected ${refusal}`);
    // A part of a batch was accepted.
    const sent: unknown[] = Array.isArray(data["sent"]) ? data["sent"] : [];
    const records = sent.flatMap((signature) => checks.find(customer, String(signature)) ?? []);
    checks.accepted(records, false);
  }

  /** Whether a valid call may fail: no partner works, or what it sends cannot land any longer. */
  #mayBeRefused({ method, transactions }: Call): boolean {
    const { partners, checks, nowMs } = this.#options;
    if (transactions.some((transaction) => !checks.isOpen(transaction))) return true;
    const tip = Math.min(...transactions.map((transaction) => transaction.tip));
    const fitting: PartnerName[] =
      method === "sendBundle"
        ? ["builder"]
        : ["staked", "builder", ...(tip >= costlyTip ? (["costly"] as const) : [])];
    return !fitting.some((name) => {
      const sinceMs = partners[name].goodSinceMs;
      if (sinceMs === null) return false;
      return nowMs() - sinceMs > recoveredMs || sinceMs <= this.#servedSinceMs;
    });
  }
}

/** The reason with which the rules refuse a call, whatever the state of the world; null: none. */
function refusalOf({ key, method, transactions }: Call): string | null {
  if (key === "reader") return "scope_missing";
  if (key !== "own") return "unauthorized";
  const isBatch = method === "sendBatch";
  const bundleTip = transactions.reduce((sum, { tip }) => sum + tip, 0);
  const tips = method === "sendBundle" ? [bundleTip] : transactions.map(({ tip }) => tip);
  const poor = tips.find((tip) => tip < minimumTip);
  if (poor !== undefined && isBatch) return "batch_refused";
  if (poor !== undefined) return poor === 0 ? "tip_missing" : "tip_too_low";
  if (!transactions.some(({ isForged }) => isForged)) return null;
  return isBatch ? "batch_refused" : "signature_invalid";
}
