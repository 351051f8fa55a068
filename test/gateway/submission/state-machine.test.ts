// The running state machine with random events: it follows the table of transitions, and only
// events of the table reach timelines, listeners, observers and tips.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { SubmissionEvent } from "../../../src/gateway/submission/events.ts";
import { FailureLog } from "../../../src/gateway/submission/failure-log.ts";
import { isEnd } from "../../../src/gateway/submission/lifecycle.ts";
import { defaultLimits } from "../../../src/gateway/submission/limits.ts";
import { Listeners } from "../../../src/gateway/submission/listeners.ts";
import { SubmissionStateMachine } from "../../../src/gateway/submission/state-machine.ts";
import { SubmissionIndex } from "../../../src/gateway/submission/submission-index.ts";
import { SubmissionWriter } from "../../../src/gateway/submission/submission-writer.ts";
import {
  type AccountTransaction,
  Submission,
  type TrackedTransaction,
} from "../../../src/gateway/submission/tracked-transaction.ts";
import {
  type EventKind,
  eventKinds,
  phaseOf,
  transition,
} from "../../../src/gateway/submission/transitions.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { makeFacts } from "./model.ts";
import { ModelStore } from "./model-routes-and-store.ts";

const accounts = ["ann", "bob"] as const;
/** Events from outside that the machine gets after accounts have joined. */
const drivenKinds = eventKinds.filter(
  (kind) => !["accepted", "resumed", "call_refused"].includes(kind),
);

class MachineHarness {
  readonly clock = new ManualClock();
  readonly memory = new SubmissionIndex(100);
  /** "account signature kind" of every event for a listener. */
  readonly reported: string[] = [];
  readonly observed = new Set<string>();
  readonly tips = new Map<string, "seen" | "landed">();
  readonly machine: SubmissionStateMachine;
  readonly transactions: readonly TrackedTransaction[];
  readonly views: readonly AccountTransaction[];

