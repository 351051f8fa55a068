// Ownership proof: the challenge datagram, its schedule, and the check of its answer.
//
// Used by destinations.ts and challenge-socket.ts. A challenge may reach a host that never asked for it, so
// there are few: at most three per round, and few rounds per hour. A returned datagram is untrusted until its
// token is that of an open round.
//
//   bytes 0-7    ASCII "SWPROOF1"
//   bytes 8-23   token
//   bytes 24-    ASCII, an explanation for captures
//
// The answer is the same datagram, or its first 24 bytes, returned from the challenged address.

import { timingSafeEqual } from "node:crypto";
import { ShredwayError } from "../../core/errors.ts";
import type { AccountDestination } from "./destination-types.ts";

const mark = Buffer.from("SWPROOF1", "ascii");
const explanation = Buffer.from("shredway: prove this address", "ascii");
export const tokenBytes = 16;
/** Length of the shortest answer. */
const proofBytesMin = mark.length + tokenBytes;
export const challengeBytes = proofBytesMin + explanation.length;

/** `token`: 16 bytes. */
export function challengeOf(token: Uint8Array): Uint8Array {
  return new Uint8Array(Buffer.concat([mark, token, explanation]));
}

function isMarked(datagram: Uint8Array): boolean {
  return mark.every((byte, i) => datagram[i] === byte);
}

/**
 * Longest challenge that receivers recognise: more than today's, for a longer explanation. As in
 * native/net/receive_filter.h.
 */
export const recognisedBytesMax = 64;

/** Whether a receiver recognises it as a challenge, of this or of another version of the service. */
export function isChallenge(datagram: Uint8Array): boolean {
  const { length } = datagram;
  return length >= proofBytesMin && length <= recognisedBytesMax && isMarked(datagram);
}

/** Whether it may be an answer, by length and mark alone. */
export function isProofShaped(datagram: Uint8Array): boolean {
  const { length } = datagram;
  return (length === proofBytesMin || length === challengeBytes) && isMarked(datagram);
}

/** The token of an answer; null: not an answer. */
export function tokenIn(datagram: Uint8Array): Uint8Array | null {
  if (!isProofShaped(datagram)) return null;
  const isComplete = explanation.every((byte, i) => datagram[proofBytesMin + i] === byte);
  if (datagram.length === challengeBytes && !isComplete) return null;
  return datagram.subarray(mark.length, proofBytesMin);
}

export function proofRefused(message: string): ShredwayError {
  return new ShredwayError("proof_refused", message);
}

/** Throws ShredwayError "proof_refused". */
export function parseToken(text: string): Uint8Array {
  // Not quoted: it may be a valid token with an extra space.
  if (/^[0-9a-f]{32}$/i.test(text)) return Buffer.from(text, "hex");
  throw proofRefused("invalid token; expected 32 hex digits");
}

/** Times of the datagrams to a receiver that used to answer, and about which ICMP errors arrive. */
export const doubtOffsetsMs = [0, 10_000, 20_000] as const;
/** Such a receiver is unreachable after this time without an answer. */
export const doubtMs = 30_000;

/** Times of a round's datagrams after the request. */
export const askedOffsetsMs = [0, 2_000, 10_000] as const;
/** Times of an unrequested round's datagrams. */
export const ownOffsetsMs = [0] as const;
const roundMs = 10 * 60_000;
/** Maximum number of tokens per round: guessing needs 2^128, typing three or four. */
export const triesMax = 10;

/** One token: while it is open, it proves the address that it was sent to. */
export class Round {
  readonly isAsked: boolean;
  readonly endsMs: number;
  readonly #token: Uint8Array;
  #sendsMs: readonly number[];
  #triesLeft = triesMax;

  constructor(token: Uint8Array, startMs: number, offsetsMs: readonly number[]) {
    this.#token = token;
    this.#sendsMs = offsetsMs.map((offset) => startMs + offset);
    this.endsMs = startMs + roundMs;
    this.isAsked = offsetsMs === askedOffsetsMs;
  }

  /** Time of the next datagram; null: all were sent. */
  get nextSendMs(): number | null {
    return this.#sendsMs[0] ?? null;
  }

