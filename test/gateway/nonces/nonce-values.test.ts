// NonceValues: cached while fresh, never older than observed, with few queries.

import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { createLogger } from "../../../src/core/log.ts";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import {
  type NonceValueLimits,
  NonceValues,
  valueLimitsFor,
} from "../../../src/gateway/nonces/nonce-values.ts";
import type { NonceAccountView } from "../../../src/gateway/nonces/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";

const authority = pubkeyOf(new Uint8Array(32).fill(9));

function key(number: number): string {
  const bytes = new Uint8Array(32).fill(200);
  new DataView(bytes.buffer).setUint32(0, number);
  return pubkeyOf(bytes);
}

function nonce(value: number): NonceAccountView {
  const data = Buffer.alloc(80);
  data.writeUInt32LE(1, 0);
  data.writeUInt32LE(1, 4);
  data.fill(9, 8, 40);
  data.fill(value, 40, 72);
  return { owner: "1".repeat(32), lamports: 1n, data };
}

const textOf = (value: number): string => pubkeyOf(new Uint8Array(32).fill(value));

class Run {
  readonly clock = new ManualClock();
  /** Accounts of the node; other addresses have no account. */
  readonly words = new Map<string, NonceAccountView>();
  readonly requests: (readonly string[])[] = [];
  /** Responses wait until `answer` is called. */
  holds = false;
  isDown = false;
  readonly held: (() => void)[] = [];
  readonly values: NonceValues;

  constructor(changes: Partial<NonceValueLimits> = {}) {
    const accounts = async (addresses: readonly string[]) => {
      this.requests.push(addresses);
      const actual = addresses.map((each) => this.words.get(each) ?? null);
      if (this.holds) await new Promise<void>((resolve) => this.held.push(resolve));
      if (this.isDown) throw new ShredwayError("rpc_failed", "away");
      return actual;
    };
    this.values = closing(
      new NonceValues(
        { clock: this.clock, log: createLogger({ level: "silent" }), node: { accounts } },
        { ...valueLimitsFor(400), ...changes },
      ),
    );
  }

  async value(address = key(1)): Promise<string> {
    return (await this.values.get(address)).value;
  }
}

