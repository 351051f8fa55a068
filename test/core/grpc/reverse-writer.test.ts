// Messages that are written from their end, read by the codec of core/grpc/protobuf.ts.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MessageReader } from "../../../src/core/grpc/protobuf.ts";
import { ReverseWriter } from "../../../src/core/grpc/reverse-writer.ts";

describe("ReverseWriter", () => {
  it("writes every integer of 64 bits", () => {
    const writer = new ReverseWriter(64);
    const edges = fc.constantFrom(2n ** 49n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n);
    fc.assert(
      fc.property(fc.oneof(fc.bigInt(0n, 2n ** 64n - 1n), edges), (value) => {
        writer.reset();
        writer.uint(2, 7);
        writer.presentUint(1, value);
        const reader = new MessageReader(writer.finish());
        expect([reader.uint(1), reader.uint(2)]).toEqual([value, 7n]);
      }),
    );
  });

  it("refuses an integer that is longer than its buffer", () => {
    for (const size of [1, 2, 9]) {
      expect(() => new ReverseWriter(size).uint(1, 2n ** 64n - 1n)).toThrow(RangeError);
    }
  });
});
