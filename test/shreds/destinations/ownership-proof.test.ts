import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { AccountDestination } from "../../../src/shreds/destinations/destination-types.ts";
import {
  askedOffsetsMs,
  challengeBytes,
  challengeOf,
  ErrorRun,
  isChallenge,
  isProofShaped,
  parseToken,
  Round,
  RoundLimits,
  roundsPerHour,
  tokenIn,
  triesMax,
} from "../../../src/shreds/destinations/ownership-proof.ts";

const token = Uint8Array.from({ length: 16 }, (_, i) => i);
const hour = 3_600_000;

describe("a challenge", () => {
  it("has the layout that receivers answer", () => {
    const bytes = Buffer.from(challengeOf(token));
    expect(bytes.subarray(0, 8).toString("latin1")).toBe("SWPROOF1");
    expect(bytes.subarray(8, 24).toString("hex")).toBe("000102030405060708090a0b0c0d0e0f");
    expect(bytes.subarray(24).toString("latin1")).toBe("shredway: prove this address");
    expect(bytes.length).toBe(challengeBytes);
    expect(bytes.length).toBeLessThanOrEqual(64);
  });

  it("is recognised by its mark and from 24 to 64 bytes, as the native filter does", () => {
    const longest = Buffer.concat([challengeOf(token), Buffer.alloc(64)]);
    const lengths = Array.from({ length: 80 }, (_, i) => i);
    const recognised = lengths.filter((length) => isChallenge(longest.subarray(0, length)));
    expect([recognised[0], recognised.at(-1), recognised.length]).toEqual([24, 64, 41]);
    longest[7] = 0;
    expect(isChallenge(longest.subarray(0, 52))).toBe(false);
  });

  it("is answered only by itself or by its first 24 bytes", () => {
    const bytes = challengeOf(token);
    expect(tokenIn(bytes)).toEqual(token);
    expect(tokenIn(bytes.subarray(0, 24))).toEqual(token);
    for (let length = 0; length <= 80; length++) {
      const cut = Uint8Array.from({ length }, (_, i) => bytes[i] ?? 0);
      if (length !== 24 && length !== bytes.length) expect(tokenIn(cut)).toBeNull();
    }
    for (const endpoint of [0, 7, 24, bytes.length - 1]) {
      const altered = Uint8Array.from(bytes);
      altered[endpoint] = (altered[endpoint] ?? 0) ^ 1;
      expect(tokenIn(altered)).toBeNull();
      expect(isProofShaped(altered)).toBe(endpoint >= 24);
    }
  });

  it("matches no other datagram", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
        expect(tokenIn(bytes)).toBeNull();
      }),
    );
  });

  it("has a token of 32 hex digits", () => {
    const random = randomBytes(16);
    expect(Buffer.from(parseToken(random.toString("hex").toUpperCase()))).toEqual(random);
    for (const text of ["", "00", "g".repeat(32), "0".repeat(33), `${"0".repeat(32)}\n`]) {
      expect(() => parseToken(text)).toThrow(/invalid token; expected 32 hex digits/);
    }
  });
});

describe("a round of challenges", () => {
  it("sends at most three datagrams, without a burst after a delay", () => {
    const round = new Round(token, 1000, askedOffsetsMs);
    expect(round.takeDue(999)).toBeNull();
    expect(round.takeDue(1000)).toEqual(challengeOf(token));
    expect(round.takeDue(2999)).toBeNull();
    expect(round.nextSendMs).toBe(3000);
    expect(round.takeDue(50_000)).not.toBeNull();
    expect(round.takeDue(50_000)).toBeNull();
    expect(round.nextSendMs).toBeNull();
  });

  it("accepts its token for ten minutes, and for a limited number of attempts", () => {
    const round = new Round(token, 0, askedOffsetsMs);
    expect(round.holds(Uint8Array.from(token))).toBe(true);
    expect(round.holds(token.subarray(0, 15))).toBe(false);
    for (let i = 0; i < 16; i++) {
      const wrong = Uint8Array.from(token);
      wrong[i] = (wrong[i] ?? 0) ^ 0x80;
      expect(round.holds(wrong)).toBe(false);
    }
    expect(round.isOpen(599_999)).toBe(true);
    expect(round.isOpen(600_000)).toBe(false);
    for (let i = 0; i < triesMax - 1; i++) round.countTry();
    expect(round.isOpen(0)).toBe(true);
    round.countTry();
    expect(round.isOpen(0)).toBe(false);
  });
});