  constructor() {
    const random = new SeededRandom(7);
    const store = new ModelStore(this.clock, random);
    store.failShare = 0;
    const failures = new FailureLog(this.clock, { warn: () => {} });
    const fail = (error: unknown) => failures.warn("the test", error);
    const listeners = new Listeners(fail);
    for (const account of accounts) {
      listeners.add(account, (signature, { kind }) => {
        this.reported.push(`${account} ${signature} ${kind}`);
      });
    }
    this.machine = new SubmissionStateMachine(
      {
        clock: this.clock,
        outcomes: null,
        landings: {
          watch: (bytes) => {
            const name = Buffer.from(bytes).toString("hex");
            this.observed.add(name);
            return () => void this.observed.delete(name);
          },
        },
        routes: () => [],
        policy: () => ({
          denyLeaders: new Set<string>(),
          minimumTipLamports: 0n,
          partners: new Set<string>(),
          partnerUnitLamports: 0n,
        }),
        leaders: () => ({ slot: 1n, current: null, next: null }),
        slotNs: () => null,
        landedTips: {
          observed: (signature) => void this.tips.set(signature, "seen"),
          landed: (signature) => void this.tips.set(signature, "landed"),
          retracted: (signature) => void this.tips.delete(signature),
        },
      },
      {
        index: this.memory,
        writer: new SubmissionWriter(
          store.of(() => true),
          fail,
        ),
        listeners,
        failures,
      },
      defaultLimits,
    );
    const facts = [0, 1, 2].map(() => makeFacts(random, { lifetime: new Uint8Array(32) }));
    // Both accounts submit the same transactions, the first as a bundle.
    const bundle = this.#submission("ann", facts);
    const views = facts.map((one) => this.machine.enter(bundle, one));
    const alone = facts.map((one) => this.machine.enter(this.#submission("bob", [one]), one));
    this.machine.observeNew();
    this.views = [...views, ...alone];
    this.transactions = views.map(({ tracked }) => tracked);
  }

  #submission(accountId: string, transactions: Submission["transactions"]): Submission {
    return new Submission({
      accountId,
      method: transactions.length > 1 ? "sendBundle" : "sendTransaction",
      isBundle: transactions.length > 1,
      transactions,
      options: { swqosOnly: false, mevProtect: false, revertProtection: false, resendsMax: null },
      receivedNs: this.clock.nowNs(),
    });
  }

  eventOf(kind: EventKind, tracked: TrackedTransaction, view: AccountTransaction): SubmissionEvent {
    const atNs = this.clock.nowNs();
    switch (kind) {
      case "accepted":
      case "resumed":
        return { kind, view };
      case "route_reported": {
        const report = { kind: "acknowledged", atNs, route: "r", attempt: 1 } as const;
        return { kind, submission: view.submission, report };
      }
      case "attempts_exhausted":
        return { kind, submission: view.submission };
      case "landing_observed":
        return { kind, tracked, slot: 9n, atNs };
      case "landing_withdrawn":
      case "block_abandoned":
        return { kind, tracked, slot: 9n, atNs, cause: "update_parent" };
      case "landing_repeated":
      case "call_refused":
        return { kind, tracked };
      case "landing_found":
      case "failure_found":
      case "end_found": {
        const found = { landing_found: "landed", failure_found: "landed_failed" } as const;
        const state = kind === "end_found" ? "expired" : found[kind];
        return {
          kind,
          tracked,
          end: { kind: state, atNs, reason: "found", slot: null, err: null },
        };
      }
      case "landing_confirmed":
      case "failure_confirmed":
      case "lifetime_over":
      case "nonce_advanced":
      case "routes_refused":
        return { kind, tracked, reason: "test", slot: null, err: null };
    }
  }

  /** Inconsistencies of the index, the observers, the ends, the tips and the submissions. */
  contradictions(): string[] {
    const found: string[] = [];
    const open = this.transactions.filter(({ state }) => phaseOf(state) !== "ended");
    if (this.memory.openCount !== open.length) found.push(`open: ${this.memory.openCount}`);
    const names = open.map(({ facts }) => Buffer.from(facts?.signatureBytes ?? []).toString("hex"));
    if (names.length !== this.observed.size || names.some((name) => !this.observed.has(name))) {
      found.push(`observed: ${this.observed.size}, open: ${names.length}`);
    }
    for (const { state, end, signature } of this.transactions) {
      const isEnded = phaseOf(state) === "ended";
      if ((end?.kind ?? "open") !== (isEnded ? state : "open")) found.push(`end: ${end?.kind}`);
      if (isEnded && state !== "landed" && this.tips.has(signature)) found.push(`tip of ${state}`);
    }
    for (const { tracked, submission } of this.views) {
      // An end from the store was known before anything was sent.
      const isReported = tracked.end?.reason === "test";
      if (isReported && !submission.sending.isOver) found.push(`${tracked.state}, not stopped`);
    }
    return found;
  }
}

describe("SubmissionStateMachine", () => {
  it("follows the table for every sequence of events and reports one end", () => {
    const step = fc.record({
      kind: fc.constantFrom(...drivenKinds),
      which: fc.nat(2),
      who: fc.nat(1),
    });
    const property = fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const harness = new MachineHarness();
      for (const { kind, which, who } of steps) {
        const tracked = harness.transactions[which];
        const view = harness.views[which + 3 * who];
        if (!tracked || !view) throw new Error(`expected transaction ${which}, found none`);
        const event = harness.eventOf(kind, tracked, view);
        const found = "end" in event ? event.end.kind : undefined;
        const expected = transition(tracked.state, kind, found);
        const before = harness.reported.length;
        harness.machine.handle(event);
        expect(tracked.state).toBe(expected.to);
        if (!expected.effects.includes("notify") && kind !== "route_reported") {
          expect(harness.reported.length).toBe(before);
        }
        expect(harness.contradictions()).toEqual([]);
      }
      for (const { tracked, accountId, lifecycle } of harness.views) {
        const prefix = `${accountId} ${tracked.signature} `;
        const own = harness.reported.filter((text) => text.startsWith(prefix));
        const kinds = lifecycle.events.map(({ kind }) => `${prefix}${kind}`);
        expect(own).toEqual(kinds);
        expect(lifecycle.events.filter(isEnd).length).toBeLessThanOrEqual(1);
      }
    });
    fc.assert(property, { numRuns: 300 });
  });
});
