// Messages of a stream, however the network splits them, and frames that are refused.

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameReader } from "../../../src/core/grpc/frame-reader.ts";
import { frameMessage } from "../../../src/core/grpc/status.ts";

function readAll(reader: FrameReader, chunks: readonly Buffer[]): Buffer[] {
  return chunks.flatMap((chunk) => [...reader.add(chunk)].map((one) => Buffer.from(one)));
}

describe("FrameReader", () => {
  it("returns the same messages for every split of the bytes", () => {
    const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 });
    fc.assert(
      fc.property(messages, fc.array(fc.nat(60), { maxLength: 12 }), (sent, cuts) => {
        const bytes = Buffer.concat(sent.map((one) => frameMessage(one)));
        const edges = [0, ...cuts.map((at) => Math.min(at, bytes.length)), bytes.length].toSorted(
          (a, b) => a - b,
        );
        const chunks = edges.map((edge, i) => bytes.subarray(edges[i - 1] ?? 0, edge));
        expect(readAll(new FrameReader(40), chunks)).toEqual(sent.map((one) => Buffer.from(one)));
      }),
    );
  });

  it("needs little more memory than an incomplete message that comes byte by byte", () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage: () => void = runInNewContext("gc");
    const length = 400_000;
    const reader = new FrameReader(length);
    const begin = frameMessage(new Uint8Array(length)).subarray(0, 5);
    readAll(reader, [begin]);
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i + 1 < length; i++) readAll(reader, [Buffer.allocUnsafeSlow(1)]);
    collectGarbage();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(10e6);
    expect(readAll(reader, [Buffer.of(0)])).toHaveLength(1);
  });

  it("refuses a compressed message and a message that is too long", () => {
    const compressed = frameMessage(Uint8Array.of(1, 2));
    compressed.writeUInt8(1, 0);
    expect(() => readAll(new FrameReader(10), [compressed])).toThrow(
      "UNIMPLEMENTED: expected uncompressed messages, got a compressed one",
    );
    const long = frameMessage(new Uint8Array(11)).subarray(0, 5);
    expect(() => readAll(new FrameReader(10), [long])).toThrow(
      "RESOURCE_EXHAUSTED: expected messages of at most 10 bytes, got 11",
    );
  });
});
