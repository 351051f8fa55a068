// Interface of a kind of subscription.
//
// Implemented by the other files here, opened by session.ts. A kind parses parameters and converts
// the hub's events to results; it knows neither sockets nor subscription numbers.

import type { Commitment } from "../../chain/types.ts";
import type { MethodContext } from "../method.ts";
import type { Params } from "../params.ts";
import type { FeedItem, Watch } from "./hub.ts";

interface Sink {
  notify(result: unknown): void;
  /** Ends the subscription and its notifications. */
  end(): void;
}

export interface SubscriptionKind {
  readonly paramsMax: number;
  /**
   * Throws ShredwayError for invalid parameters. The watch begins after the response with the
   * subscription's number.
   */
  readonly open: (context: MethodContext, params: Params, sink: Sink) => Watch;
}

/** Whether `item` is a block that has just reached `commitment`. */
export function isBlockAt(
  item: FeedItem,
  commitment: Commitment,
): item is Extract<FeedItem, { kind: "block" }> {
  return item.kind === "block" && item.commitment === commitment;
}

/** A result with its context slot. */
export function atSlot(slot: bigint, value: unknown): object {
  return { context: { slot }, value };
}