  /** The datagram to send now; null: none is due. A delay causes no burst. */
  takeDue(nowMs: number): Uint8Array | null {
    const later = this.#sendsMs.filter((atMs) => atMs > nowMs);
    if (later.length === this.#sendsMs.length) return null;
    this.#sendsMs = later;
    return challengeOf(this.#token);
  }

  isOpen(nowMs: number): boolean {
    return nowMs < this.endsMs && this.#triesLeft > 0;
  }

  holds(token: Uint8Array): boolean {
    return token.length === tokenBytes && timingSafeEqual(token, this.#token);
  }

  /**
   * Counts a wrong token of a call. Wrong datagrams are not counted, because their sender can be forged
   * to close the round.
   */
  countTry(): void {
    this.#triesLeft--;
  }
}

const renewalShares = [1 / 2, 3 / 4, 9 / 10] as const;
/**
 * Seconds from the pause. A receiver that comes back waits at most 10 s, or a third of the time that it was
 * away if that is more.
 */
const retrySeconds = [
  5, 10, 15, 20, 30, 40, 50, 60, 75, 90, 120, 150, 180, 240, 300, 390, 480, 600, 780, 960, 1_200,
  1_560, 2_040, 2_700, 3_600,
] as const;

/** Times of unrequested challenges, ascending. */
export function remindersOf(destination: AccountDestination): readonly number[] {
  const { state, pauseReason, provedMs, proofEndsMs, pausedMs } = destination;
  if (state === "active" && provedMs !== null && proofEndsMs !== null) {
    return renewalShares.map((share) => provedMs + Math.floor((proofEndsMs - provedMs) * share));
  }
  if (state === "paused" && pauseReason !== "operator" && pausedMs !== null) {
    return retrySeconds.map((seconds) => pausedMs + seconds * 1_000);
  }
  return [];
}

/** A restart within this time after a destination was added may have ended its round, or lost its proof. */
const resumedMs = 60_000;

/**
 * Whether a round begins although no call here requests one. `origin`: how this process learns of the
 * destination: from the store at its start, from a call, or from another node.
 */
export function needsRound(
  { state, createdMs }: AccountDestination,
  origin: "start" | "here" | "foreign",
  nowMs: number,
): boolean {
  if (state !== "unproved") return false;
  return origin === "foreign" || (origin === "start" && nowMs - createdMs < resumedMs);
}

/**
 * Time of the next datagram of the first round, which the relay of the destination's region sends: it learns of
 * the destination at once. null: it has sent all.
 */
export function firstRoundMs(
  { state, createdMs }: AccountDestination,
  nowMs: number,
): number | null {
  if (state !== "unproved") return null;
  const times = askedOffsetsMs.map((offset) => createdMs + offset);
  return times.find((atMs) => atMs > nowMs) ?? null;
}

const errorsMs = 10_000;
const errorGapMs = 5_000;

/** Distinguishes errors that continue from a lost packet. They are a hint: anyone can forge them. */
export class ErrorRun {
  #firstMs: number | null = null;
  #lastMs = 0;

  /**
   * True after errors for 10 s without a gap of 5 s. Workers report errors independently, so one may be
   * slightly older than the previous one; that neither ends nor shortens the run.
   */
  add(atMs: number): boolean {
    // A clock that was set back by more than a gap starts a new run.
    const first = Math.abs(atMs - this.#lastMs) < errorGapMs ? this.#firstMs : null;
    this.#lastMs = first === null ? atMs : Math.max(atMs, this.#lastMs);
    this.#firstMs = first === null ? atMs : Math.min(atMs, first);
    return this.#lastMs - this.#firstMs >= errorsMs;
  }

  clear(): void {
    this.#firstMs = null;
  }
}

const hourMs = 3_600_000;
/**
 * Requested rounds per hour. By address, so removing and adding the destination does not reset it.
 */
export const roundsPerHour = { endpoint: 6, host: 12, account: 12 } as const;
type RoundKey = Readonly<Record<keyof typeof roundsPerHour, string>>;

function roundKeyOf({ address, accountId }: AccountDestination): RoundKey {
  return {
    endpoint: address,
    host: address.slice(0, address.lastIndexOf(":")),
    account: accountId,
  };
}

export function tooManyRounds({ address }: AccountDestination, waitMs: number): ShredwayError {
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  return new ShredwayError(
    "rate_limited",
    `too many challenges in an hour to ${address}, its host or from this account; ` +
      `retry in ${retryAfterSeconds} s`,
    { details: { retryAfterSeconds } },
  );
}

/**
 * Limits rounds, so that strangers are not flooded with challenges. Contains only rounds of the last hour.
 */
export class RoundLimits {
  /** Start times of rounds, ascending; the most recently used keys are last. */
  readonly #times = new Map<string, readonly number[]>();

  get size(): number {
    return this.#times.size;
  }

  /** Counts one round, or returns the time until the next permitted one, in ms. Monotonic time. */
  take(destination: AccountDestination, nowMs: number): number {
    this.#forget(nowMs);
    const key = roundKeyOf(destination);
    const kinds = ["endpoint", "host", "account"] as const;
    const used = kinds.map((kind) => {
      const name = `${kind} ${key[kind]}`;
      const times = (this.#times.get(name) ?? []).filter((atMs) => atMs > nowMs - hourMs);
      return { name, times, max: roundsPerHour[kind] };
    });
    const waits = used.map(({ times, max }) => {
      const first = times.at(-max);
      return first === undefined ? 0 : first + hourMs - nowMs;
    });
    const wait = Math.max(...waits);
    if (wait > 0) return wait;
    for (const { name, times } of used) {
      this.#times.delete(name);
      this.#times.set(name, [...times, nowMs]);
    }
    return 0;
  }

  #forget(nowMs: number): void {
    for (const [name, times] of this.#times) {
      if ((times.at(-1) ?? 0) > nowMs - hourMs) break;
      this.#times.delete(name);
    }
  }
}
