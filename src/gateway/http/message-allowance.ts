// How much a WebSocket peer may send: messages and bytes per second, as two token buckets.
//
// Kept by web-socket-peers.ts for every socket of every path. Pure: time is handed in.

export interface MessageLimits {
  /** Messages, pings and pongs together. */
  readonly messagesPerSecond: number;
  /** Messages that a peer may send at once after a pause. */
  readonly messagesBurst: number;
  /** Payload of all frames. At least two messages of the largest size may come at once. */
  readonly bytesPerSecond: number;
}

/**
 * "taken": the message may be handled. "exceeded": it may not, and the peer is told why when it is
 * closed. "flood": the peer has sent as much again since, so it is cut without a further word.
 */
type MessageVerdict = "taken" | "exceeded" | "flood";

/** The part of a bucket that a frame costs besides its payload: its header and the call it causes. */
const frameBytes = 64;

export class MessageAllowance {
  readonly #limits: MessageLimits;
  readonly #bytesBurst: number;
  #messages: number;
  #bytes: number;
  #countedNs: bigint;
  #hasExceeded = false;

  /** `messageBytesMax`: of the largest message that the path takes. */
  constructor(limits: MessageLimits, messageBytesMax: number, nowNs: bigint) {
    const { messagesBurst, bytesPerSecond } = limits;
    this.#limits = limits;
    this.#bytesBurst = Math.max(bytesPerSecond, 2 * (messageBytesMax + frameBytes));
    this.#messages = messagesBurst;
    this.#bytes = this.#bytesBurst;
    this.#countedNs = nowNs;
  }

  /** One frame with a payload of `bytes`, at `nowNs` (monotonic). */
  take(bytes: number, nowNs: bigint): MessageVerdict {
    if (!this.#hasExceeded) this.#refill(nowNs);
    this.#messages -= 1;
    this.#bytes -= bytes + frameBytes;
    if (this.#messages < -this.#limits.messagesBurst || this.#bytes < -this.#bytesBurst) {
      return "flood";
    }
    if (this.#messages < 0 || this.#bytes < 0) this.#hasExceeded = true;
    return this.#hasExceeded ? "exceeded" : "taken";
  }

  #refill(nowNs: bigint): void {
    const seconds = Number(nowNs - this.#countedNs) / 1e9;
    const { messagesPerSecond, messagesBurst, bytesPerSecond } = this.#limits;
    this.#messages = Math.min(messagesBurst, this.#messages + seconds * messagesPerSecond);
    this.#bytes = Math.min(this.#bytesBurst, this.#bytes + seconds * bytesPerSecond);
    this.#countedNs = nowNs;
  }
}
