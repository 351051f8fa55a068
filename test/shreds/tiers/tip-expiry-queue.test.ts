import { describe, expect, it } from "vitest";
import { TipExpiryQueue } from "../../../src/shreds/tiers/tip-expiry-queue.ts";
import type { CountedTip } from "../../../src/shreds/tiers/types.ts";
import { silent } from "../../platform/store/files.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

const windowMs = 1000;

function tipOf(order: number, registeredMs: number): CountedTip {
  const times = { registeredMs, countedMs: registeredMs };
  return { order: BigInt(order), accountId: "a", lamports: 1n, ...times };
}

interface Read {
  readonly behind: { readonly registeredMs: number; readonly order: bigint };
  readonly limit: number;
  answer(tips: readonly CountedTip[]): Promise<void>;
}

/** A queue whose reads the test answers. */
class Harness {
  readonly reads: Read[] = [];
  readonly queue: TipExpiryQueue;
  news = 0;

  constructor(headMax: number, pageMax: number) {
    const clock = new ManualClock();
    const store = {
      leavingAfter: (behind: Read["behind"], _untilMs: number, limit: number) =>
        new Promise<CountedTip[]>((resolve) => {
          const answer = async (tips: readonly CountedTip[]): Promise<void> => {
            resolve([...tips]);
            await clock.advance(0);
          };
          this.reads.push({ behind, limit, answer });
        }),
    };
    const onMore = (): void => {
      this.news++;
      this.queue.fill();
    };
    const limits = { headMax, pageMax };
    this.queue = new TipExpiryQueue({ store, windowMs, clock, log: silent, onMore, ...limits });
    this.queue.begin(windowMs);
    this.queue.fill();
  }

  /** Answers the pending read. */
  async answer(...tips: CountedTip[]): Promise<void> {
    await this.reads.at(-1)?.answer(tips);
  }

  /** All tips that expire up to then. */
  take(untilMs = Number.POSITIVE_INFINITY): number[] {
    const orders: number[] = [];
    for (let tip = this.queue.take(untilMs); tip; tip = this.queue.take(untilMs)) {
      orders.push(Number(tip.order));
    }
    this.queue.fill();
    return orders;
  }
}

describe("a tip that is counted during a read", () => {
  it("is not lost if the read was too early and reached the end", async () => {
    const harness = new Harness(10, 3);
    harness.queue.add(tipOf(2, 20));
    await harness.answer(tipOf(1, 10));
    expect(harness.take()).toEqual([1, 2]);
  });

  it("is not lost inside a page that extends beyond it", async () => {
    const harness = new Harness(4, 2);
    harness.queue.add(tipOf(7, 15));
    await harness.answer(tipOf(1, 10), tipOf(2, 20));
    expect(harness.take(1019)).toEqual([1, 7]);
  });

  it("occurs once if the read contained it", async () => {
    const harness = new Harness(10, 3);
    harness.queue.add(tipOf(2, 20));
    await harness.answer(tipOf(1, 10), tipOf(2, 20));
    expect(harness.take()).toEqual([1, 2]);
  });

  it("is left to the next read after a full page", async () => {
    const harness = new Harness(10, 2);
    harness.queue.add(tipOf(9, 90));
    await harness.answer(tipOf(1, 10), tipOf(2, 20));
    expect(harness.queue.length).toBe(2);
    expect(harness.reads.at(-1)?.behind).toMatchObject({ registeredMs: 20, order: 2n });
    await harness.answer(tipOf(9, 90));
    expect(harness.take()).toEqual([1, 2, 9]);
  });
});

describe("the head of the expiry queue", () => {
  it("does not return a millisecond that it contains only partly", async () => {
    const harness = new Harness(2, 2);
    await harness.answer(tipOf(1, 10), tipOf(2, 20));
    expect(harness.queue.knownUntilMs).toBe(1019);
    expect(harness.take()).toEqual([1]);
    await harness.answer(tipOf(3, 20));
    expect(harness.take()).toEqual([2, 3]);
    expect(harness.queue.knownUntilMs).toBe(Number.POSITIVE_INFINITY);
  });

  it("accepts new tips up to its capacity, and leaves the rest in the store", async () => {
    const harness = new Harness(3, 2);
    await harness.answer();
    for (let order = 1; order <= 6; order++) harness.queue.add(tipOf(order, order * 10));
    expect(harness.queue.length).toBe(3);
    expect(harness.take(1010)).toEqual([1]);
    expect(harness.take(1020)).toEqual([2]);
    expect(harness.reads.at(-1)?.behind).toMatchObject({ registeredMs: 30, order: 3n });
    await harness.answer(tipOf(4, 40), tipOf(5, 50));
    expect(harness.take()).toEqual([3, 4]);
    await harness.answer(tipOf(6, 60));
    expect(harness.take()).toEqual([5, 6]);
  });

  it("inserts earlier registrations by millisecond and order, once", async () => {
    const harness = new Harness(10, 10);
    await harness.answer(tipOf(1, 10), tipOf(5, 30));
    harness.queue.add(tipOf(3, 30));
    harness.queue.add(tipOf(6, 20));
    harness.queue.add(tipOf(6, 20));
    harness.queue.add(tipOf(7, 30));
    expect(harness.take()).toEqual([1, 6, 3, 5, 7]);
  });

  it("reads again if it was truncated during a read: no gap", async () => {
    const harness = new Harness(5, 2);
    await harness.answer(tipOf(1, 10), tipOf(2, 20));
    // The read continues after 2; meanwhile earlier tips fill the memory and displace 2.
    for (let order = 11; order <= 14; order++) harness.queue.add(tipOf(order, 10));
    expect(harness.queue.length).toBe(5);
    await harness.answer(tipOf(3, 30));
    expect(harness.reads.at(-1)?.behind).toMatchObject({ registeredMs: 10, order: 14n });
    await harness.answer(tipOf(2, 20), tipOf(3, 30));
    expect(harness.take()).toEqual([1, 11, 12, 13, 14, 2]);
    await harness.answer();
    expect(harness.take()).toEqual([3]);
  });
});
