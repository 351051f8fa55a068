// Fast path: sends transactions to partners before their requests are read in JavaScript.
//
// A thread of the addon (native/submission/fast_path.h) repeats decisions of the gateway: on a caller's
// connection it takes requests that repeat an accepted one, and writes their transactions to idle
// connections that routes have lent. It also takes transactions that arrive over QUIC (stream-offers.ts).
// Others are sent likewise on this thread, when their key and its limits have been checked. This file gives
// the addon the rules in force, keys and routes their numbers, and counts what was sent for requests that
// were refused afterwards.

import type { Logger } from "../../core/log.ts";
import { native } from "../../relay/data-plane/native.ts";
import type {
  NativeFastPath,
  NativeFastPathCounts,
} from "../../relay/data-plane/native-fast-path.ts";
import type { TakenRequest } from "../submission/taken-request.ts";
import { dontFrontRanges } from "../transactions/dont-front.ts";
import {
  CallerConnection,
  type FastPathConnections,
  type FastPathHost,
} from "./caller-connection.ts";
import { RouteLoans, type RouteNumbers } from "./route-loans.ts";
import { readTakenRecord, takenRecordBytes } from "./taken-record.ts";

/** As kFastPathRoutesMax and kFastPathKeysMax in native/submission/fast_path.h. */
const routesMax = 16;
const keysMax = 65_536;

/** Conditions that every transaction must meet. */
interface FastPathRules {
  /** Public keys of 32 bytes. */
  readonly tipAddresses: readonly Uint8Array[];
  /** Prefixes of base58 addresses. */
  readonly dontFrontPrefixes: readonly string[];
  /** Minimum tip of sendTransaction. */
  readonly minimumTipLamports: bigint;
}

export interface FastPathSnapshot extends NativeFastPathCounts {
  /** Sends of requests that were not accepted. */
  readonly abandoned: number;
}

/** Only the simulation of the whole system sets them. */
interface FastPathOptions {
  readonly handle?: NativeFastPath;
  /** Monotonic. */
  readonly nowMs?: () => number;
}

const noCounts: NativeFastPathCounts = {
  taken: 0,
  direct: 0,
  different: 0,
  rejected: 0,
  late: 0,
  connections: 0,
  loans: 0,
  unclaimed: 0,
};

export class FastPath implements FastPathHost, FastPathConnections, RouteNumbers {
  readonly native: NativeFastPath;
  readonly #log: Pick<Logger, "warn">;
  readonly #nowMs: () => number;
  readonly #keyNumbers = new Map<string, number>();
  readonly #routes = new Map<number, RouteLoans>();
  readonly #record = new Uint8Array(takenRecordBytes);
  #abandoned = 0;
  #isClosed = false;

  /** Throws Error if the system refuses a thread. Nothing is sent before `setRules`. */
  constructor(
    log: Pick<Logger, "warn">,
    { handle = new (native().FastPath)(), nowMs = () => performance.now() }: FastPathOptions = {},
  ) {
    this.#log = log;
    this.native = handle;
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs();
  }

  setRules({ tipAddresses, dontFrontPrefixes, minimumTipLamports }: FastPathRules): void {
    if (this.#isClosed) return;
    this.native.setRules(
      Buffer.concat(tipAddresses),
      dontFrontRanges(dontFrontPrefixes),
      minimumTipLamports,
    );
  }

  connection(descriptor: () => number | undefined): CallerConnection | null {
    return this.#isClosed ? null : new CallerConnection(this, descriptor);
  }

  /** Calls that the key may make now, as its limit has them. */
  allow(keyId: string, calls: number): void {
    if (!this.#isClosed) this.native.allow(this.keyNumber(keyId), Math.floor(calls));
  }

  /** The transaction was submitted in another way: it is not taken any more. */
  note(signature: string): void {
    if (!this.#isClosed) this.native.note(signature);
  }

  /**
   * Checks a transaction and sends it, like the thread. null: it was not sent, because it is invalid or known,
   * has a smaller tip than required, or no connection is free.
   */
  send(wire: Uint8Array): TakenRequest | null {
    if (this.#isClosed || this.native.sendNow(wire, this.#record) === 0) return null;
    return readTakenRecord(this.#record, wire);
  }

  /** Every connection has to show again that its requests are accepted. Nothing has a key's number then. */
  forgetAll(): void {
    this.#keyNumbers.clear();
    if (!this.#isClosed) this.native.forgetAll();
  }

  /** null: the fast path is closed. */
  openRoute(): RouteLoans | null {
    return this.#isClosed ? null : new RouteLoans(this.native, this);
  }

  /** A number for a route that lends; null: all are in use. */
  take(loans: RouteLoans): number | null {
    if (this.#isClosed) return null;
    for (let number = 0; number < routesMax; number++) {
      if (this.#routes.has(number)) continue;
      this.#routes.set(number, loans);
      return number;
    }
    return null;
  }

  release(number: number): void {
    this.#routes.delete(number);
  }

  keyNumber(keyId: string): number {
    const known = this.#keyNumbers.get(keyId);
    if (known !== undefined) return known;
    // Numbers are used again, so that keys which are no longer used occupy none for ever.
    if (this.#keyNumbers.size >= keysMax) this.forgetAll();
    const number = this.#keyNumbers.size;
    this.#keyNumbers.set(keyId, number);
    // The calls that are left are those of the key that had the number before.
    if (!this.#isClosed) this.native.allow(number, 0);
    return number;
  }

  abandoned(taken: TakenRequest): void {
    const sends = taken.abandon();
    if (sends.length === 0) return;
    this.#abandoned += sends.length;
    this.#log.warn(
      { signature: taken.signature },
      "gateway: a transaction was sent, and its request was refused afterwards",
    );
    for (const send of sends) this.#routes.get(send.route)?.onAbandoned(send);
  }

  snapshot(): FastPathSnapshot {
    const counts = this.#isClosed ? noCounts : this.native.counts();
    return { ...counts, abandoned: this.#abandoned };
  }

  /** Nothing more is taken; what was taken can still be claimed. */
  pause(): void {
    if (!this.#isClosed) this.native.pause();
  }

  /** Call it when no connection uses it any more. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.native.close();
  }
}
