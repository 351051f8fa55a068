// When a blockhash counts as expired: responses of a node, with a clock that the test sets.

import { expect, it } from "vitest";
import { type Lifetime, Lifetimes } from "../../../src/core/transactions/lifetimes.ts";

interface Answer {
  readonly isValid?: boolean;
  readonly slot: bigint;
}

const limits = { firstAskMs: 20_000, askMs: 4000, settleMs: 5000, asksMax: 4 };

class Run {
  readonly #lifetimes: Lifetimes<object>;
  readonly lifetime: Lifetime<object>;
  #nowMs = 0;
  #answer: Answer = { slot: 0n };

  constructor() {
    this.#lifetimes = new Lifetimes<object>(
      {
        outcomes: {
          blockhashState: () => Promise.resolve({ isValid: false, ...this.#answer }),
          nonceValue: () => Promise.resolve(null),
        },
        nowMs: () => this.#nowMs,
        onExpired: () => undefined,
        failed: (error) => {
          throw error;
        },
      },
      limits,
    );
    const facts = { lifetime: new Uint8Array(32).fill(1), nonce: null };
    this.lifetime = this.#lifetimes.join(this, facts, 0);
  }

  /** Whether it counts as expired after this response. */
  async isExpired(atMs: number, answer: Answer): Promise<boolean> {
    this.#nowMs = atMs;
    this.#answer = answer;
    this.#lifetimes.turn(atMs);
    await new Promise(setImmediate);
    return this.lifetime.goneAgainMs !== null;
  }
}

it("expires after two responses that are some time and some slots apart", async () => {
  const run = new Run();
  expect(await run.isExpired(20_000, { slot: 100n })).toBe(false);
  expect(await run.isExpired(25_100, { slot: 111n })).toBe(false);
  expect(await run.isExpired(30_200, { slot: 112n })).toBe(true);
});

it("does not expire if a response contradicts", async () => {
  const run = new Run();
  expect(await run.isExpired(20_000, { slot: 100n })).toBe(false);
  expect(await run.isExpired(25_100, { isValid: true, slot: 112n })).toBe(false);
  expect(await run.isExpired(30_200, { slot: 124n })).toBe(false);
  expect(await run.isExpired(35_300, { slot: 136n })).toBe(true);
});

it("begins again at the first response after a standstill, while confirmation catches up", async () => {
  const run = new Run();
  expect(await run.isExpired(20_000, { slot: 100n })).toBe(false);
  for (let atMs = 25_100; atMs < 200_000; atMs += 5100)
    expect(await run.isExpired(atMs, { slot: 102n })).toBe(false);
  expect(await run.isExpired(205_000, { slot: 118n })).toBe(false);
  expect(await run.isExpired(210_100, { isValid: true, slot: 131n })).toBe(false);
});

it("expires after a standstill as well", async () => {
  const run = new Run();
  expect(await run.isExpired(20_000, { slot: 100n })).toBe(false);
  expect(await run.isExpired(25_100, { slot: 100n })).toBe(false);
  expect(await run.isExpired(30_200, { slot: 118n })).toBe(false);
  expect(await run.isExpired(35_300, { slot: 130n })).toBe(true);
});

it("expires although every second response is that of a node that lags or has stopped", async () => {
  const run = new Run();
  expect(await run.isExpired(20_000, { slot: 100n })).toBe(false);
  expect(await run.isExpired(25_100, { slot: 90n })).toBe(false);
  expect(await run.isExpired(30_200, { slot: 124n })).toBe(true);
});
