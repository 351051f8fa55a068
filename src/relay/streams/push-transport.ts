// The sending end of a transaction push: stamps each datagram with the sequence, and counts losses.
//
// Created by transaction-pushes.ts. Every datagram takes one number of the sequence, and so does every
// message that this service dropped: a receiver finds all losses as missing numbers.

import type { EndReason } from "./end-reasons.ts";
import { endDatagram, missingIn, stamp } from "./push-datagrams.ts";
import type { PushTarget } from "./push-sender.ts";
import type { StreamTransport } from "./stream-transport.ts";

interface PushTransportOptions {
  readonly target: PushTarget;
  /** 8 unpredictable bytes. */
  readonly streamId: Uint8Array;
  /** Wall time. */
  readonly nowNs: () => bigint;
}

/** Counters of a push that its datagrams report. */
interface PushCounts {
  readonly skipped: number;
  readonly dropped: number;
  failed: number;
}

export class PushTransport implements StreamTransport {
  readonly streamId: Uint8Array;
  /** Nobody answers a datagram. */
  readonly silence = "";
  readonly refusal = "";
  /** Slot of the last message; 0: none. */
  slot = 0n;
  /** Sent ones, of every kind. */
  datagrams = 0;
  readonly #options: PushTransportOptions;
  #counts: PushCounts = { skipped: 0, dropped: 0, failed: 0 };
  #sequence = 0n;
  #onClose: () => void = () => {};
  #onHandedOver: (messages: number) => void = () => {};
  #waitingBytes = 0;
  #waitingMessages = 0;
  #isEnded = false;

  constructor(options: PushTransportOptions) {
    this.#options = options;
    this.streamId = options.streamId;
  }

  /** The next number of the sequence. */
  get sequence(): bigint {
    return this.#sequence;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Bytes of datagrams that the kernel could not take at once. */
  get waitingBytes(): number {
    return this.#waitingBytes;
  }

  get waitingMessages(): number {
    return this.#waitingMessages;
  }

  /** The datagrams report these counters from now on. */
  report(counts: PushCounts): void {
    this.#counts = counts;
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  /** Datagrams that the kernel refused are included. */
  onHandedOver(listener: (messages: number) => void): void {
    this.#onHandedOver = listener;
  }

  /** `datagram`: this object may change it. */
  send(datagram: Buffer): void {
    if (this.#isEnded) return;
    const { skipped, dropped, failed } = this.#counts;
    const sequence = this.#sequence + missingIn(datagram);
    this.#sequence = sequence + 1n;
    this.datagrams++;
    stamp(datagram, { streamId: this.streamId, sequence, skipped, dropped: dropped + failed });
    const { length } = datagram;
    let isWaiting = false;
    const isSent = this.#options.target.send(datagram, (error) => {
      if (error) this.#counts.failed++;
      if (!this.#isEnded) this.#onHandedOver(1);
      if (!isWaiting) return;
      this.#waitingBytes -= length;
      this.#waitingMessages--;
    });
    if (isSent) return;
    isWaiting = true;
    this.#waitingBytes += length;
    this.#waitingMessages++;
  }

  /** Every datagram is given to the kernel at once. */
  flush(): void {}

  /** A destination that is not verified any more gets no further datagram. */
  end(_status: unknown, detail: string, reason: EndReason): void {
    if (this.#isEnded) return;
    if (reason !== "destination_inactive") {
      this.send(endDatagram(this.slot, this.#options.nowNs(), detail));
    }
    this.#isEnded = true;
    this.#onClose();
  }
}
