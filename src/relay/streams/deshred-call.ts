// SubscribeDeshred: one call of Yellowstone's dialect.
//
// The client sends its filters, may replace them at any time, and receives each matching transaction once
// with the names of the filters. Created by stream-service.ts.

import { frameMessage } from "../../core/grpc/status.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import { type FilteredCallOptions, FilterRequests } from "./filter-requests.ts";
import {
  type DeshredRequest,
  decodeDeshredRequest,
  encodeDeshredTransaction,
  encodeFilterNames,
  encodeSlotUpdate,
  encodeUpdateParent,
  pingUpdate,
} from "./geyser-messages.ts";
import type { Attachment, StreamCall } from "./stream-hub.ts";

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

interface DeshredCallOptions extends FilteredCallOptions {
  readonly encoder: SharedEncoder;
}

export class DeshredCall implements StreamCall {
  readonly tier: string;
  readonly wantsEntries = false;
  readonly #options: DeshredCallOptions;
  readonly #attachment: Attachment;
  readonly #requests: FilterRequests<DeshredRequest>;

  constructor(options: DeshredCallOptions) {
    this.#options = options;
    this.tier = options.subscription.tier;
    this.#attachment = options.hub.attach(this);
    this.#requests = new FilterRequests({
      ...options,
      attachment: this.#attachment,
      initial: { filters: [], slots: [], ping: undefined },
      decode: decodeDeshredRequest,
    });
  }

  onTransaction(message: StreamMessage, filters: readonly string[]): void {
    this.#send(message, filters);
  }

  onEntries(): void {}

  onEvent(message: StreamMessage): void {
    const { filters, slots } = this.#requests.present;
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

  ping(): void {
    this.#requests.sendNow(pingUpdate);
  }

  close(): void {
    this.#attachment.detach();
  }

  #send(message: StreamMessage, names: readonly string[]): void {
    const rest = this.#options.encoder.encode(message);
    const framed = frameMessage(Buffer.concat([encodeFilterNames(names), rest]));
    this.#options.subscription.send(framed, message.arrivalNs, message.slot);
  }
}
