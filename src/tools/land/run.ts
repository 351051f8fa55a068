// A landing benchmark in progress: signs a round, journals it, sends it through all senders, and follows it.
//
// One round: reserve its cost in the budget, sign, write the journal to disk, call the senders in a random order
// without waiting for each other. Rounds overlap, except with one nonce, where each waits for its winner.

import { encodeBase58 } from "../../core/base58.ts";
import type { Clock } from "../../core/clock.ts";
import { isShredwayError, messageOf } from "../../core/errors.ts";
import type { KeyPair } from "../../core/key-pair.ts";
import type { Budget } from "./budget.ts";
import type { Journal } from "./journal.ts";
import type { LandNode } from "./node.ts";
import type { OpenSender } from "./open-senders.ts";
import { Outcomes } from "./outcomes.ts";
import { costOf, type LandPlan } from "./plan.ts";
import { isComplete, type RoundRecord } from "./records.ts";
import type { ShredObserver } from "./shred-observer.ts";
import { landTransaction, signatureOfWire } from "./transaction.ts";

const failuresMax = 20;
const failurePauseMs = 1000;
const waitStepMs = 50;
const stopGraceMs = 2000;

interface LandRunOptions {
  readonly plan: LandPlan;
  readonly payer: KeyPair;
  readonly node: LandNode;
  readonly senders: readonly OpenSender[];
  readonly observer: ShredObserver | null;
  readonly journal: Journal;
  readonly budget: Budget;
  /** Rounds of the journal. */
  readonly earlier: readonly RoundRecord[];
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  /** How long to wait for landings after the last round. */
  readonly waitMs: number;
  readonly pollMs: number;
  readonly stopped: AbortSignal;
  readonly onNote: (text: string) => void;
}

export class LandRun {
  readonly rounds: RoundRecord[];
  readonly #options: LandRunOptions;
  readonly #outcomes: Outcomes;
  readonly #answers = new Set<Promise<void>>();
  #nextRound: number;

