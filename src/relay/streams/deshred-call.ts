// SubscribeDeshred: one call of Yellowstone's dialect.
//
// The client sends its filters, may replace them at any time, and receives each matching transaction once
// with the names of the filters. Created by stream-service.ts.

import type { GrpcStream } from "../../core/grpc/grpc-stream.ts";
import { frameMessage } from "../../core/grpc/status.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import { checkFilters, type FilterLimits } from "./filter-limits.ts";
import {
  type DeshredRequest,
  decodeDeshredRequest,
  encodeDeshredTransaction,
  encodeFilterNames,
  encodeSlotUpdate,
  encodeUpdateParent,
  pingUpdate,
  pongUpdate,
} from "./geyser-messages.ts";
import type { Attachment, StreamHub, StreamSubscriber } from "./stream-hub.ts";
import type { Subscription } from "./subscription.ts";

/** Encodes a message for the first subscriber that needs it; the others share the bytes. */
export class SharedEncoder {
  #message: StreamMessage | undefined;
  #bytes: Buffer = Buffer.alloc(0);

  encode(message: StreamMessage): Buffer {
    if (this.#message !== message) {
      this.#bytes = encoderOf[message.kind](message);
      this.#message = message;
    }
    return this.#bytes;
  }
}

const encoderOf: Readonly<Record<StreamMessage["kind"], (message: StreamMessage) => Buffer>> = {
  transaction: encodeDeshredTransaction,
  slot_begin: encodeSlotUpdate,
  slot_complete: encodeSlotUpdate,
  restart: encodeUpdateParent,
  entries: ({ content }) => Buffer.from(content),
};

interface DeshredCallOptions {
  readonly call: GrpcStream;
  readonly subscription: Subscription;
  readonly hub: StreamHub;
  readonly encoder: SharedEncoder;
  readonly limits: FilterLimits;
}

export class DeshredCall implements StreamSubscriber {
  readonly tier: string;
  readonly wantsEntries = false;
  readonly #options: DeshredCallOptions;
  readonly #attachment: Attachment;
  #request: DeshredRequest = { filters: [], slots: [], ping: undefined };

  constructor(options: DeshredCallOptions) {
    const { call, subscription, hub } = options;
    this.#options = options;
    this.tier = subscription.tier;
    this.#attachment = hub.attach(this);
    // A client that sends no more requests still receives.
    call.accept(
      (message) => this.#onRequest(message),
      () => {},
    );
  }

  onTransaction(message: StreamMessage, filters: readonly string[]): void {
    this.#send(message, filters);
  }

  onEntries(): void {}

  onEvent(message: StreamMessage): void {
    const { filters, slots } = this.#request;
    const names =
      message.kind === "restart"
        ? filters.filter((filter) => filter.includesUpdateParent).map(({ name }) => name)
        : slots;
    if (names.length > 0) this.#send(message, names);
  }

  onLoss(count: bigint): void {
    this.#options.subscription.lost(count);
  }

  flush(): void {
    this.#options.subscription.flush();
  }

  /** Shows the client that the stream is alive. */
  ping(): void {
    this.#sendNow(pingUpdate);
  }

  close(): void {
    this.#attachment.detach();
  }

  #send(message: StreamMessage, names: readonly string[]): void {
    const rest = this.#options.encoder.encode(message);
    const framed = frameMessage(Buffer.concat([encodeFilterNames(names), rest]));
    this.#options.subscription.send(framed, message.arrivalNs, message.slot);
  }

  #sendNow(update: Uint8Array): void {
    const { subscription } = this.#options;
    subscription.send(frameMessage(update), null);
    subscription.flush();
  }

  #onRequest(bytes: Uint8Array): void {
    const { subscription } = this.#options;
    try {
      const request = decodeDeshredRequest(bytes);
      // A request with a ping changes no filter.
      if (request.ping !== undefined) {
        this.#sendNow(pongUpdate(request.ping));
        return;
      }
      const { hub, limits } = this.#options;
      const present = this.#request.filters;
      checkFilters(request.filters, { present, others: request.slots.length, hub, limits });
      this.#request = request;
      this.#attachment.setFilters(request.filters);
    } catch (error) {
      subscription.endsFor("refused");
      throw error;
    }
  }
}
