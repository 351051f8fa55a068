// What comes over the wire: taken where it has the shape of the contract, refused with its place where not.

import { describe, expect, it } from "vitest";
import {
  list,
  number,
  object,
  oneOf,
  optional,
  orNull,
  ShapeError,
  text,
} from "../../../../src/platform/portal/page/shape.ts";
import { transactionStatus } from "../../../../src/platform/portal/page/wire.ts";
import { liveMessage } from "../../../../src/platform/portal/page/wire-live.ts";

const worker = { load: 0.1, receivedPerSecond: 5, receiveDrops: 0, highestSlot: 7 };

describe("readers", () => {
  const reader = object<{ name: string; sizes: readonly number[]; kind: "a" | "b" | null }>({
    name: text,
    sizes: list(number),
    kind: orNull(oneOf("a", "b")),
  });

  it("take what has the shape, and leave out what nobody asked for", () => {
    const value = { name: "x", sizes: [1, 2], kind: "a", extra: true };
    expect(reader(value, "it")).toEqual({ name: "x", sizes: [1, 2], kind: "a" });
  });

  it.each([
    [{ name: "x", sizes: [1, "2"], kind: null }, "it.sizes[1]: expected a number"],
    [{ name: 1, sizes: [], kind: null }, "it.name: expected a text"],
    [{ name: "x", sizes: {}, kind: null }, "it.sizes: expected a list"],
    [{ name: "x", sizes: [], kind: "c" }, "it.kind: expected a, b"],
    [null, "it: expected an object"],
    [[], "it: expected an object"],
  ])("refuse %j and say where", (value, message) => {
    expect(() => reader(value, "it")).toThrow(new ShapeError(message));
  });

  it("put something in place of what is absent, not of what is wrong", () => {
    const maybe = optional(number, 7);
    expect(maybe(undefined, "it")).toBe(7);
    expect(() => maybe(null, "it")).toThrow("it: expected a number");
  });
});

describe("messages of the live feed", () => {
  it("come under their topic", () => {
    expect(liveMessage({ topic: "workers", value: [worker] })).toEqual({ workers: [worker] });
  });

  it("of topics that this page does not know are passed over", () => {
    expect(liveMessage({ topic: "toString", value: 1 })).toBeNull();
    expect(liveMessage({ topic: "of-tomorrow", value: 1 })).toBeNull();
  });

  it("of another shape are refused, with their place", () => {
    const broken = { topic: "workers", value: [{ ...worker, load: "0.1" }] };
    expect(() => liveMessage(broken)).toThrow("workers[0].load: expected a number");
    expect(() => liveMessage("text")).toThrow("message: expected an object");
  });
});

describe("the status of a transaction", () => {
  it("has null for what an event does not tell", () => {
    const event = { kind: "received", at: "2026-11-21T12:00:00.000Z", offsetMs: 0 };
    const told = {
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
    expect(transactionStatus(told, "result")?.events[0]).toMatchObject({
      kind: "received",
      route: null,
      slot: null,
    });
    expect(transactionStatus(null, "result")).toBeNull();
  });
});
