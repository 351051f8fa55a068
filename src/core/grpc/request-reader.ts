// Reads the requests of a call with streams, at a bounded rate.
//
// Owned by grpc-stream.ts. Requests that exceed the rate are not refused: nothing more of the call is read until
// they may be handled. Then HTTP/2's flow control stops the client, and its other calls go on.

import type { ServerHttp2Stream } from "node:http2";
import type { RateBudget } from "../rate-budget.ts";
import type { Decompress } from "./compression.ts";
import { FrameReader } from "./frame-reader.ts";
import { GrpcError } from "./status.ts";

/** The rate of a call. */
export interface RequestPace {
  /** A request spends something of each. */
  readonly budgets: readonly {
    readonly budget: RateBudget;
    readonly costOf: (requestBytes: number) => number;
  }[];
  /** A request has to wait. */
  readonly onWait: () => void;
}

interface RequestReaderOptions {
  readonly stream: ServerHttp2Stream;
  readonly requestBytesMax: number;
  readonly decompress: Decompress;
  /** Absent: every request is handled at once. */
  readonly pace?: RequestPace | undefined;
  readonly onMessage: (message: Uint8Array) => void;
  /** The client sends no more. */
  readonly onEnd: () => void;
  /** Runs a function whose exception ends the call. */
  readonly guard: (act: () => void) => void;
}

interface Received {
  readonly bytes: Uint8Array;
  readonly isCompressed: boolean;
}

export class RequestReader {
  readonly #options: RequestReaderOptions;
  readonly #frames: FrameReader;
  /** Requests of the chunk that was read last. */
  #rest: Iterator<Uint8Array> | null = null;
  /** The request that waits for its turn. */
  #next: Received | null = null;
  #cancelTurn: (() => void) | null = null;
  #isHeld = false;
  /** The client sends no more; requests may still wait. */
  #hasEnded = false;
  #isClosed = false;

  constructor(options: RequestReaderOptions) {
    const { stream, requestBytesMax } = options;
    this.#options = options;
    this.#frames = new FrameReader(requestBytesMax, true);
    stream.on("data", (chunk: Buffer) => {
      if (this.#isClosed) return;
      this.#rest = this.#frames.add(chunk);
      this.#proceed(0);
    });
    stream.on("end", () => {
      this.#hasEnded = true;
      this.#reportEnd();
    });
  }

  /** No further request is handled until `release`. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#proceed(0);
  }

  /** No further request is handled. What the client still sends is read, so that the call can end. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelTurn?.();
    this.#rest = null;
    this.#next = null;
    this.#options.stream.resume();
  }

  /**
   * Handles requests until none is left, or one has to wait. `from`: the first budget that the waiting one has
   * had no turn of.
   */
  #proceed(from: number): void {
    const { stream, guard } = this.#options;
    guard(() => this.#handleNext(from));
    if (this.#isClosed) return;
    if (this.#rest !== null) stream.pause();
    else stream.resume();
    this.#reportEnd();
  }

  #reportEnd(): void {
    const { guard, onEnd } = this.#options;
    if (!this.#hasEnded || this.#isClosed || this.#rest !== null) return;
    this.#hasEnded = false;
    guard(() => {
      const bytes = this.#frames.incompleteBytes;
      if (bytes === 0) onEnd();
      else
        throw new GrpcError(
          "INTERNAL",
          `expected whole messages, got ${bytes} bytes of the last one`,
        );
    });
  }

  #handleNext(from: number): void {
    const { pace, onMessage } = this.#options;
    const budgets = pace?.budgets ?? [];
    for (let first = from; !this.#isClosed && this.#cancelTurn === null; first = 0) {
      if (this.#isHeld) return;
      this.#next ??= this.#read();
      const request = this.#next;
      if (request === null) return;
      const closed = budgets.findIndex(({ budget }, i) => i >= first && !budget.isOpen);
      if (closed >= 0) {
        if (first === 0) pace?.onWait();
        this.#await(closed);
        return;
      }
      this.#next = null;
      const spend = (bytes: number): void => {
        for (const { budget, costOf } of budgets) budget.spend(costOf(bytes));
      };
      onMessage(this.#contentOf(request, spend));
    }
  }

  /** Spends the longer one of what was received and its content, or the longest content if it is invalid. */
  #contentOf({ bytes, isCompressed }: Received, spend: (bytes: number) => void): Uint8Array {
    const { decompress, requestBytesMax } = this.#options;
    if (!isCompressed) {
      spend(bytes.length);
      return bytes;
    }
    try {
      const content = decompress(bytes, requestBytesMax);
      spend(Math.max(bytes.length, content.length));
      return content;
    } catch (error) {
      const isUnknown = error instanceof GrpcError && error.status === "UNIMPLEMENTED";
      spend(isUnknown ? bytes.length : requestBytesMax);
      throw error;
    }
  }

  #read(): Received | null {
    const next = this.#rest?.next();
    if (next?.done === false) {
      return { bytes: next.value, isCompressed: this.#frames.isCompressed };
    }
    this.#rest = null;
    return null;
  }

  #await(index: number): void {
    const cancel = this.#options.pace?.budgets[index]?.budget.wait(() => {
      this.#cancelTurn = null;
      this.#proceed(index + 1);
    });
    this.#cancelTurn = cancel ?? null;
  }
}