describe("errors", () => {
  it("count if they continue for 10 s with gaps below 5 s", () => {
    const run = new ErrorRun();
    expect([0, 4_999, 9_998, 9_999].map((atMs) => run.add(atMs))).not.toContain(true);
    expect(run.add(10_000)).toBe(true);
    run.clear();
    expect([20_000, 24_000, 28_000].map((atMs) => run.add(atMs))).not.toContain(true);
    expect(run.add(33_000)).toBe(false); // 5 s of silence: a new run begins
    expect([37_000, 41_000].map((atMs) => run.add(atMs))).not.toContain(true);
    expect(run.add(43_000)).toBe(true);
    expect(run.add(1_000)).toBe(false); // a clock that was set back
  });

  it("count in any order of the workers", () => {
    // Two workers record an error every 100 ms; each drain returns one worker's ring after the other's.
    const run = new ErrorRun();
    const answers: boolean[] = [];
    for (let drainMs = 0; drainMs < 12_000; drainMs += 250) {
      for (const workerOffsetMs of [0, 50]) {
        for (let atMs = drainMs + workerOffsetMs; atMs < drainMs + 250; atMs += 100)
          answers.push(run.add(atMs));
      }
    }
    const first = answers.indexOf(true);
    expect(first).toBeGreaterThan(0);
    expect(answers.slice(first)).not.toContain(false);
  });

  it("count the same in every order that keeps each error within a drain of its place", () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 4_000 }), { minLength: 1, maxLength: 60 });
    const delays = fc.array(fc.integer({ min: 0, max: 250 }), { minLength: 60, maxLength: 60 });
    fc.assert(
      fc.property(gaps, delays, (steps, late) => {
        let now = 1_000_000;
        const times = steps.map((step) => (now += step));
        const arrival = times.map((atMs, i) => ({ atMs, seenMs: atMs + (late[i] ?? 0) }));
        const run = new ErrorRun();
        const answers = arrival
          .toSorted((one, other) => one.seenMs - other.seenMs)
          .map(({ atMs }) => run.add(atMs));
        const last = times.at(-1) ?? 0;
        expect(answers.includes(true)).toBe(last - (times[0] ?? 0) >= 10_000);
      }),
    );
  });
});

function at(address: string, accountId: string): AccountDestination {
  return {
    id: "d_1",
    accountId,
    accountName: "",
    region: "here",
    address,
    createdMs: 0,
    state: "unproved",
    provedMs: null,
    provedBy: null,
    proofEndsMs: null,
    pausedMs: null,
    pauseReason: null,
    recovered: false,
  };
}

describe("RoundLimits", () => {
  it.each([
    [
      "an address, whosever it is",
      roundsPerHour.endpoint,
      () => "5.6.7.8:9001",
      (i: number) => `${i}`,
    ],
    [
      "a host, whatever the port",
      roundsPerHour.host,
      (i: number) => `[2606::1]:${9000 + i}`,
      (i: number) => `${i}`,
    ],
    [
      "an account, whatever it names",
      roundsPerHour.account,
      (i: number) => `5.6.7.${i}:9001`,
      () => "a_1",
    ],
  ])("bounds the rounds of %s", (_, max, addressOf, accountOf) => {
    const limits = new RoundLimits();
    const take = (i: number, nowMs: number) => limits.take(at(addressOf(i), accountOf(i)), nowMs);
    for (let i = 0; i < max; i++) expect(take(i, i)).toBe(0);
    expect(take(99, 100)).toBe(hour - 100);
    expect(take(99, hour - 1)).toBe(1);
    expect(take(99, hour)).toBe(0);
    expect(take(99, hour)).toBe(1);
  });

  it("counts no rejected round, and expires after an hour", () => {
    const limits = new RoundLimits();
    for (let i = 0; i < roundsPerHour.endpoint; i++) limits.take(at("5.6.7.8:9001", "a_1"), 0);
    for (let i = 0; i < 50; i++)
      expect(limits.take(at("5.6.7.8:9001", "a_2"), 1)).toBeGreaterThan(0);
    expect(limits.take(at("5.6.7.9:9001", "a_2"), 2)).toBe(0);
    expect(limits.size).toBe(6);
    expect(limits.take(at("5.6.7.9:9001", "a_3"), hour + 3)).toBe(0);
    expect(limits.size).toBe(3);
  });
});
