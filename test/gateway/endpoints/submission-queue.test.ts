// The queue of submissions: order, share of a turn, overload, exactly one settlement.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  SubmissionQueue,
  submissionsPerTurn,
  submissionsPerTurnUnderOverload,
} from "../../../src/gateway/endpoints/submission-queue.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

/** A queue whose turns the test makes. */
class QueueRun {
  readonly clock = new ManualClock();
  readonly begun: number[] = [];
  readonly refused: number[] = [];
  /** Time that a submission takes, in ms. */
  costMs = 0;
  readonly queue: SubmissionQueue;
  #next: (() => void)[] = [];
  #ticks: (() => void)[] = [];
  readonly #arrivedMs: number[] = [];

  constructor() {
    this.queue = new SubmissionQueue({
      clock: this.clock,
      inNextTurn: (action) => this.#next.push(action),
      afterPromises: (action) => this.#ticks.push(action),
    });
  }

  /** Submits the next number. */
  submit(isSent = false): number | Promise<number> {
    const name = this.#arrivedMs.push(this.nowMs) - 1;
    const end = (list: number[]) => (): number => {
      list.push(name);
      this.clock.move(this.costMs);
      return name;
    };
    return this.queue.run({
      claim: () => isSent,
      begin: end(this.begun),
      refuse: end(this.refused),
    });
  }

  submitMany(count: number): void {
    for (let i = 0; i < count; i++) void this.submit();
  }

