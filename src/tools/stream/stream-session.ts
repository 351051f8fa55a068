// A subscription that stays: one call, and a new one after each loss of the connection.
//
// What the server refuses, and `lagged` or `lost`, ends the session. Everything else after the first
// success is a loss: the session waits, connects again where it was, and counts the interruption. A server that
// does not have these slots any more is asked for the first one that it has, and then for the live stream.

import type { Clock, Timer } from "../../core/clock.ts";
import { type GrpcEnd, GrpcStreamCall } from "../../core/grpc/grpc-stream-call.ts";
import { ProtobufError } from "../../core/grpc/protobuf.ts";
import type { GrpcStatus } from "../../core/grpc/status.ts";
import { BackOff } from "../../relay/shredstream/back-off.ts";
import { ResumePoint } from "./resume-point.ts";
import {
  decodeUpdate,
  encodeRequest,
  pingRequest,
  type StreamEvent,
  streamPaths,
} from "./stream-messages.ts";
import type { StreamTarget } from "./stream-target.ts";

const messageBytesMax = 64 << 20;
const backOff = { firstMs: 500, maxMs: 15_000 };

/** A new call would end in the same way, or would hide what this one missed. */
const finalStatuses: readonly GrpcStatus[] = [
  "INVALID_ARGUMENT",
  "NOT_FOUND",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];

interface SessionDependencies {
  readonly target: StreamTarget;
  readonly clock: Clock;
  /** 0 to 1. */
  readonly random: () => number;
  readonly onEvent: (event: StreamEvent) => void;
  /** Reports a loss of the connection, and the connection after it. */
  readonly onNote: (text: string) => void;
  /** Called once, if the session cannot go on. */
  readonly onEnd: (end: GrpcEnd) => void;
}

interface Interruptions {
  readonly count: number;
  readonly totalMs: number;
}

export class StreamSession {
  readonly #dependencies: SessionDependencies;
  readonly #backOff: BackOff;
  #call: GrpcStreamCall | undefined;
  #timer: Timer | undefined;
  #wasOpen = false;
  #lostNs: bigint | null = null;
  #interruptions = 0;
  #interruptedMs = 0;
  readonly #point = new ResumePoint();
  /** Metadata x-from-slot of the call; null: it is live. */
  #fromSlot: bigint | null;
  /** The newest slot before the loss; null: the first event after it has come. */
  #expected: bigint | null = null;
  /** Messages that could not be decoded. */
  unreadable = 0;

  constructor(dependencies: SessionDependencies) {
    this.#dependencies = dependencies;
    this.#backOff = new BackOff({ ...backOff, random: dependencies.random });
    this.#fromSlot = dependencies.target.fromSlot;
    this.#connect();
  }

  /** Losses of the connection after the first success. */
  get interruptions(): Interruptions {
    return { count: this.#interruptions, totalMs: this.#interruptedMs + this.#openLossMs() };
  }

  /** Idempotent; `onEnd` is not called. */
  close(): void {
    this.#timer?.cancel();
    this.#call?.close();
  }

  #connect(): void {
    const { target, clock } = this.#dependencies;
    const { url, apiKey, certificateAuthorities, dialect, filter } = target;
    this.#call = new GrpcStreamCall({
      url,
      path: streamPaths[dialect],
      // Servers of both dialects expect the key under different names.
      metadata: {
        ...(apiKey !== null && { "x-token": apiKey, "x-api-key": apiKey }),
        ...(this.#fromSlot !== null && { "x-from-slot": `${this.#fromSlot}` }),
      },
      certificateAuthorities,
      messageBytesMax,
      clock,
      onOpen: () => this.#opened(),
      onMessage: (message) => this.#receive(message),
      onEnd: (end) => this.#ended(end),
    });
    this.#call.send(encodeRequest(dialect, filter));
    if (dialect === "entries") this.#call.finish();
  }

  #opened(): void {
    this.#wasOpen = true;
    if (this.#lostNs === null) return;
    const lostMs = this.#openLossMs();
    this.#interruptedMs += lostMs;
    this.#lostNs = null;
    const seconds = (lostMs / 1000).toFixed(1);
    const isMissing = this.#fromSlot === null ? "; transactions of this time are missing" : "";
    this.#expected = this.#fromSlot === null ? null : this.#point.newest;
    this.#dependencies.onNote(`connected again after ${seconds} s${isMissing}`);
  }

  /** The first event after a loss shows whether the server continues where the session was. */
  #checkContinuation(slot: bigint): void {
    if (this.#expected === null) return;
    const isRepeated = slot === this.#expected && slot === this.#fromSlot;
    const continues = slot < this.#expected || isRepeated;
    this.#dependencies.onNote(
      continues
        ? `continues at slot ${slot}`
        : `the first slot is ${slot}, expected at most ${this.#expected}; transactions may be missing`,
    );
    this.#expected = null;
  }

  #receive(message: Uint8Array): void {
    this.#backOff.reset();
    let events: readonly StreamEvent[];
    try {
      events = decodeUpdate(this.#dependencies.target.dialect, message);
    } catch (error) {
      if (!(error instanceof ProtobufError || error instanceof RangeError)) throw error;
      this.unreadable++;
      return;
    }
    for (const event of events) {
      if (event.kind === "ping") this.#call?.send(pingRequest);
      else this.#checkContinuation(event.slot);
      if (this.#point.note(event)) this.#dependencies.onEvent(event);
    }
  }

  #ended(end: GrpcEnd): void {
    const { clock, onEnd, onNote } = this.#dependencies;
    // The server may still count the stream that was lost.
    const isTooMany = this.#lostNs !== null && end.status === "RESOURCE_EXHAUSTED";
    if (this.#isOverlapRefused(end)) {
      this.#connect();
      return;
    }
    if (!this.#wasOpen || (finalStatuses.includes(end.status) && !isTooMany)) {
      onEnd(end);
      return;
    }
    if (this.#lostNs === null) {
      this.#lostNs = clock.monotonicNs();
      this.#interruptions++;
      this.#point.lose();
    }
    if (this.#dependencies.target.dialect !== "entries" && this.#point.slot !== null) {
      this.#fromSlot = this.#point.slot;
    }
    const delayMs = this.#backOff.next();
    onNote(`${endText(end)}; connecting again in ${(delayMs / 1000).toFixed(1)} s`);
    this.#timer = clock.after(delayMs, () => this.#connect());
  }

  /** After a loss, the server does not have the slot at which the session would continue. */
  #isOverlapRefused({ status, detail }: GrpcEnd): boolean {
    if (this.#interruptions === 0 || this.#fromSlot === null) return false;
    if (status !== "OUT_OF_RANGE" && status !== "INVALID_ARGUMENT") return false;
    const [, first = ""] = /last available: (\d{1,20})$/.exec(detail) ?? [];
    const next = first === "" ? null : BigInt(first);
    this.#dependencies.onNote(`cannot continue at slot ${this.#fromSlot}: ${detail}`);
    this.#fromSlot = next !== null && next > this.#fromSlot ? next : null;
    return true;
  }

  #openLossMs(): number {
    if (this.#lostNs === null) return 0;
    return Number(this.#dependencies.clock.monotonicNs() - this.#lostNs) / 1e6;
  }
}

/** How a call ended, in words. */
export function endText({ status, detail, isFromServer }: GrpcEnd): string {
  if (!isFromServer) return detail;
  if (status === "OK") return "the server ended the stream";
  return `the server ended the stream: ${status}: ${detail}`;
}