describe("values of nonces", () => {
  it("are cached while fresh and polled while in use", async () => {
    const run = new Run();
    run.words.set(key(1), nonce(1));
    expect(await run.values.get(key(1))).toEqual({ authority, value: textOf(1) });
    expect(await run.value()).toBe(textOf(1));
    expect(run.requests.length).toBe(1);
    run.words.set(key(1), nonce(2));
    await run.clock.advance(400);
    expect(run.requests.length).toBe(2);
    expect(await run.value()).toBe(textOf(2));
    expect(run.requests.length).toBe(2);
    await run.clock.advance(59_600);
    expect(run.requests.length).toBe(151);
    await run.clock.advance(10_000);
    expect(run.values.size).toBe(0);
    expect(run.clock.pending).toBe(0);
    const requestsBefore = run.requests.length;
    await run.clock.advance(10_000);
    expect(run.requests.length).toBe(requestsBefore);
    expect(await run.value()).toBe(textOf(2));
    expect(run.requests.length).toBe(requestsBefore + 1);
  });

  it("are queried once for all waiting callers when the cache is stale", async () => {
    const run = new Run({ pollMs: 10_000 });
    run.words.set(key(1), nonce(1));
    await run.value();
    await run.clock.advance(valueLimitsFor(10_000).freshMs + 1);
    run.words.set(key(1), nonce(2));
    run.holds = true;
    const calls = Promise.all(Array.from({ length: 9 }, () => run.value()));
    await run.clock.advance(1);
    expect(run.requests.length).toBe(2);
    for (const answer of run.held) answer();
    expect(new Set(await calls)).toEqual(new Set([textOf(2)]));
  });

  it("of many accounts are queried in groups of a hundred", async () => {
    const run = new Run();
    const all = Array.from({ length: 250 }, (_, i) => key(i));
    for (const each of all) run.words.set(each, nonce(1));
    for (const each of all.slice(0, 3)) await run.value(each);
    await run.clock.advance(130); // others come at another time
    for (const each of all.slice(3)) await run.value(each);
    run.requests.length = 0;
    await run.clock.advance(270);
    expect(run.requests.map(({ length }) => length)).toEqual([100, 100, 50]);
    await run.clock.advance(400);
    expect(run.requests.length).toBe(6);
  });

  it("are bounded: the least recently used one is dropped", async () => {
    const run = new Run({ accountsMax: 3 });
    for (const i of [1, 2, 3, 4]) run.words.set(key(i), nonce(i));
    for (const i of [1, 2, 3, 1, 4]) await run.value(key(i));
    expect(run.values.size).toBe(3);
    expect(run.requests.length).toBe(4);
    await run.value(key(1));
    expect(run.requests.length).toBe(4);
    await run.value(key(2));
    expect(run.requests.length).toBe(5);
  });

  it("of a tenant stay although another tenant brings more than memory holds", async () => {
    const run = new Run({ accountsMax: 5 });
    for (let i = 1; i <= 30; i++) run.words.set(key(i), nonce(i));
    for (const i of [1, 2]) await run.values.get(key(i), "ben");
    for (let i = 3; i <= 30; i++) await run.values.get(key(i), "eve");
    for (const i of [1, 2]) await run.values.get(key(i), "eve"); // they stay ben's
    for (let i = 3; i <= 30; i++) await run.values.get(key(i), "eve");
    const requestsBefore = run.requests.length;
    for (const i of [1, 2]) await run.values.get(key(i), "ben");
    expect([run.requests.length, run.values.size]).toEqual([requestsBefore, 5]);
  });

  it("are queried for a tenant although another one fills its share of a hanging node", async () => {
    const run = new Run({ queriesMax: 4, tenantQueriesMax: 2 });
    for (const i of [1, 2, 3, 4]) run.words.set(key(i), nonce(i));
    run.holds = true;
    const running = [1, 2].map((i) => run.values.get(key(i), "eve"));
    await expect(run.values.get(key(3), "eve")).rejects.toMatchObject({ reason: "overloaded" });
    const own = run.values.get(key(4), "ben");
    await run.clock.advance(1);
    for (const answer of run.held.splice(0)) answer();
    expect((await own).value).toBe(textOf(4));
    await Promise.all(running);
    const next = run.values.get(key(3), "eve");
    await run.clock.advance(1);
    for (const answer of run.held) answer();
    expect((await next).value).toBe(textOf(3));
  });

  it("are not cached for accounts that are not nonces", async () => {
    const run = new Run();
    await expect(run.value()).rejects.toMatchObject({ reason: "nonce_invalid" });
    run.words.set(key(1), { ...nonce(1), owner: authority });
    await expect(run.value()).rejects.toMatchObject({ reason: "nonce_invalid" });
    expect(run.values.size).toBe(0);
    expect(run.clock.pending).toBe(0);
    run.isDown = true;
    await expect(run.value()).rejects.toMatchObject({ reason: "rpc_failed" });
  });

  it("are polled one query at a time from a slow node", async () => {
    const run = new Run();
    run.words.set(key(1), nonce(1));
    await run.value();
    run.holds = true;
    await run.clock.advance(2_000);
    expect(run.requests.length).toBe(2);
    run.holds = false;
    for (const answer of run.held) answer();
    await run.clock.advance(2_000);
    expect(run.requests.length).toBeGreaterThan(5);
  });

  it("survive an unavailable node", async () => {
    const run = new Run();
    run.words.set(key(1), nonce(1));
    await run.value();
    run.isDown = true;
    await run.clock.advance(2_000);
    await expect(run.value()).rejects.toMatchObject({ reason: "rpc_failed" });
    run.isDown = false;
    run.words.set(key(1), nonce(2));
    await run.clock.advance(400);
    run.isDown = true;
    expect(await run.value()).toBe(textOf(2));
  });
});

describe("queries", () => {
  it("have limited concurrency", async () => {
    const run = new Run({ queriesMax: 2 });
    for (const account of [1, 2, 3]) run.words.set(key(account), nonce(account));
    run.holds = true;
    const requestsBefore = [1, 2, 2].map((account) => run.values.get(key(account)));
    await expect(run.values.get(key(3))).rejects.toMatchObject({ reason: "overloaded" });
    run.holds = false;
    for (const answer of run.held) answer();
    expect((await Promise.all(requestsBefore)).map(({ value }) => value)).toEqual(
      [1, 2, 2].map(textOf),
    );
    expect((await run.values.get(key(3))).value).toBe(textOf(3));
  });
});

