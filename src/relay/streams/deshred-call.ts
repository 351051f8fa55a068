// SubscribeDeshred: one call of Yellowstone's dialect.
//
// The client sends its filters, may replace them at any time, and receives each matching transaction once
// with the names of the filters. Created by stream-service.ts.

import type { StreamMessage } from "../data-plane/relay-streams.ts";
import { type FilterName, filterNameOf } from "./filter-names.ts";
import { type FilteredCallOptions, FilterRequests } from "./filter-requests.ts";
import {
  type DeshredRequest,
  decodeDeshredRequest,
  encodeDeshredTransaction,
  encodeSlotUpdate,
  encodeUpdateParent,
} from "./geyser-messages.ts";
import { resumeOf } from "./resume.ts";
import type { SharedMessages } from "./shared-messages.ts";
import type { Attachment, StreamCall } from "./stream-hub.ts";

/** All fields of an update but the names of the filters. */
export function encodeDeshredUpdate(message: StreamMessage): Buffer {
  if (message.kind === "transaction") return encodeDeshredTransaction(message);
  return message.kind === "restart" ? encodeUpdateParent(message) : encodeSlotUpdate(message);
}

interface DeshredCallOptions extends FilteredCallOptions {
  readonly messages: SharedMessages;
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
    const { subscription, fromSlot } = options;
    this.#attachment = options.hub.attach(this, resumeOf(subscription, fromSlot));
    subscription.onRead = () => this.#attachment.grant();
    this.#requests = new FilterRequests({
      ...options,
      attachment: this.#attachment,
      initial: { filters: [], slots: [], ping: undefined },
      decode: decodeDeshredRequest,
    });
  }

  onTransaction(message: StreamMessage, names: readonly FilterName[]): void {
    this.#send(message, names);
  }

  onEntries(): void {}

  onEvent(message: StreamMessage): void {
    const { filters, slots } = this.#requests.present;
    const names =
      message.kind === "restart"
        ? filters.filter((filter) => filter.includesUpdateParent).map(({ name }) => name)
        : slots;
    if (names.length > 0) this.#send(message, names.map(filterNameOf));
  }

  onLoss(count: bigint): void {
    this.#options.subscription.lost(count);
  }

  flush(): boolean {
    return this.#options.subscription.flush();
  }

  ping(): void {
    this.#requests.ping();
  }

  close(): void {
    this.#attachment.detach();
  }

  #send(message: StreamMessage, names: readonly FilterName[]): void {
    const framed = this.#options.messages.framed(message, names);
    this.#options.subscription.send(framed, message.arrivalNs, message.slot);
  }
}
