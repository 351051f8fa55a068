// One call of a gRPC dialect that sends transactions and nothing else (transaction-dialects.ts).
//
// The client may replace its filters at any time. These dialects have no message that withdraws a
// transaction. A transaction that an update-parent marker moves within its slot is sent once if the marker
// is decoded last. Created by stream-service.ts.

import { frameMessage } from "../../core/grpc/status.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import { type FilteredCallOptions, FilterRequests } from "./filter-requests.ts";
import { encodeFilterNames, pingUpdate } from "./geyser-messages.ts";
import { SlotSignatures } from "./slot-signatures.ts";
import type { Attachment, StreamCall } from "./stream-hub.ts";
import type { TransactionDialect, TransactionRequest } from "./transaction-dialects.ts";
import { readWireTransaction } from "./wire-transaction.ts";

/** Encodes a message for the first subscriber that needs it; the others share the bytes. */
export class SharedTransactions {
  readonly dialect: TransactionDialect;
  #message: StreamMessage | undefined;
  #bytes: Buffer = Buffer.alloc(0);
  #signature = "";

  constructor(dialect: TransactionDialect) {
    this.dialect = dialect;
  }

  encode(message: StreamMessage): Buffer {
    this.#read(message);
    return this.#bytes;
  }

  /** A text that is equal for equal signatures. */
  signature(message: StreamMessage): string {
    this.#read(message);
    return this.#signature;
  }

  #read(message: StreamMessage): void {
    if (this.#message === message) return;
    this.#message = message;
    const transaction = readWireTransaction(message.content);
    this.#bytes = this.dialect.encode(message, transaction);
    const [signature = new Uint8Array()] = transaction.signatures;
    this.#signature = Buffer.from(signature).toString("latin1");
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
    this.#attachment = options.hub.attach(this);
    this.#requests = new FilterRequests({
      ...options,
      attachment: this.#attachment,
      initial: { filters: [], ping: undefined },
      decode: (bytes) => options.encoder.dialect.decode(bytes),
    });
  }

  onTransaction(message: StreamMessage, filters: readonly string[]): void {
    const { encoder, subscription } = this.#options;
    const { slot, batchIndex, arrivalNs } = message;
    if (!this.#sent.add(slot, encoder.signature(message), batchIndex)) return;
    const names = encodeFilterNames(filters);
    const framed = frameMessage(Buffer.concat([names, encoder.encode(message)]));
    subscription.send(framed, arrivalNs, slot);
  }

  onEntries(): void {}

  onEvent({ kind, slot, batchIndex }: StreamMessage): void {
    if (kind === "slot_complete") this.#sent.complete(slot);
    if (kind === "restart") this.#sent.withdraw(slot, batchIndex);
  }

  onLoss(count: bigint): void {
    this.#options.subscription.lost(count);
  }

  flush(): void {
    this.#options.subscription.flush();
  }

  ping(): void {
    if (this.#options.encoder.dialect.hasPings) this.#requests.sendNow(pingUpdate);
  }

  close(): void {
    this.#attachment.detach();
  }
}
