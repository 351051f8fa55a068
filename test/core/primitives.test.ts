import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  errorTable,
  isShredwayError,
  quote,
  reasons,
  retryAfterOf,
  reworded,
  ShredwayError,
} from "../../src/core/errors.ts";
import {
  lamportsOf,
  parseLamports,
  parsePubkey,
  parseSlot,
  pubkeyBytes,
  pubkeyOf,
  slotOf,
  u64Max,
} from "../../src/core/primitives.ts";

describe("numbers", () => {
  it("round-trips every u64", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, u64Max), (value) => {
        expect(parseSlot(String(value))).toBe(value);
        expect(parseLamports(String(value))).toBe(value);
      }),
    );
  });

  it.each([
    "",
    "-1",
    "+1",
    "01",
    "1.0",
    "1e3",
    "0x10",
    " 1",
    "18446744073709551616",
    "9".repeat(21),
  ])("refuses %j", (text) => {
    expect(() => parseSlot(text)).toThrow(ShredwayError);
    expect(() => parseLamports(text)).toThrow(
      /^lamports: invalid value .*; expected 0 to 18446744073709551615/,
    );
  });

  it("rejects bigints out of range", () => {
    expect(slotOf(u64Max)).toBe(u64Max);
    expect(() => slotOf(u64Max + 1n)).toThrow("invalid value 18446744073709551616");
    expect(() => lamportsOf(-1n)).toThrow("invalid value -1");
  });
});

describe("public keys", () => {
  it("reads back every key", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        expect(pubkeyBytes(parsePubkey(pubkeyOf(bytes)))).toEqual(bytes);
      }),
    );
  });

  it("accepts the system program and a token program", () => {
    expect(pubkeyBytes(parsePubkey("11111111111111111111111111111111"))).toEqual(
      new Uint8Array(32),
    );
    expect(pubkeyOf(pubkeyBytes(parsePubkey("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")))).toBe(
      "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
    );
  });

  it.each([
    "",
    "1",
    "0".repeat(32),
    "l".repeat(40),
    "1".repeat(31),
    "1".repeat(33),
    "z".repeat(44),
    "z".repeat(9999),
  ])("rejects invalid texts", (text) => {
    expect(() => parsePubkey(text)).toThrow(/expected 32 bytes in base58/);
  });
});

describe("errors", () => {
  it("has one row per reason, with codes that callers know", () => {
    expect(Object.keys(errorTable).toSorted()).toEqual([...reasons].toSorted());
    expect(new ShredwayError("usage", "x").row.exitCode).toBe(2);
    expect(errorTable.internal.jsonRpcCode).toBe(-32603);
  });

  it("preserves cause and details", () => {
    const cause = new Error("inner");
    const error = new ShredwayError("capture_invalid", "outer", {
      cause,
      details: { file: "a", offset: 3 },
    });
    expect(error).toMatchObject({
      name: "ShredwayError",
      reason: "capture_invalid",
      details: { file: "a", offset: 3 },
    });
    expect(error.cause).toBe(cause);
    expect("cause" in new ShredwayError("system", "outer")).toBe(false);
  });

  it("narrows to the details of a reason", () => {
    const error: unknown = new ShredwayError("nonce_pending", "x", {
      details: { retryAfterSeconds: 3 },
    });
    const found = isShredwayError(error, "nonce_pending") ? error.details?.retryAfterSeconds : null;
    expect(found).toBe(3);
    expect(isShredwayError(error, "nonce_failed")).toBe(false);
    expect(isShredwayError(new Error("x"), "nonce_pending")).toBe(false);
    expect([retryAfterOf(error), retryAfterOf(new ShredwayError("usage", "x"))]).toEqual([
      3,
      undefined,
    ]);
  });

  it("accepts exactly the details of a reason", () => {
    const refused = [
      // @ts-expect-error: this reason has no details
      new ShredwayError("usage", "x", { details: { offset: 3 } }),
      // @ts-expect-error: this reason has other details
      new ShredwayError("nonce_pending", "x", { details: { offset: 3 } }),
      // @ts-expect-error: this reason requires details
      new ShredwayError("store_newer", "x"),
    ];
    expect(refused).toHaveLength(3);
  });

  it("preserves reason and details under another message", () => {
    const cause = new ShredwayError("rate_limited", "x", { details: { retryAfterSeconds: 3 } });
    const error = reworded(cause, "y", { index: 1 });
    const { reason, details, message } = error;
    expect({ reason, details, message }).toEqual({
      reason: "rate_limited",
      details: { retryAfterSeconds: 3, index: 1 },
      message: "y",
    });
    expect(error.cause).toBe(cause);
  });

  it("quotes any value in one short line", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(quote(value).length).toBeLessThanOrEqual(80);
        expect(quote(value)).not.toContain("\n");
      }),
    );
    expect([quote(cycle), quote(undefined), quote(12n), quote("a")]).toEqual([
      "object",
      "nothing",
      "12",
      '"a"',
    ]);
  });
});
