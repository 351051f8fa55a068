// Messages that subscribers share: framed once for each name, and read by an independent codec.

import { expect, it } from "vitest";
import { MessageReader, MessageWriter } from "../../../src/core/grpc/protobuf.ts";
import { unframeMessage } from "../../../src/core/grpc/status.ts";
import type { StreamMessage } from "../../../src/relay/data-plane/relay-streams.ts";
import { FilterNames } from "../../../src/relay/streams/filter-names.ts";
import { SharedMessages } from "../../../src/relay/streams/shared-messages.ts";

const messageOf = (ordinal: number): StreamMessage => ({
  kind: "transaction",
  tier: "tier-1",
  filters: [],
  slot: 1n,
  parent: 0n,
  arrivalNs: 1n,
  generation: 1,
  batchIndex: 0,
  ordinal,
  shredIndex: 0,
  isVote: false,
  replay: 0,
  content: new Uint8Array(),
});

it("encodes a message once, and frames it once for each name", () => {
  let encoded = 0;
  const messages = new SharedMessages(({ ordinal }) => {
    encoded++;
    return new MessageWriter().uint(2, ordinal).finish();
  });
  const names = new FilterNames();
  const [a, b, empty] = [names.use("a"), names.use("b"), names.use("")];
  const read = (framed: Buffer) => {
    const reader = new MessageReader(unframeMessage(framed));
    return [reader.strings(1), reader.uint(2)];
  };
  const first = messageOf(7);
  const framed = messages.framed(first, [a]);
  expect(messages.framed(first, [names.use("a")])).toBe(framed);
  expect(read(framed)).toEqual([["a"], 7n]);
  expect(read(messages.framed(first, [b]))).toEqual([["b"], 7n]);
  expect(read(messages.framed(first, [b, empty, a]))).toEqual([["b", "", "a"], 7n]);
  expect(encoded).toBe(1);
  const second = messageOf(8);
  expect(read(messages.framed(second, [a]))).toEqual([["a"], 8n]);
  expect(read(framed)).toEqual([["a"], 7n]);
  expect(encoded).toBe(2);
});

it("forgets a name after its last use", () => {
  const names = new FilterNames();
  const name = names.use("a");
  names.use("a");
  names.release("a");
  expect(names.use("a")).toBe(name);
  names.release("a");
  names.release("a");
  expect(names.use("a")).not.toBe(name);
});