describe("spent values", () => {
  it("are polled quickly until they change", async () => {
    const run = new Run({ pollMs: 5_000, fastPollMs: 150 });
    run.words.set(key(1), nonce(1));
    await run.value();
    run.values.advanced(key(1), textOf(1));
    await run.clock.advance(0);
    expect(run.requests.length).toBe(2);
    await run.clock.advance(450);
    expect(run.requests.length).toBe(5);
    run.words.set(key(1), nonce(2));
    await run.clock.advance(150);
    expect(run.requests.length).toBe(6);
    expect(await run.value()).toBe(textOf(2));
    await run.clock.advance(1_000); // the normal interval
    expect(run.requests.length).toBeLessThanOrEqual(7);
  });

  it("are not returned from the cache", async () => {
    const run = new Run({ pollMs: 5_000 });
    run.words.set(key(1), nonce(1));
    await run.value();
    run.holds = true;
    run.values.advanced(key(1), textOf(1));
    await run.clock.advance(0); // the poll is running
    run.holds = false;
    run.words.set(key(1), nonce(2));
    expect(await run.value()).toBe(textOf(2));
    for (const answer of run.held) answer(); // queried before, so older
    await run.clock.advance(1);
    expect(await run.value()).toBe(textOf(2));
  });

  it("are polled quickly for a limited time if they were not spent", async () => {
    const run = new Run({ pollMs: 5_000, fastPollMs: 100, fastPollMsMax: 1_000 });
    run.words.set(key(1), nonce(1));
    await run.value();
    run.values.advanced(key(1), textOf(1));
    await run.clock.advance(1_200);
    const requestsBefore = run.requests.length;
    expect(requestsBefore).toBeLessThan(15);
    await run.clock.advance(3_000);
    expect(run.requests.length - requestsBefore).toBeLessThanOrEqual(1);
  });

  it("reported twice, by observation and outcome, start fast polling once", async () => {
    const run = new Run({ pollMs: 5_000, fastPollMs: 100 });
    run.words.set(key(1), nonce(1));
    await run.value();
    run.values.advanced(key(1), textOf(1));
    run.words.set(key(1), nonce(2));
    await run.clock.advance(100);
    run.values.advanced(key(1), textOf(1));
    run.values.advanced(key(1), textOf(1));
    const requestsBefore = run.requests.length;
    await run.clock.advance(2_000);
    expect(run.requests.length - requestsBefore).toBeLessThanOrEqual(2);
  });

  it("start fast polling again when the next one is spent", async () => {
    const run = new Run({ pollMs: 5_000, fastPollMs: 100 });
    run.words.set(key(1), nonce(1));
    await run.value();
    for (const value of [1, 2, 3]) {
      run.words.set(key(1), nonce(value + 1));
      run.values.advanced(key(1), textOf(value));
      expect(await run.value()).toBe(textOf(value + 1));
    }
  });

  it("of unused accounts are not polled", async () => {
    const run = new Run();
    run.values.advanced(key(1), textOf(1));
    await run.clock.advance(1_000);
    expect(run.requests).toEqual([]);
  });

  it("are not accepted again from a lagging node until it had time to catch up", async () => {
    const run = new Run({ lagMs: 5_000, usedMs: 100_000 });
    run.words.set(key(1), nonce(1));
    await run.value();
    run.words.set(key(1), nonce(2));
    await run.clock.advance(400);
    expect(await run.value()).toBe(textOf(2));
    run.words.set(key(1), nonce(1));
    await run.clock.advance(4_000);
    expect(await run.value()).toBe(textOf(2));
    run.words.delete(key(1));
    expect(await run.value()).toBe(textOf(2));
    run.words.set(key(1), nonce(1));
    await run.clock.advance(2_000);
    expect(await run.value()).toBe(textOf(1)); // so it is correct
  });

  it("of an earlier slot are not accepted until the node had time to catch up", async () => {
    const run = new Run({ lagMs: 5_000, usedMs: 100_000 });
    const answers = async (value: number, slot: bigint) => {
      run.words.set(key(1), { ...nonce(value), slot });
      await run.clock.advance(400);
      return run.value();
    };
    await answers(3, 30n);
    // The first answer was of the newest node, and others lag by several advances.
    expect(await answers(2, 20n)).toBe(textOf(3));
    expect(await answers(1, 10n)).toBe(textOf(3));
    expect(await answers(4, 31n)).toBe(textOf(4));
    expect(await answers(3, 30n)).toBe(textOf(4));
    expect(await answers(1, 2n)).toBe(textOf(4));
    await run.clock.advance(5_000);
    expect(await run.value()).toBe(textOf(1)); // another chain
  });

  it("requested with getNow come from a new query", async () => {
    const run = new Run({ pollMs: 5_000 });
    run.words.set(key(1), nonce(1));
    run.holds = true;
    const early = run.value();
    run.words.set(key(1), nonce(2));
    const late = run.values.getNow(key(1));
    await run.clock.advance(1);
    expect(run.requests.length).toBe(2);
    run.held[1]?.();
    expect((await late).value).toBe(textOf(2));
    run.held[0]?.();
    await early;
    expect(await run.value()).toBe(textOf(2));
  });
});
