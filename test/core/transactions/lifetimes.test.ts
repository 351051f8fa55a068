// When a blockhash counts as expired: responses of a node, with a clock that the test sets.

import { expect, it } from "vitest";
import { type Lifetime, Lifetimes } from "../../../src/core/transactions/lifetimes.ts";

interface Answer {
  readonly isValid?: boolean;
  readonly slot: bigint;
}

const limits = { firstAskMs: 20_000, askMs: 4000, settleMs: 5000, asksMax: 4 };

const facts = { lifetime: new Uint8Array(32).fill(1), nonce: null };

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
    this.lifetime = this.#lifetimes.join(this, facts, 0);
  }

  landed(slot: bigint): void {
    this.#lifetimes.landed(facts, slot);
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

/** Whether it counts as expired after each response. The first comes after 20 s, the others 5.1 s apart. */
async function expiredAfter(...answers: readonly Answer[]): Promise<boolean[]> {
  const run = new Run();
  const results: boolean[] = [];
  for (const [i, answer] of answers.entries())
    results.push(await run.isExpired(limits.firstAskMs + 5100 * i, answer));
  return results;
}

it("expires after two responses that are some time and some slots apart", async () => {
  expect(await expiredAfter({ slot: 100n }, { slot: 111n }, { slot: 112n })).toEqual([
    false,
    false,
    true,
  ]);
});

it("does not expire if a response contradicts", async () => {
  const contradiction = { isValid: true, slot: 112n };
  expect(await expiredAfter({ slot: 100n }, contradiction, { slot: 124n }, { slot: 136n })).toEqual(
    [false, false, false, true],
  );
});

it("begins again at the first response after a standstill, while confirmation catches up", async () => {
  const still = Array.from({ length: 35 }, () => ({ slot: 102n }));
  const after = [{ slot: 118n }, { isValid: true, slot: 131n }];
  expect(await expiredAfter({ slot: 100n }, ...still, ...after)).not.toContain(true);
});

it("expires after a standstill as well", async () => {
  expect(
    await expiredAfter({ slot: 100n }, { slot: 100n }, { slot: 118n }, { slot: 130n }),
  ).toEqual([false, false, false, true]);
});

it("expires although every second response is that of a node that lags or has stopped", async () => {
  expect(await expiredAfter({ slot: 100n }, { slot: 90n }, { slot: 124n })).toEqual([
    false,
    false,
    true,
  ]);
});

it("ignores responses of nodes that do not know the slot in which it landed", async () => {
  const run = new Run();
  await run.isExpired(20_000, { slot: 99n });
  expect(run.lifetime.goneMs).toBe(20_000);
  run.landed(100n);
  expect(run.lifetime.goneMs).toBeNull();
  await run.isExpired(20_100, { slot: 99n });
  expect(run.lifetime.goneMs).toBeNull();
  await run.isExpired(25_200, { slot: 100n });
  expect(run.lifetime.goneMs).toBe(25_200);
});
