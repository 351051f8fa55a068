// Decoded streams on a WebSocket: the subscriptions of one connection.
//
// Created by stream-service.ts for a WebSocket of the gateway. The dialects are shredTransactionSubscribe
// (QuickNode) and shredSubscribe (SolanaTracker). Each subscription is a stream with its own limits and
// counters; all streams of the connection end together.

import { quote, ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import { checkFilters, type FilterLimits } from "./filter-limits.ts";
import { withJsonRpcErrors } from "./json-rpc-refusals.ts";
import { SlotSignatures } from "./slot-signatures.ts";
import { notificationOf, type SocketEncoder, updateParentOf } from "./socket-messages.ts";
import {
  type ReadSubscription,
  readNumber,
  readShred,
  readShredTransaction,
  type SocketSubscription,
} from "./socket-parameters.ts";
import { type ClientSocket, SocketConnection, type SocketTransport } from "./socket-transport.ts";
import type { Attachment, StreamCall, StreamHub } from "./stream-hub.ts";
import type { StreamTransport } from "./stream-transport.ts";
import type { Dialect, Subscription } from "./subscription.ts";

/** Numbers of a node's subscriptions on the same connection are below it. */
const firstNumber = 1_000_000_000;
const notifications = {
  shred_transaction: "shredTransactionNotification",
  shred: "shredNotification",
} as const;
const subscribing: ReadonlyMap<string, ReadSubscription> = new Map<string, ReadSubscription>([
  ["shredTransactionSubscribe", readShredTransaction],
  ["shredSubscribe", readShred],
]);
const unsubscribing: ReadonlyMap<string, Dialect> = new Map([
  ["shredTransactionUnsubscribe", "shred_transaction"],
  ["shredUnsubscribe", "shred"],
]);
export const socketStreamMethods: readonly string[] = [
  ...subscribing.keys(),
  ...unsubscribing.keys(),
];

/** The key of a WebSocket and the client's address. */
interface SocketCaller {
  readonly keyId: string;
  readonly peer: string;
}

/** stream-service.ts implements it. */
export interface SocketHost {
  readonly hub: StreamHub;
  readonly socketEncoder: SocketEncoder;
  filterLimits(): FilterLimits;
  /** Throws GrpcError. */
  openFor(
    caller: SocketCaller,
    stream: { readonly transport: StreamTransport; readonly dialect: Dialect },
    callOf: (subscription: Subscription) => StreamCall,
  ): void;
}

export class SocketStreams {
  readonly #host: SocketHost;
  readonly #caller: SocketCaller;
  readonly #connection: SocketConnection;
  readonly #open = new Map<number, { dialect: Dialect; transport: SocketTransport }>();
  #nextNumber = firstNumber;

  constructor(host: SocketHost, socket: ClientSocket, caller: SocketCaller) {
    this.#host = host;
    this.#caller = caller;
    this.#connection = new SocketConnection(socket);
  }

  /**
   * Runs a method of `socketStreamMethods`. `afterResponse` calls its argument when the response was
   * sent. Throws ShredwayError.
   */
  call(
    method: string,
    params: readonly Json[],
    afterResponse: (call: () => void) => void,
  ): number | boolean {
    return withJsonRpcErrors(method, () => {
      const place = { method, accountsMax: this.#host.filterLimits().accountsPerSubscription };
      const read = subscribing.get(method);
      if (read) return this.#subscribe(read(params, place), afterResponse);
      return this.#unsubscribe(method, params);
    });
  }

  /** Whether a subscription is open. The end of its key then closes the socket with the stream's reason. */
  get hasOpen(): boolean {
    return this.#open.size > 0;
  }

  /** Nothing waits in the socket any more. */
  drained(): void {
    this.#connection.flush();
  }

  /** The socket is closed. */
  closed(): void {
    this.#connection.closed();
  }

  #subscribe(wanted: SocketSubscription, afterResponse: (call: () => void) => void): number {
    const { hub, socketEncoder: encoder } = this.#host;
    const limits = this.#host.filterLimits();
    checkFilters([wanted.filter], { present: [], others: 0, hub, limits });
    const { dialect } = wanted;
    const number = this.#nextNumber;
    let opened: Subscription | undefined;
    const transport = this.#connection.newTransport((reason) => opened?.endsFor(reason));
    try {
      this.#host.openFor(this.#caller, { transport, dialect }, (subscription) => {
        opened = subscription;
        return new SocketCall({
          number,
          wanted,
          subscription,
          hub,
          encoder,
          onClose: () => this.#open.delete(number),
        });
      });
    } catch (error) {
      transport.close();
      throw error;
    }
    this.#nextNumber++;
    this.#open.set(number, { dialect, transport });
    afterResponse(() => transport.release());
    return number;
  }

  #unsubscribe(method: string, params: readonly Json[]): boolean {
    const number = readNumber(params, method);
    const open = this.#open.get(number);
    if (!open || open.dialect !== unsubscribing.get(method)) {
      throw new ShredwayError(
        "value_invalid",
        `${method}: expected the number of a subscription on this connection, got ${quote(number)}`,
      );
    }
    open.transport.close();
    return true;
  }
}

interface SocketCallOptions {
  readonly number: number;
  readonly wanted: SocketSubscription;
  readonly subscription: Subscription;
  readonly hub: StreamHub;
  readonly encoder: SocketEncoder;
  readonly onClose: () => void;
}

/** One subscription. */
class SocketCall implements StreamCall {
  readonly tier: string;
  readonly wantsEntries = false;
  readonly #options: SocketCallOptions;
  readonly #attachment: Attachment;
  readonly #sent = new SlotSignatures();

  constructor(options: SocketCallOptions) {
    const { subscription, hub, wanted } = options;
    this.#options = options;
    this.tier = subscription.tier;
    this.#attachment = hub.attach(this);
    this.#attachment.setFilters([wanted.filter]);
  }

  onTransaction(message: StreamMessage): void {
    const { wanted, encoder, number } = this.#options;
    const result = encoder.result(message, wanted);
    if (result === undefined) return;
    const { slot, batchIndex } = message;
    if (!this.#sent.add(slot, encoder.signature(message), batchIndex)) return;
    this.#send(message, notificationOf(notifications[wanted.dialect], number, result));
  }

  onEntries(): void {}

  onEvent(message: StreamMessage): void {
    const { slot, batchIndex, kind } = message;
    if (kind === "slot_complete") this.#sent.complete(slot);
    if (kind !== "restart") return;
    const withdrawn = this.#sent.withdraw(slot, batchIndex);
    this.#send(message, updateParentOf(message, this.#options.number, withdrawn));
  }

  onLoss(count: bigint): void {
    this.#options.subscription.lost(count);
  }

  flush(): boolean {
    return this.#options.subscription.flush();
  }

  /** The connection has pings of its own. */
  ping(): void {}

  close(): void {
    this.#attachment.detach();
    this.#options.onClose();
  }

  #send(message: StreamMessage, notification: Buffer): void {
    this.#options.subscription.send(notification, message.arrivalNs, message.slot);
  }
}
