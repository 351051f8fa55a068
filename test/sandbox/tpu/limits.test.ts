// Limits by stake at a leader's port.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultLimits, rankOf } from "../../../src/sandbox/tpu/limits.ts";
import { identityOf } from "../../../src/sandbox/tpu/peer-identity.ts";

describe("rankOf", () => {
  it("treats stakes below a fifty-thousandth of the total as unstaked", () => {
    const total = 50_000_000n;
    expect(rankOf(0n, total, defaultLimits)).toEqual({ isStaked: false, streamsPerWindow: 20 });
    expect(rankOf(999n, total, defaultLimits).isStaked).toBe(false);
    expect(rankOf(1000n, total, defaultLimits)).toEqual({ isStaked: true, streamsPerWindow: 20 });
    expect(rankOf(0n, 0n, defaultLimits).isStaked).toBe(false);
  });

  it("distributes four fifths of all streams by stake", () => {
    expect(rankOf(10n, 1000n, defaultLimits).streamsPerWindow).toBe(400);
    expect(rankOf(1000n, 1000n, defaultLimits).streamsPerWindow).toBe(40_000);
  });
});

describe("identityOf", () => {
  it("finds no identity in an invalid certificate", () => {
    expect(identityOf(null)).toBe(null);
    expect(identityOf([])).toBe(null);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(identityOf([bytes])).toBe(null);
      }),
    );
  });
});