  turn(): void {
    const actions = this.#next;
    this.#next = [];
    for (const action of actions) action();
    for (let tick = this.#ticks.shift(); tick; tick = this.#ticks.shift()) tick();
  }

  /** How long the submission waited if it ends now. */
  waitedMs(name: number): number {
    return this.nowMs - (this.#arrivedMs[name] ?? 0);
  }

  get nowMs(): number {
    return Number(this.clock.monotonicNs() / 1_000_000n);
  }

  get isIdle(): boolean {
    return this.#next.length === 0;
  }
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe("submissions that the event loop can process", () => {
  it("begin at once, as many as a turn takes", () => {
    const run = new QueueRun();
    run.submitMany(submissionsPerTurn);
    expect(run.begun).toEqual(upTo(submissionsPerTurn));
    run.turn();
    run.submitMany(submissionsPerTurn);
    expect(run.begun).toEqual(upTo(2 * submissionsPerTurn));
    expect(run.queue.counts).toEqual({ waiting: 0, timedOut: 0 });
  });

  it("begin in the order of their arrival, a share in each turn", async () => {
    const run = new QueueRun();
    run.submitMany(submissionsPerTurn);
    const late = [run.submit(), run.submit()];
    run.submitMany(submissionsPerTurn);
    expect(run.begun).toEqual(upTo(submissionsPerTurn));
    expect(run.queue.isEmpty).toBe(false);
    run.turn();
    expect(run.begun).toEqual(upTo(2 * submissionsPerTurn));
    expect(await Promise.all(late.map(async (each) => each))).toEqual([
      submissionsPerTurn,
      submissionsPerTurn + 1,
    ]);
    run.turn();
    expect(run.begun).toEqual(upTo(2 * submissionsPerTurn + 2));
    run.turn();
    expect(run.isIdle).toBe(true);
  });

  it("do not pass those that wait", () => {
    const run = new QueueRun();
    run.submitMany(2 * submissionsPerTurn + 1);
    run.turn(); // one is left
    const [last] = [2 * submissionsPerTurn + 1];
    void run.submit();
    expect(run.begun).not.toContain(last);
    run.turn();
    expect(run.begun.slice(-2)).toEqual([last - 1, last]);
  });

  it("begin at once if they were sent already, and take no share", () => {
    const run = new QueueRun();
    run.submitMany(submissionsPerTurn + 1);
    expect(run.submit(true)).toBe(submissionsPerTurn + 1);
    run.turn();
    expect(run.begun).toHaveLength(submissionsPerTurn + 2);
  });

  it("settle like the work, also if it throws", async () => {
    const run = new QueueRun();
    run.submitMany(submissionsPerTurn);
    const fail = (): never => {
      throw new Error("no");
    };
    const plain = { claim: () => false, refuse: () => 0 };
    const failing = run.queue.run({ ...plain, begin: fail });
    const rejecting = run.queue.run({
      ...plain,
      begin: () => Promise.reject(new Error("later")),
    });
    run.turn();
    await expect(failing).rejects.toThrow("no");
    await expect(rejecting).rejects.toThrow("later");
  });
});

describe("submissions that have waited for a slot", () => {
  it("are refused, and not processed", async () => {
    const run = new QueueRun();
    run.submitMany(submissionsPerTurn);
    const waiting = [run.submit(), run.submit()];
    run.clock.move(401);
    run.turn();
    expect(await Promise.all(waiting.map(async (each) => each))).toEqual(run.refused);
    expect(run.begun).toEqual(upTo(submissionsPerTurn));
    expect(run.queue.counts).toEqual({ waiting: 0, timedOut: 2 });
  });
});

describe("overload", () => {
  /** More arrive in each turn than begin. */
  function overloaded(): QueueRun {
    const run = new QueueRun();
    run.costMs = 1;
    for (let i = 0; i < 20; i++) {
      run.submitMany(4 * submissionsPerTurn);
      run.turn();
    }
    return run;
  }

  it("begins the newest submission first, so that accepted ones hardly wait", () => {
    const run = overloaded();
    run.submitMany(submissionsPerTurn);
    const newest = run.begun.length + run.refused.length + run.queue.counts.waiting - 1;
    const before = run.begun.length;
    run.turn();
    expect(run.begun[before]).toBe(newest);
    for (const name of run.begun.slice(before)) expect(run.waitedMs(name)).toBeLessThan(200);
  });

  it("begins few submissions in a turn, so that they leave soon", () => {
    const run = overloaded();
    const before = run.begun.length;
    run.submitMany(submissionsPerTurn);
    run.turn();
    expect(run.begun.length - before).toBe(submissionsPerTurnUnderOverload);
  });

  it("refuses old ones, a few beside each that begins", () => {
    const run = overloaded();
    const [begun, refused] = [run.begun.length, run.refused.length];
    run.submitMany(submissionsPerTurn);
    run.turn();
    expect(run.begun.length - begun).toBeGreaterThan(0);
    expect(run.refused.length - refused).toBeGreaterThan(0);
    expect(run.refused.length - refused).toBeLessThanOrEqual(5 * submissionsPerTurn);
    expect(run.queue.counts.timedOut).toBe(run.refused.length);
  });

  it("ends when the queue has become short", () => {
    const run = overloaded();
    while (!run.queue.isEmpty) run.turn();
    run.turn();
    const before = run.begun.length;
    run.submitMany(submissionsPerTurn + 2);
    run.turn();
    const names = run.begun.slice(before);
    expect(names).toHaveLength(submissionsPerTurn + 2);
    expect(run.queue.isEmpty).toBe(true);
    expect(names).toEqual(names.toSorted((a, b) => a - b));
  });
});

it("every submission begins or is refused once, and only late ones are refused", () => {
  const step = fc.record({
    submissions: fc.nat(120),
    pauseMs: fc.oneof(fc.nat(20), fc.constant(450)),
    costMs: fc.constantFrom(0, 1, 3),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const run = new QueueRun();
      let submitted = 0;
      const turn = (): void => {
        const [begun, refused] = [run.begun.length, run.refused.length];
        run.turn();
        expect(run.begun.length - begun).toBeLessThanOrEqual(submissionsPerTurn);
        for (const name of run.refused.slice(refused)) {
          expect(run.waitedMs(name)).toBeGreaterThanOrEqual(25);
        }
      };
      for (const { submissions, pauseMs, costMs } of steps) {
        run.costMs = costMs;
        run.submitMany(submissions);
        submitted += submissions;
        run.clock.move(pauseMs);
        turn();
      }
      for (let i = 0; !run.isIdle && i < 10_000; i++) turn();
      expect(run.isIdle).toBe(true);
      expect(run.queue.isEmpty).toBe(true);
      const ended = [...run.begun, ...run.refused].toSorted((a, b) => a - b);
      expect(ended).toEqual(upTo(submitted));
    }),
    { numRuns: 200 },
  );
});
