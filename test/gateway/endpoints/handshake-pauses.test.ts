import { describe, expect, it } from "vitest";
import { HandshakePauses } from "../../../src/gateway/endpoints/handshake-pauses.ts";

const secondNs = 1_000_000_000n;

describe("HandshakePauses", () => {
  it("pauses only the caller, for 10 s from its last excess", () => {
    const pauses = new HandshakePauses();
    pauses.begin("a", 0n);
    expect(pauses.secondsLeft("a", 0n)).toBe(10);
    expect(pauses.secondsLeft("a", 9n * secondNs + 1n)).toBe(1);
    expect(pauses.secondsLeft("b", 0n)).toBe(0);
    pauses.begin("a", 9n * secondNs);
    expect(pauses.secondsLeft("a", 18n * secondNs)).toBe(1);
    expect(pauses.secondsLeft("a", 19n * secondNs)).toBe(0);
  });

  it("keeps a bounded number of callers, the latest ones", () => {
    const pauses = new HandshakePauses();
    for (let i = 0; i < 20_000; i++) pauses.begin(`${i}`, 0n);
    expect(pauses.secondsLeft("0", 0n)).toBe(0);
    expect(pauses.secondsLeft("19999", 0n)).toBe(10);
  });
});
