// A client's connection, or one stream of it, as a call sees it: what was sent for the call, and whether
// the next calls may be sent likewise.

import type { TakenRequest } from "../submission/taken-request.ts";

export interface FastConnection {
  /** The sends for the call that is handled; null: nothing was sent. A check under way ends without a send. */
  claim(): TakenRequest | null;
  /** Whether something was sent for the call that is handled. */
  readonly isTaken: boolean;
  /** From now on, calls that repeat this accepted one may be taken. */
  learn(lesson: Lesson): void;
  /** Until the next lesson, nothing is taken. */
  forget(): void;
}

/** An accepted call of sendTransaction without protective options. */
export interface Lesson {
  /** Request line and headers, without the empty line; empty on a stream. */
  readonly head: Uint8Array;
  readonly body: Uint8Array;
  readonly isBase58: boolean;
  readonly keyId: string;
  /** Monotonic: end of the key's validity. */
  readonly untilNs: bigint;
}
