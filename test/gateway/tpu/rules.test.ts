// Rules of the TPU route: target leaders, back-off and close names.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { closeName, isRefusal } from "../../../src/core/quic/close-names.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { BackOff } from "../../../src/gateway/tpu/back-off.ts";
import { targetsOf, upcomingOf } from "../../../src/gateway/tpu/leader-selection.ts";

/** Windows of four slots, one letter each, from slot 0; "-": unknown leader. */
function leadersOf(windows: string, slot: bigint | null) {
  return {
    slot: () => slot,
    leaderAt: (at: bigint) => {
      const letter = windows[Number(at / 4n)];
      return letter === undefined || letter === "-" ? null : letter;
    },
  };
}

describe("targetsOf", () => {
  it("returns the current leader, and in the second half of a window the next ones", () => {
    const at = (slot: bigint, fanout: number) => targetsOf(leadersOf("abcd", slot), fanout);
    expect(at(0n, 2)).toEqual(["a"]);
    expect(at(1n, 2)).toEqual(["a"]);
    expect(at(2n, 2)).toEqual(["a", "b"]);
    expect(at(3n, 3)).toEqual(["a", "b", "c"]);
    expect(at(4n, 3)).toEqual(["b"]);
    expect(at(3n, 1)).toEqual(["a"]);
  });

  it("returns a leader of several windows once, and none if unknown", () => {
    expect(targetsOf(leadersOf("aab", 3n), 2)).toEqual(["a"]);
    expect(targetsOf(leadersOf("aab", 3n), 3)).toEqual(["a", "b"]);
    expect(targetsOf(leadersOf("-b", 1n), 2)).toEqual([]);
    expect(targetsOf(leadersOf("-b", 3n), 2)).toEqual(["b"]);
    expect(targetsOf(leadersOf("ab", null), 2)).toEqual([]);
  });
});

describe("upcomingOf", () => {
  it("returns all leaders within the slots, nearest first", () => {
    expect(upcomingOf(leadersOf("abac", 2n), 0)).toEqual(["a"]);
    expect(upcomingOf(leadersOf("abac", 2n), 2)).toEqual(["a", "b"]);
    expect(upcomingOf(leadersOf("abac", 2n), 9)).toEqual(["a", "b"]);
    expect(upcomingOf(leadersOf("abac", 2n), 10)).toEqual(["a", "b", "c"]);
    expect(upcomingOf(leadersOf("abac", null), 10)).toEqual([]);
  });
});

describe("BackOff", () => {
  it("doubles up to 30 s (1.6 s after unanswered handshakes), with jitter of at most half", () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.array(fc.constantFrom("handshake_timeout", "disallowed", "lost"), { maxLength: 20 }),
        (seed, names) => {
          const backOff = new BackOff(new SeededRandom(seed));
          for (const [i, name] of names.entries()) {
            const longest = name === "handshake_timeout" ? 1600 : 30_000;
            const whole = Math.min(longest, (isRefusal(name) ? 2000 : 250) * 2 ** i);
            const pauseMs = backOff.pauseMsAfter(name, null);
            expect(pauseMs).toBeGreaterThan(whole / 2 - 1);
            expect(pauseMs).toBeLessThanOrEqual(whole);
          }
        },
      ),
    );
  });

  it("restarts after an established connection", () => {
    const backOff = new BackOff(new SeededRandom(1));
    for (let i = 0; i < 8; i++) backOff.pauseMsAfter("lost", null);
    expect(backOff.pauseMsAfter("lost", null)).toBeGreaterThan(10_000);
    expect(backOff.pauseMsAfter("idle_timeout", 60_000)).toBeLessThanOrEqual(250);
    expect(backOff.pauseMsAfter("dropped", 60_000)).toBeGreaterThanOrEqual(1000);
    for (let i = 0; i < 8; i++) backOff.pauseMsAfter("lost", null);
    backOff.noteEnd(4999);
    expect(backOff.failures).toBeGreaterThan(8);
    backOff.noteEnd(5000);
    expect(backOff.failures).toBe(0);
  });

  it("differs between seeds", () => {
    const pauses = [1, 2, 3, 4].map((seed) =>
      new BackOff(new SeededRandom(seed)).pauseMsAfter("lost", null),
    );
    expect(new Set(pauses).size).toBe(4);
  });
});

describe("closeName", () => {
  it("maps the codes of validators, QUIC and TLS", () => {
    const app = (errorCode: number) => closeName({ isApp: true, errorCode });
    const transport = (errorCode: number) => closeName({ isApp: false, errorCode });
    expect([0, 1, 2, 3, 4, 5].map(app)).toEqual([
      "closed",
      "dropped",
      "disallowed",
      "exceed_max_stream_count",
      "too_many",
      "invalid_stream",
    ]);
    expect(transport(2)).toBe("connection_refused");
    expect(transport(306)).toBe("tls_decode_error");
    expect(transport(0x1ff)).toBe("tls_255");
    expect(transport(0x200)).toBe("transport_512");
    expect(app(99)).toBe("application_99");
  });

  it("distinguishes refusals from accidents", () => {
    const refusals = ["disallowed", "too_many", "dropped", "tls_decode_error", "application_99"];
    expect(refusals.filter((name) => !isRefusal(name))).toEqual([]);
    const accidents = ["closed", "idle_timeout", "lost", "handshake_timeout", "internal_error"];
    expect(accidents.filter(isRefusal)).toEqual([]);
  });
});
