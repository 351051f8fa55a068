// Readers of call results: the session, keys, and the gateway's account methods.
//
// Used by the views through api.ts. docs/gateway.md describes the shapes. Fields that no view
// shows are not read.

import type * as Response from "../../../client/responses.ts";
import type { AnyState, KeyView, NewKeyView, SessionView, UnusableKeyView } from "../types.ts";
import { tipPoint } from "./live-readers.ts";
import {
  anything,
  flag,
  list,
  maybe,
  number,
  object,
  oneOf,
  orNull,
  text,
} from "./shape-readers.ts";

export const session = object<SessionView>({
  account: text,
  key: object<SessionView["key"]>({
    id: text,
    hint: text,
    label: text,
    scopes: list(text),
    requestsPerSecond: number,
    burst: number,
  }),
  isOperator: flag,
  endsAt: text,
  feedRefusal: orNull(text),
});

const key = object<KeyView>({
  id: text,
  hint: text,
  label: text,
  scopes: list(text),
  allowedRanges: list(text),
  createdAt: text,
  expiresAt: orNull(text),
  revokedAt: orNull(text),
  lastUsedAt: orNull(text),
  requestsPerSecond: number,
  burst: number,
  state: oneOf("active", "expiring", "expired", "revoked"),
  isOwn: flag,
});

export const keys = list(key);
export const unusableKeys = list(object<UnusableKeyView>({ id: text }));
export const newKey = object<NewKeyView>({ key, text });

/** Entry of the tier history without its text, which other clients show. */
export type TierEvent = Omit<Response.TierEvent<number>, "text">;

export const tierEvents = list(
  object<TierEvent>({
    number,
    at: text,
    kind: text,
    from: orNull(text),
    to: orNull(text),
    sumLamports: number,
  }),
);

export type Registration = AnyState<Response.Registration<number>>;

export const registrations = list(
  object<Registration>({
    signature: text,
    state: text,
    reason: orNull(text),
    slot: number,
    lamports: number,
    countedLamports: orNull(number),
    registeredAt: text,
    settledAt: orNull(text),
    proof: orNull(text),
    registeredMs: number,
  }),
);

type ShownEvent = Omit<Response.StatusEvent<number>, "err" | "sibling" | "offsetMs" | "ingress">;

/** An event with every field; null for fields that its kind does not have. */
export type StatusEvent = {
  readonly [Name in keyof ShownEvent]-?: undefined extends Response.StatusEvent<number>[Name]
    ? ShownEvent[Name] | null
    : ShownEvent[Name];
} & { readonly offsetMs: number };

export interface TransactionStatus
  extends AnyState<Omit<Response.TransactionStatus<number>, "events">> {
  readonly events: readonly StatusEvent[];
}

/** Null for another account's transaction, or if its history has expired. */
export const transactionStatus = orNull(
  object<TransactionStatus>({
    signature: text,
    state: text,
    method: text,
    bundleId: orNull(text),
    receivedAt: text,
    slot: orNull(number),
    reason: orNull(text),
    err: anything,
    events: list(
      object<StatusEvent>({
        kind: text,
        at: text,
        offsetMs: number,
        method: maybe(text),
        tipLamports: maybe(number),
        priorityFeeLamports: maybe(number),
        route: maybe(text),
        attempt: maybe(number),
        bytes: maybe(number),
        slot: maybe(number),
        leader: maybe(text),
        reason: maybe(text),
      }),
    ),
  }),
);

export const registeredKeys = object<{
  account: string;
  publicKeys: readonly AnyState<Response.RegisteredKey>[];
}>({
  account: text,
  publicKeys: list(
    object<AnyState<Response.RegisteredKey>>({
      publicKey: text,
      purpose: oneOf("tpu", "shredstream"),
      apiKey: text,
      state: text,
      registeredAt: text,
    }),
  ),
});

export const tipHistory = list(tipPoint);

/** Reader for calls whose result is not used. */
export const done = anything;
