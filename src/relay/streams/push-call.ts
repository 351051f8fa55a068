// One transaction push as a subscriber of the hub: what it sends, within its share of the datagrams.
//
// Created by transaction-pushes.ts. Transactions that do not fit a datagram are counted and left out.

import type { Clock } from "../../core/clock.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import type { NamedFilter } from "./named-filter.ts";
import { heartbeatDatagram, pushPayloadBytesMax, type SharedDatagrams } from "./push-datagrams.ts";
import type { PushTransport } from "./push-transport.ts";
import type { Attachment, StreamCall, StreamHub } from "./stream-hub.ts";
import type { Subscription } from "./subscription.ts";

interface PushCallOptions {
  readonly subscription: Subscription;
  readonly transport: PushTransport;
  readonly hub: StreamHub;
  readonly encoder: SharedDatagrams;
  readonly filter: NamedFilter;
  /** Datagrams a second that this push may send now. */
  readonly rate: () => number;
  /** Wall time at which the lease ends. */
  readonly endsNs: () => bigint;
  readonly clock: Clock;
  readonly onClose: () => void;
}

export class PushCall implements StreamCall {
  readonly tier: string;
  readonly wantsEntries = false;
  readonly #options: PushCallOptions;
  readonly #attachment: Attachment;
  /** Datagrams that it may send; a second's worth at most. */
  #allowance: number;
  #allowedNs: bigint;

  constructor(options: PushCallOptions) {
    const { subscription, hub, filter, rate, clock } = options;
    this.#options = options;
    this.tier = subscription.tier;
    this.#allowance = rate();
    this.#allowedNs = clock.monotonicNs();
    this.#attachment = hub.attach(this);
    this.#attachment.setFilters([filter]);
  }

  /** Replaces the filter without a gap. The caller has checked its limits. */
  replace(filter: NamedFilter): void {
    this.#attachment.setFilters([filter]);
  }

  onTransaction(message: StreamMessage): void {
    if (message.content.length > pushPayloadBytesMax) {
      this.#options.subscription.skipped++;
      return;
    }
    this.#send(message);
  }

  onEntries(): void {}

  onEvent(message: StreamMessage): void {
    if (message.kind === "restart") this.#send(message);
  }

  onLoss(count: bigint): void {
    this.#options.subscription.lost(count);
  }

  /** A push without an allowance reports its gap later. */
  flush(): boolean {
    return this.#counted(() => this.#options.subscription.flush(this.#refill() >= 1));
  }

  /** Heartbeats have their own timer. */
  ping(): void {}

  heartbeat(): void {
    const { subscription, transport, clock, endsNs } = this.#options;
    subscription.send(heartbeatDatagram(transport.slot, clock.nowNs(), endsNs()), null);
  }

  close(): void {
    this.#attachment.detach();
    this.#options.onClose();
  }

  #send(message: StreamMessage): void {
    const { subscription, transport, encoder } = this.#options;
    const { slot, arrivalNs } = message;
    if (this.#refill() < 1) {
      subscription.drop(1, slot);
      return;
    }
    transport.slot = slot;
    this.#counted(() => subscription.send(encoder.copyOf(message), arrivalNs, slot));
  }

  /** A report of a gap may precede the message. */
  #counted<T>(send: () => T): T {
    const { transport } = this.#options;
    const before = transport.datagrams;
    const result = send();
    this.#allowance -= transport.datagrams - before;
    return result;
  }

  #refill(): number {
    const { rate, clock } = this.#options;
    const nowNs = clock.monotonicNs();
    const perSecond = rate();
    const gained = (Number(nowNs - this.#allowedNs) / 1e9) * perSecond;
    this.#allowedNs = nowNs;
    this.#allowance = Math.min(perSecond, this.#allowance + gained);
    return this.#allowance;
  }
}
