import { describe, expect, it } from "vitest";
import { MessageQueue } from "../../../src/core/grpc/message-queue.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";

describe("MessageQueue", () => {
  it("returns all messages in their order, whether they wait or not", () => {
    const random = new SeededRandom(7);
    const queue = new MessageQueue();
    const pushed: Buffer[] = [];
    const taken: Uint8Array[] = [];
    let left = 0;
    for (let i = 0; i < 1000; i++) {
      const message = Buffer.alloc([1, 12, 300, 4095, 4096, 20_000][random.below(6)] ?? 0, i);
      queue.push(message, random.below(3) > 0);
      pushed.push(message);
      left += message.length;
      if (random.below(4) === 0) {
        const { bytes } = queue.take(random.below(30_000));
        taken.push(Buffer.from(bytes));
        left -= bytes.length;
      }
      expect(queue.bytes).toBe(left);
    }
    taken.push(queue.take(Number.POSITIVE_INFINITY).bytes);
    expect(Buffer.concat(taken).equals(Buffer.concat(pushed))).toBe(true);
    expect([queue.bytes, queue.messages, queue.segments]).toEqual([0, 0, 0]);
  });

  it("needs no memory of its own for each small message that waits", () => {
    const queue = new MessageQueue();
    for (let i = 0; i < 100_000; i++) queue.push(Buffer.alloc(12), true);
    expect([queue.bytes, queue.messages]).toEqual([1_200_000, 100_000]);
    expect(queue.segments).toBeLessThan(100);
    const { bytes, messages } = queue.take(600_000);
    expect(bytes.length).toBe(12 * messages);
    expect(queue.messages).toBe(100_000 - messages);
    queue.clear();
    expect([queue.bytes, queue.messages, queue.segments]).toEqual([0, 0, 0]);
  });

  it("does not keep the whole pool of a small message that waits", () => {
    const queue = new MessageQueue();
    const message = Buffer.from("a small message");
    queue.push(message, true);
    expect(queue.take(1).bytes.buffer).not.toBe(message.buffer);
  });
});
