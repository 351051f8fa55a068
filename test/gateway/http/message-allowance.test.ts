import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MessageAllowance } from "../../../src/gateway/http/message-allowance.ts";

const limits = { messagesPerSecond: 10, messagesBurst: 20, bytesPerSecond: 5_000 };
const messageBytesMax = 1000;
const secondNs = 1_000_000_000n;

describe("MessageAllowance", () => {
  it("allows a burst, then the rate, and nothing after the first excess frame", () => {
    const allowance = new MessageAllowance(limits, messageBytesMax, 0n);
    const take = (nowNs: bigint) => allowance.take(1, nowNs);
    for (let i = 0; i < 20; i++) expect(take(0n)).toBe("taken");
    for (let i = 0; i < 10; i++) expect(take(secondNs)).toBe("taken");
    expect(take(secondNs)).toBe("exceeded");
    expect(take(1_000n * secondNs)).toBe("exceeded");
  });

  it("reports a flood after as much again", () => {
    const allowance = new MessageAllowance(limits, messageBytesMax, 0n);
    const verdicts = Array.from({ length: 41 }, () => allowance.take(1, 0n));
    expect(verdicts.indexOf("exceeded")).toBe(20);
    expect(verdicts.indexOf("flood")).toBe(40);
  });

  it("allows at least two messages of the largest size at once", () => {
    const few = { ...limits, bytesPerSecond: 1 };
    const allowance = new MessageAllowance(few, messageBytesMax, 0n);
    expect(allowance.take(messageBytesMax, 0n)).toBe("taken");
    expect(allowance.take(messageBytesMax, 0n)).toBe("taken");
    expect(allowance.take(1, 0n)).toBe("exceeded");
  });

  it("never allows more than the burst and the rate in any interval", () => {
    const frame = fc.record({
      waitMs: fc.integer({ min: 0, max: 300 }),
      bytes: fc.integer({ min: 0, max: messageBytesMax }),
    });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 200 }), (frames) => {
        const allowance = new MessageAllowance(limits, messageBytesMax, 0n);
        let nowMs = 0;
        let messages = 0;
        let bytes = 0;
        for (const { waitMs, bytes: length } of frames) {
          nowMs += waitMs;
          if (allowance.take(length, BigInt(nowMs) * 1_000_000n) !== "taken") break;
          messages += 1;
          bytes += length;
          expect(messages).toBeLessThanOrEqual(20 + (10 * nowMs) / 1000);
          expect(bytes).toBeLessThanOrEqual(5_000 + (5_000 * nowMs) / 1000);
        }
      }),
    );
  });
});
