import { expect, it } from "vitest";
import { base64Of } from "../../../src/gateway/routes/base64-cache.ts";

it("returns the text of each transaction, also of those that left the cache", () => {
  const wires = Array.from({ length: 100 }, (_, i) => Uint8Array.of(i, 255 - i, 7));
  const text = (wire: Uint8Array): string => Buffer.from(wire).toString("base64");
  for (const wire of [...wires, ...wires.toReversed(), ...wires]) {
    expect(base64Of(wire)).toBe(text(wire));
    expect(base64Of(wire)).toBe(text(wire));
  }
});

it("distinguishes arrays of equal bytes, and parts of one buffer", () => {
  const bytes = Uint8Array.of(1, 2, 3, 4, 5, 6);
  const parts = [bytes.subarray(0, 3), bytes.subarray(3), bytes.slice(0, 3)];
  expect(parts.map(base64Of)).toEqual(["AQID", "BAUG", "AQID"]);
});
