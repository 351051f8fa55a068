// Readers of what calls answer: the session, keys, and the gateway's methods of an account.
//
// Used by the views through api.ts. Shapes as docs/gateway.md tells them; what a view does not show is
// not read.

import type { KeyView, NewKeyView, SessionView } from "../types.ts";
import {
  anything,
  flag,
  list,
  number,
  object,
  oneOf,
  optional,
  orNull,
  type Reader,
  text,
} from "./shape.ts";

export const session = object<SessionView>({
  account: text,
  key: object<SessionView["key"]>({ id: text, hint: text, label: text, scopes: list(text) }),
  isOperator: flag,
  endsAt: text,
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
  state: oneOf("active", "expiring", "expired", "revoked"),
  isOwn: flag,
});

export const keys = list(key);
export const newKey = object<NewKeyView>({ key, text });

export interface TierEvent {
  readonly number: number;
  readonly at: string;
  readonly kind: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly sumLamports: number;
}

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

export interface Registration {
  readonly signature: string;
  readonly state: string;
  readonly reason: string | null;
  readonly slot: number;
  readonly lamports: number;
  readonly countedLamports: number | null;
  readonly registeredAt: string;
  readonly settledAt: string | null;
  readonly registeredMs: number;
}

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
    registeredMs: number,
  }),
);

export interface StatusEvent {
  readonly kind: string;
  readonly at: string;
  readonly offsetMs: number;
  readonly method: string | null;
  readonly route: string | null;
  readonly attempt: number | null;
  readonly bytes: number | null;
  readonly slot: number | null;
  readonly leader: string | null;
  readonly reason: string | null;
}

function maybe<T>(reader: Reader<T>): Reader<T | null> {
  return optional(orNull(reader), null);
}

export interface TransactionStatus {
  readonly signature: string;
  readonly state: string;
  readonly method: string;
  readonly bundleId: string | null;
  readonly receivedAt: string;
  readonly slot: number | null;
  readonly reason: string | null;
  readonly err: unknown;
  readonly events: readonly StatusEvent[];
}

/** Null: not one of this account's, or older than what is kept. */
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

/** What the page reads of an answer that it only has to succeed. */
export const done = anything;
