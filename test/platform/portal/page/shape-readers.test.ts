// Received values: accepted in the contract's shape, otherwise refused with their place.

import { describe, expect, it } from "vitest";
import { transactionStatus } from "../../../../src/platform/portal/page/call-readers.ts";
import { liveMessage } from "../../../../src/platform/portal/page/live-readers.ts";
import {
  list,
  number,
  object,
  oneOf,
  optional,
  orNull,
  ShapeError,
  text,
} from "../../../../src/platform/portal/page/shape-readers.ts";

const worker = { load: 0.1, receivedPerSecond: 5, receiveDrops: 0, highestSlot: 7 };

describe("readers", () => {
  const reader = object<{ name: string; sizes: readonly number[]; kind: "a" | "b" | null }>({
    name: text,
    sizes: list(number),
    kind: orNull(oneOf("a", "b")),
  });

  it("accept values of the shape and ignore other members", () => {
    const value = { name: "x", sizes: [1, 2], kind: "a", extra: true };
    expect(reader(value, "it")).toEqual({ name: "x", sizes: [1, 2], kind: "a" });
  });

  it.each([
    [{ name: "x", sizes: [1, "2"], kind: null }, "it.sizes[1]: expected a number"],
    [{ name: 1, sizes: [], kind: null }, "it.name: expected a string"],
    [{ name: "x", sizes: {}, kind: null }, "it.sizes: expected a list"],
    [{ name: "x", sizes: [], kind: "c" }, "it.kind: expected a, b"],
    [null, "it: expected an object"],
    [[], "it: expected an object"],
  ])("refuse %j and name the place", (value, message) => {
    expect(() => reader(value, "it")).toThrow(new ShapeError(message));
  });

  it("replace an absent value, but not an invalid one", () => {
    const maybe = optional(number, 7);
    expect(maybe(undefined, "it")).toBe(7);
    expect(() => maybe(null, "it")).toThrow("it: expected a number");
  });
});

describe("messages of the live feed", () => {
  it("are returned under their topic", () => {
    expect(liveMessage({ topic: "workers", value: [worker] })).toEqual({ workers: [worker] });
  });

  it("with unknown topics are ignored", () => {
    expect(liveMessage({ topic: "toString", value: 1 })).toBeNull();
    expect(liveMessage({ topic: "of-tomorrow", value: 1 })).toBeNull();
  });

  it("of another shape are refused with their place", () => {
    const broken = { topic: "workers", value: [{ ...worker, load: "0.1" }] };
    expect(() => liveMessage(broken)).toThrow("workers[0].load: expected a number");
    expect(() => liveMessage("text")).toThrow("message: expected an object");
  });
});

describe("the status of a transaction", () => {
  it("has null for absent fields of an event", () => {
    const event = { kind: "received", at: "2026-11-21T12:00:00.000Z", offsetMs: 0 };
    const received = {
      signature: "5h6x",
      state: "open",
      method: "sendTransaction",
      bundleId: null,
      receivedAt: event.at,
      slot: null,
      reason: null,
      err: null,
      events: [event],
    };
    expect(transactionStatus(received, "result")?.events[0]).toMatchObject({
      kind: "received",
      route: null,
      slot: null,
      tipLamports: null,
      priorityFeeLamports: null,
    });
    expect(transactionStatus(null, "result")).toBeNull();
  });
});
