// Limits messages and bytes per second of a WebSocket peer with two token buckets.
//
// web-socket-peers.ts has one for every socket. Pure: callers pass the time.

export interface MessageLimits {
  /** Messages, pings and pongs together. */
  readonly messagesPerSecond: number;
  /** Burst size in messages. */
  readonly messagesBurst: number;
  /** Payload of all frames. The burst size is at least two messages of the largest size. */
  readonly bytesPerSecond: number;
}

/**
 * "taken": the message may be handled. "exceeded": the peer is closed with a reason. "flood": the
 * peer has since sent as much again; its connection is cut.
 */
type MessageVerdict = "taken" | "exceeded" | "flood";

/** Bytes that a frame costs in addition to its payload, for its header and the call. */
const frameBytes = 64;

export class MessageAllowance {
  readonly #limits: MessageLimits;
  readonly #bytesBurst: number;
  #messages: number;
  #bytes: number;
  #countedNs: bigint;
  #hasExceeded = false;

  /** `messageBytesMax`: size limit of one message of the path. */
  constructor(limits: MessageLimits, messageBytesMax: number, nowNs: bigint) {
    const { messagesBurst, bytesPerSecond } = limits;
    this.#limits = limits;
    this.#bytesBurst = Math.max(bytesPerSecond, 2 * (messageBytesMax + frameBytes));
    this.#messages = messagesBurst;
    this.#bytes = this.#bytesBurst;
    this.#countedNs = nowNs;
  }

  /** Counts one frame with a payload of `bytes` at `nowNs` (monotonic). */
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
