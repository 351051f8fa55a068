// A caller's connection on the fast path: teaches it requests, and claims what it sent.
//
// http1-connection.ts creates one per connection without TLS and says when a response leaves; the gateway
// claims and teaches through a CallerRequest. Nothing is watched before the first accepted submission.

import type { NativeFastPath } from "../../relay/data-plane/native-fast-path.ts";
import type { TakenRequest } from "../submission/taken-request.ts";
import type { FastConnection, Lesson } from "./fast-connection.ts";
import { readTakenRecord, takenRecordBytes } from "./taken-record.ts";

/** The fast path, as its connections use it. */
export interface FastPathHost {
  readonly native: NativeFastPath;
  /** Monotonic. */
  nowMs(): number;
  /** Number of an API key, until all lessons are forgotten. */
  keyNumber(keyId: string): number;
  /** Sends of a request that was not accepted. */
  abandoned(taken: TakenRequest): void;
}

/** Creates the connections of the HTTP server. */
export interface FastPathConnections {
  /** `descriptor` is read when it is first needed. null: the fast path is closed. */
  connection(descriptor: () => number | undefined): CallerConnection | null;
}

/** The addon counts the bytes of a connection modulo this number. */
const uint32 = 2 ** 32;
/** After a lesson, the same head is taught again no sooner. */
const freshMs = 100;
const record = new Uint8Array(takenRecordBytes);

export class CallerConnection implements FastConnection {
  readonly #host: FastPathHost;
  readonly #descriptor: () => number | undefined;
  #number: number | null = null;
  /** The system refused to watch it. */
  #isRefused = false;
  /** Place of the request that is handled, among all bytes of the connection. */
  #beginByte = 0;
  /** The sends for the request that is handled; undefined: not claimed yet. */
  #taken: TakenRequest | null | undefined;
  /** Head of the newest lesson. */
  #head: Uint8Array | null = null;
  #freshUntilMs = 0;
  #isClosed = false;

  constructor(host: FastPathHost, descriptor: () => number | undefined) {
    this.#host = host;
    this.#descriptor = descriptor;
  }

  claim(): TakenRequest | null {
    if (this.#number === null) return null;
    if (this.#taken === undefined) this.#taken = this.#claimed(this.#number);
    return this.#taken;
  }

  get isTaken(): boolean {
    if (this.#number === null) return false;
    return this.#taken === undefined
      ? this.#host.native.isTaken(this.#number, this.#beginByte % uint32)
      : this.#taken !== null;
  }

  learn({ head, body, isBase58, keyId, untilNs }: Lesson): void {
    // One that was taken has the known form. Another one may have been late.
    const isKnown = this.#taken || (head === this.#head && this.#host.nowMs() < this.#freshUntilMs);
    if (this.#isClosed || isKnown) return;
    const number = this.#watched();
    if (number === null) return;
    const key = this.#host.keyNumber(keyId);
    this.#host.native.learn(number, head, body, isBase58, key, untilNs);
    this.#head = head;
    this.#freshUntilMs = this.#host.nowMs() + freshMs;
  }

  forget(): void {
    this.#head = null;
    if (this.#number !== null) this.#host.native.forget(this.#number);
  }

  /** A request is handled next. `beginByte`: its place among all bytes of the connection. */
  beginning(beginByte: number): void {
    this.#beginByte = beginByte;
  }

  /**
   * The response to the present request leaves. `nextByte`: where the next request begins, if nothing of it was
   * read; otherwise null.
   */
  answering(nextByte: number | null): void {
    if (this.#number === null) return;
    this.#settle();
    if (nextByte !== null) this.#host.native.arm(this.#number, nextByte % uint32);
  }

  closed(): void {
    this.#isClosed = true;
    if (this.#number === null) return;
    this.#settle();
    this.#host.native.unwatch(this.#number);
    this.#number = null;
  }

  /** Claims what the handler did not, and abandons what no route adopted. */
  #settle(): void {
    const taken = this.claim();
    this.#taken = undefined;
    if (taken) this.#host.abandoned(taken);
  }

  #claimed(number: number): TakenRequest | null {
    const sends = this.#host.native.claim(number, this.#beginByte % uint32, record);
    if (sends > 0) return readTakenRecord(record);
    if (sends === -1) this.#head = null; // the next lesson is another one
    if (sends === -2) this.#host.abandoned(readTakenRecord(record));
    return null;
  }

  #watched(): number | null {
    if (this.#number !== null || this.#isRefused) return this.#number;
    const descriptor = this.#descriptor();
    const number = descriptor === undefined ? -1 : this.#host.native.watch(descriptor);
    this.#isRefused = number < 0;
    if (number >= 0) this.#number = number;
    return this.#number;
  }
}
