// Tokens of stateless retries: validity, binding to the address, and forgeries.

import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RetryTokens } from "../../../src/gateway/quic/retry-tokens.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

describe("RetryTokens", () => {
  const address = { host: "127.0.0.1", port: 1000 };
  const dcid = randomBytes(8);
  const scid = randomBytes(20);

  it("accepts its own tokens until they expire", async () => {
    const clock = new ManualClock();
    const tokens = new RetryTokens(clock);
    const token = tokens.mint(address, dcid, scid);
    expect(tokens.read(token, address, scid)).toEqual(dcid);
    await clock.advance(15_000);
    expect(tokens.read(token, address, scid)).toEqual(dcid);
    await clock.advance(1);
    expect(tokens.read(token, address, scid)).toBe(undefined);
  });

  it("accepts a token only for its address and connection id, and not those of another server", () => {
    const clock = new ManualClock();
    const tokens = new RetryTokens(clock);
    const token = tokens.mint(address, dcid, scid);
    expect(tokens.read(token, { ...address, port: 1001 }, scid)).toBe(undefined);
    expect(tokens.read(token, { ...address, host: "127.0.0.2" }, scid)).toBe(undefined);
    expect(tokens.read(token, address, randomBytes(20))).toBe(undefined);
    expect(new RetryTokens(clock).read(token, address, scid)).toBe(undefined);
  });

  it("rejects changed tokens and other bytes", () => {
    const tokens = new RetryTokens(new ManualClock());
    const token = tokens.mint(address, dcid, scid);
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const changed = Buffer.from(token);
        changed[at] = (changed[at] ?? 0) ^ flip;
        expect(tokens.read(changed, address, scid)).toBe(undefined);
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        expect(tokens.read(bytes, address, scid)).toBe(undefined);
      }),
    );
  });
});
