// SubscribeEntries of Jito's service ShredstreamProxy: one call.
//
// The client receives every batch of entries with its slot, byte for byte as the leader wrote it. Created by
// stream-service.ts.

import type { GrpcStream } from "../../core/grpc/grpc-stream.ts";
import { MessageReader } from "../../core/grpc/protobuf.ts";
import type { RequestPace } from "../../core/grpc/request-reader.ts";
import { ReverseWriter } from "../../core/grpc/reverse-writer.ts";
import { frameMessage } from "../../core/grpc/status.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import type { Attachment, StreamCall, StreamHub } from "./stream-hub.ts";
import type { Subscription } from "./subscription.ts";

export const entriesPath = "/shredstream.ShredstreamProxy/SubscribeEntries";

/** More than the longest batch (native/deshred/deshredder.h). */
const scratch = new ReverseWriter((1 << 20) + 64);

/** A framed Entry; subscribers share the bytes. */
export class SharedEntries {
  #message: StreamMessage | undefined;
  #framed: Buffer = Buffer.alloc(0);

  encode(message: StreamMessage): Buffer {
    if (this.#message === message) return this.#framed;
    this.#message = message;
    scratch.reset();
    scratch.bytes(2, message.content);
    scratch.uint(1, Number(message.slot));
    this.#framed = frameMessage(scratch.finish());
    return this.#framed;
  }
}

interface EntriesCallOptions {
  readonly call: GrpcStream;
  readonly subscription: Subscription;
  readonly hub: StreamHub;
  readonly encoder: SharedEntries;
  readonly pace: RequestPace;
}

export class EntriesCall implements StreamCall {
  readonly tier: string;
  readonly wantsEntries = true;
  readonly #options: EntriesCallOptions;
  readonly #attachment: Attachment;

  constructor(options: EntriesCallOptions) {
    const { call, subscription, hub, pace } = options;
    this.#options = options;
    this.tier = subscription.tier;
    this.#attachment = hub.attach(this);
    // The request has no fields, and the client sends nothing after it.
    call.accept(
      (message) => void new MessageReader(message),
      () => {},
      { pace },
    );
  }

  onTransaction(): void {}

  onEntries(message: StreamMessage): void {
    this.#options.subscription.send(
      this.#options.encoder.encode(message),
      message.arrivalNs,
      message.slot,
    );
  }

  onEvent(): void {}

  onLoss(count: bigint): void {
    this.#options.subscription.lost(count);
  }

  flush(): boolean {
    return this.#options.subscription.flush();
  }

  /** The dialect has no pings; HTTP/2 pings keep the connection alive. */
  ping(): void {}

  close(): void {
    this.#attachment.detach();
  }
}
