// What a kind of subscription is.
//
// Implemented by the files beside this one, opened by session.ts. A kind reads parameters and turns
// what the hub tells into results; it knows neither sockets nor the numbers of subscriptions.

import type { Commitment } from "../../chain/types.ts";
import type { MethodContext } from "../method.ts";
import type { Params } from "../params.ts";
import type { FeedItem, Watch } from "./hub.ts";

interface Sink {
  notify(result: unknown): void;
  /** No more notifications; the subscription is gone. */
  end(): void;
}

export interface SubscriptionKind {
  readonly paramsMax: number;
  /**
   * Throws ShredwayError for parameters that do not fit. The watch begins when the caller was told
   * the number of its subscription.
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

/** A result with the slot that it belongs to. */
export function atSlot(slot: bigint, value: unknown): object {
  return { context: { slot }, value };
}
