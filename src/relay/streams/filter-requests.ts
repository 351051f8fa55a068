// Requests of a gRPC call whose client sends named filters, and may replace them at any time.
//
// Owned by deshred-call.ts and transaction-call.ts, which send what matches. A request with a ping changes no
// filter and is answered at once.

import type { GrpcStream } from "../../core/grpc/grpc-stream.ts";
import type { RequestPace } from "../../core/grpc/request-reader.ts";
import { frameMessage } from "../../core/grpc/status.ts";
import { checkFilters, type FilterLimits } from "./filter-limits.ts";
import { pingUpdate, pongUpdate } from "./geyser-messages.ts";
import type { NamedFilter } from "./named-filter.ts";
import type { Attachment, StreamHub } from "./stream-hub.ts";
import type { Subscription } from "./subscription.ts";

interface FilterRequest {
  readonly filters: readonly NamedFilter[];
  /** Names of the filters of slots, if the dialect has some. */
  readonly slots?: readonly string[];
  /** The id of a ping; undefined: the request is not a ping. */
  readonly ping: number | undefined;
}

/** Options of every call with filters. */
export interface FilteredCallOptions {
  readonly call: GrpcStream;
  readonly subscription: Subscription;
  readonly hub: StreamHub;
  /** As they are now: a reload changes them. */
  readonly limits: () => FilterLimits;
  /** The rate of its requests. */
  readonly pace: RequestPace;
  /** The first slot of the history that the client wants; undefined: its stream begins live. */
  readonly fromSlot: bigint | undefined;
}

interface FilterRequestsOptions<Request> extends FilteredCallOptions {
  readonly attachment: Attachment;
  /** The request before the client's first one. */
  readonly initial: Request;
  /** Throws GrpcError, or ProtobufError for a malformed message. */
  readonly decode: (bytes: Uint8Array) => Request;
}

export class FilterRequests<Request extends FilterRequest> {
  readonly #options: FilterRequestsOptions<Request>;
  #present: Request;
  /** The newest request; its filters may not be in force yet. */
  #newest: Request;

  constructor(options: FilterRequestsOptions<Request>) {
    this.#options = options;
    this.#present = options.initial;
    this.#newest = options.initial;
    // A client that sends no more requests still receives.
    options.call.accept(
      (message) => this.#take(message),
      () => {},
      { pace: options.pace },
    );
  }

  /** The request that is in force for the message that is being passed on. */
  get present(): Request {
    return this.#present;
  }

  /** Sends a ping, unless messages wait for the client: they show as well that the stream is alive. */
  ping(): void {
    if (this.#options.subscription.waitingMessages === 0) this.#sendNow(pingUpdate);
  }

  /** Sends a message that does not wait for the end of a group. */
  #sendNow(update: Uint8Array): void {
    const { subscription } = this.#options;
    subscription.send(frameMessage(update), null);
    subscription.flush();
  }

  #take(bytes: Uint8Array): void {
    const { call, attachment, hub, limits, decode } = this.#options;
    const request = decode(bytes);
    const { filters, slots = [], ping } = request;
    if (ping !== undefined) {
      this.#sendNow(pongUpdate(ping));
      call.holdRequests();
      return;
    }
    const present = this.#newest.filters;
    checkFilters(filters, { present, others: slots.length, hub, limits: limits() });
    this.#newest = request;
    attachment.setFilters(filters, () => {
      this.#present = request;
    });
  }
}