  constructor(options: LandRunOptions) {
    const { earlier, node, plan, observer, clock, journal, onNote } = options;
    this.#options = options;
    this.rounds = [...earlier];
    this.#nextRound = earlier.reduce((most, { round }) => Math.max(most, round), 0) + 1;
    this.#outcomes = new Outcomes({
      node,
      nonceAccount: plan.nonceAccount,
      observer,
      clock,
      onEnd: ({ round }, { sender }, end) => journal.end(round, sender, end),
      onNote,
    });
  }

  /**
   * Sends the missing rounds and waits for their ends. False: it was stopped, and can continue. Throws ShredwayError
   * "system" if the journal cannot be written, and "rpc_failed" if the node fails repeatedly.
   */
  async run(): Promise<boolean> {
    const { clock, pollMs, journal, stopped } = this.#options;
    for (const round of this.rounds) this.#outcomes.add(round, false);
    const timer = clock.every(pollMs, () => void this.#outcomes.poll());
    try {
      await this.#sendRounds();
      await this.#settleAnswers();
      await this.#settle(() => this.#outcomes.open > 0);
    } finally {
      timer.cancel();
    }
    if (stopped.aborted) return false;
    this.#outcomes.giveUp();
    journal.finish();
    return true;
  }

  async #sendRounds(): Promise<void> {
    const { plan, stopped, clock, random, onNote } = this.#options;
    let failures = 0;
    while (!stopped.aborted && this.#missing > 0) {
      try {
        const round = await this.#round();
        if (!round) return;
        failures = 0;
        if (plan.nonceAccount !== null) await this.#settle(() => isOpen(round));
        if (this.#missing > 0) await clock.sleep(plan.intervalMs * (0.5 + random()), stopped);
      } catch (error) {
        if (!isShredwayError(error, "rpc_failed") || ++failures >= failuresMax) throw error;
        onNote(`node: ${messageOf(error)}; trying again`);
        await clock.sleep(failurePauseMs, stopped);
      }
    }
  }

  /** Rounds that are not complete yet. */
  get #missing(): number {
    return this.#options.plan.rounds - this.rounds.filter(isComplete).length;
  }

  /** Waits while `isWaiting`, at most the time of the plan. */
  async #settle(isWaiting: () => boolean): Promise<void> {
    const { clock, waitMs, stopped } = this.#options;
    const endNs = clock.monotonicNs() + BigInt(Math.round(waitMs * 1e6));
    while (isWaiting() && !stopped.aborted && clock.monotonicNs() < endNs) {
      await clock.sleep(waitStepMs, stopped);
    }
  }

  /** Also after a stop, at most 2 s: a round without its answers would compare nothing later. */
  async #settleAnswers(): Promise<void> {
    const { clock, waitMs, stopped } = this.#options;
    const beganNs = clock.monotonicNs();
    const limitMs = () => (stopped.aborted ? Math.min(stopGraceMs, waitMs) : waitMs);
    const elapsedMs = () => Number(clock.monotonicNs() - beganNs) / 1e6;
    while (this.#answers.size > 0 && elapsedMs() < limitMs()) await clock.sleep(waitStepMs);
  }

  async #lifetime(): Promise<
    Pick<RoundRecord, "lastValidBlockHeight" | "nonce"> & { text: string }
  > {
    const { node, plan } = this.#options;
    if (plan.nonceAccount !== null) {
      const { value } = await node.nonce(plan.nonceAccount);
      return { text: value, nonce: value, lastValidBlockHeight: null };
    }
    const { blockhash, lastValidBlockHeight } = await node.blockhash();
    return { text: blockhash, nonce: null, lastValidBlockHeight };
  }

  /** null: it was stopped, or the budget permits no further round. */
  async #round(): Promise<RoundRecord | null> {
    const { plan, node, senders, journal, payer, observer } = this.#options;
    const lifetime = await this.#lifetime();
    const slot = await node.slot();
    if (this.#options.stopped.aborted) return null;
    const number = this.#nextRound;
    if (!this.#reserve(number, lifetime.nonce)) return null;
    this.#nextRound++;
    const signed = senders.map(({ plan: sender, tipTo }, i) => {
      const mark = { run: journal.head.run, round: number, sender: i };
      const wire = landTransaction({ plan, sender, payer, tipTo, mark, lifetime: lifetime.text });
      const bytes = signatureOfWire(wire);
      return { wire, bytes, text: encodeBase58(bytes) };
    });
    const round: RoundRecord = {
      round: number,
      slot,
      lastValidBlockHeight: lifetime.lastValidBlockHeight,
      nonce: lifetime.nonce,
      transactions: signed.map(({ text }, sender) => ({
        sender,
        signature: text,
        lamports: costOf(plan, plan.senders[sender] ?? never(sender)).totalLamports,
        answer: null,
        end: null,
      })),
    };
    journal.round(round);
    for (const { text, bytes } of signed) observer?.watch(text, bytes);
    this.#send(
      round,
      signed.map(({ wire, text }, i) => senders[i]?.sender.prepare(wire, text)),
    );
    this.rounds.push(round);
    this.#outcomes.add(round, true);
    return round;
  }

  /** False: the budget is used up. */
  #reserve(round: number, nonce: string | null): boolean {
    const { plan, budget, onNote } = this.#options;
    const reservations = plan.senders.map((sender, i) => ({
      group: nonce ?? `${round}/${i}`,
      lamports: costOf(plan, sender).totalLamports,
    }));
    if (!budget.allows(reservations)) {
      onNote(`budget: used up after ${this.rounds.length} rounds; a kill interrupted some of them`);
      return false;
    }
    budget.reserve(reservations);
    return true;
  }

  /** Calls all senders at once, in a random order, so that none always comes first. */
  #send(
    round: RoundRecord,
    requests: readonly (ReturnType<OpenSender["sender"]["prepare"]> | undefined)[],
  ) {
    const { clock, random, journal, onNote } = this.#options;
    const shuffled = round.transactions
      .map((transaction) => ({ transaction, key: random() }))
      .toSorted((a, b) => a.key - b.key);
    for (const [order, { transaction }] of shuffled.entries()) {
      const request = requests[transaction.sender];
      if (!request) continue;
      const sentNs = clock.nowNs();
      const beganNs = clock.monotonicNs();
      const answered = request().then(({ error, hasResponse }) => {
        const elapsedNs = Number(clock.monotonicNs() - beganNs);
        const answer = { sentNs, order, responseNs: hasResponse ? elapsedNs : null, error };
        transaction.answer = answer;
        return journal.answer(round.round, transaction.sender, answer);
      });
      // Only the journal fails here. It then refuses the next round, which ends the run.
      const reported = answered.catch((error: unknown) => onNote(messageOf(error)));
      transaction.answer = { sentNs, order, responseNs: null, error: null };
      const done = reported.finally(() => this.#answers.delete(done));
      this.#answers.add(done);
    }
  }
}

function isOpen({ transactions }: RoundRecord): boolean {
  return transactions.some(({ end }) => end === null);
}

function never(sender: number): never {
  throw new RangeError(`unknown sender number ${sender}; expected a sender of the plan`);
}
