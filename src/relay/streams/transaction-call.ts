// One call of a gRPC dialect that sends transactions and nothing else (transaction-dialects.ts).
//
// The client may replace its filters at any time. These dialects have no message that withdraws a
// transaction. A transaction that an update-parent marker moves within its slot is sent once if the marker
// is decoded last. Created by stream-service.ts.

import type { StreamMessage } from "../data-plane/relay-streams.ts";
import type { FilterName } from "./filter-names.ts";
import { type FilteredCallOptions, FilterRequests } from "./filter-requests.ts";
import { resumeOf } from "./resume.ts";
import { SharedMessages } from "./shared-messages.ts";
import { SlotSignatures } from "./slot-signatures.ts";
import type { Attachment, StreamCall } from "./stream-hub.ts";
import type { TransactionDialect, TransactionRequest } from "./transaction-dialects.ts";
import { readWireTransaction, type WireTransaction } from "./wire-transaction.ts";

/** Messages and signatures that the subscribers of one dialect share. */
export class SharedTransactions {
  readonly dialect: TransactionDialect;
  readonly #messages: SharedMessages;
  #message: StreamMessage | undefined;
  #transaction: WireTransaction | undefined;
  #signature = "";

  constructor(dialect: TransactionDialect) {
    this.dialect = dialect;
    this.#messages = new SharedMessages((message) => dialect.encode(message, this.#read(message)));
  }

  /** The framed update with these names. */
  framed(message: StreamMessage, names: readonly FilterName[]): Buffer {
    return this.#messages.framed(message, names);
  }

  /** A text that is equal for equal signatures. */
  signature(message: StreamMessage): string {
    this.#read(message);
    return this.#signature;
  }

  #read(message: StreamMessage): WireTransaction {
    if (this.#message === message && this.#transaction) return this.#transaction;
    this.#message = message;
    this.#transaction = readWireTransaction(message.content);
    const [signature = new Uint8Array()] = this.#transaction.signatures;
    this.#signature = Buffer.from(signature).toString("latin1");
    return this.#transaction;
  }
}

interface TransactionCallOptions extends FilteredCallOptions {
  readonly encoder: SharedTransactions;
}

export class TransactionCall implements StreamCall {
  readonly tier: string;
  readonly wantsEntries = false;
  readonly #options: TransactionCallOptions;
  readonly #attachment: Attachment;
  readonly #sent = new SlotSignatures();
  readonly #requests: FilterRequests<TransactionRequest>;

  constructor(options: TransactionCallOptions) {
    this.#options = options;
    this.tier = options.subscription.tier;
    const { subscription, fromSlot } = options;
    this.#attachment = options.hub.attach(this, resumeOf(subscription, fromSlot));
    subscription.onRead = () => this.#attachment.grant();
    this.#requests = new FilterRequests({
      ...options,
      attachment: this.#attachment,
      initial: { filters: [], ping: undefined },
      decode: (bytes) => options.encoder.dialect.decode(bytes),
    });
  }

  onTransaction(message: StreamMessage, names: readonly FilterName[]): void {
    const { encoder, subscription } = this.#options;
    const { slot, batchIndex, arrivalNs } = message;
    if (!this.#sent.add(slot, encoder.signature(message), batchIndex)) return;
    subscription.send(encoder.framed(message, names), arrivalNs, slot);
  }

  onEntries(): void {}

  onEvent({ kind, slot, batchIndex }: StreamMessage): void {
    if (kind === "slot_complete") this.#sent.complete(slot);
    if (kind === "restart") this.#sent.withdraw(slot, batchIndex);
  }

  onLoss(count: bigint): void {
    this.#options.subscription.lost(count);
  }

  flush(): boolean {
    return this.#options.subscription.flush();
  }

  ping(): void {
    if (this.#options.encoder.dialect.hasPings) this.#requests.ping();
  }

  close(): void {
    this.#attachment.detach();
  }
}
