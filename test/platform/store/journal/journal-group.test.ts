// The group of new submissions that share a write: who joins it, and when it is written.

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JournalGroup } from "../../../../src/platform/store/journal/journal-group.ts";

/** All promises and ticks that can run have run. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** As the queue of submissions begins one after the other. */
const afterPromises = (): Promise<void> =>
  new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)));

function groupOf<Member>(): {
  readonly group: JournalGroup<Member>;
  readonly writes: (readonly Member[])[];
} {
  const writes: (readonly Member[])[] = [];
  const group = new JournalGroup<Member>((members) => void writes.push(members));
  return { group, writes };
}

describe("a group", () => {
  it("is written without another event if one joins alone", async () => {
    const { group, writes } = groupOf<number>();
    group.join(1);
    expect(writes).toEqual([]);
    await settled();
    expect(writes).toEqual([[1]]);
    group.join(2);
    await settled();
    expect(writes).toEqual([[1], [2]]);
  });

  it("has all that begin one after the other", async () => {
    const { group, writes } = groupOf<number>();
    for (let member = 0; member < 32; member++) {
      await Promise.resolve(); // the submission's own promises
      group.join(member);
      await afterPromises();
    }
    await settled();
    expect(writes).toEqual([Array.from({ length: 32 }, (_, i) => i)]);
  });

  it("is written at once when it is full", async () => {
    const { group, writes } = groupOf<number>();
    for (let member = 0; member < 100; member++) group.join(member);
    expect(writes.map(({ length }) => length)).toEqual([64]);
    await settled();
    expect(writes.map(({ length }) => length)).toEqual([64, 36]);
  });

  it("is written when it is asked to, and then not again", async () => {
    const { group, writes } = groupOf<number>();
    group.join(1);
    group.write();
    expect(writes).toEqual([[1]]);
    group.write();
    await settled();
    expect(writes).toEqual([[1]]);
  });

  it("writes each member once and in order, at any mix of steps", async () => {
    const step = fc.constantFrom("join", "promise", "round", "event", "write");
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 200 }), async (steps) => {
        const { group, writes } = groupOf<number>();
        let joined = 0;
        for (const one of steps) {
          if (one === "join") group.join(joined++);
          else if (one === "promise") await Promise.resolve();
          else if (one === "round") await afterPromises();
          else if (one === "event") await settled();
          else group.write();
          if (one === "event") expect(writes.flat()).toHaveLength(joined);
        }
        await settled();
        expect(writes.flat()).toEqual(Array.from({ length: joined }, (_, i) => i));
      }),
      { numRuns: 50 },
    );
  });
});
