// Schemas of timelines; status-json.ts writes them.
//
// Used by methods/statuses.ts and description/*. Each kind of event has one schema.

import type {
  RateLimitNotice,
  StatusEvent,
  StatusUpdate,
  TransactionStatus,
  WrittenInteger,
} from "../../client/responses.ts";
import { endStates, ingresses, type SubmitMethod, withdrawalReasons } from "../submission/types.ts";
import {
  bundleId,
  closed,
  closedOver,
  described,
  enumOf,
  type FieldSchemas,
  lamports,
  listOf,
  number,
  orNull,
  publicKey,
  type SchemaOf,
  schemaOf,
  signatureText,
  slot,
  string,
  time,
  wholeNumber,
  word,
} from "./json-schema.ts";

/** A record, so that a missing method does not compile. */
const submitMethods: Readonly<Record<SubmitMethod, true>> = {
  sendTransaction: true,
  sendBundle: true,
  sendBatch: true,
  sendIdeal: true,
  sendAlt: true,
};
const submitMethod = enumOf(Object.keys(submitMethods));

/** The limit of addEvent in the submission pipeline, which then keeps the first and last events. */
const eventsMax = 64;

const route = described("name of the route in the configuration", string);
const attempt = wholeNumber(1, Number.MAX_SAFE_INTEGER);
const bytes = wholeNumber(0, Number.MAX_SAFE_INTEGER);
/** JSON as the node returned it. */
const nodeError = schemaOf<unknown>({
  description: "error of the transaction, as nodes return it; null: no error",
});

type Event = StatusEvent<WrittenInteger>;
type EventFields = Partial<FieldSchemas<Event>> & Pick<FieldSchemas<Event>, "kind">;

/** Fields of each event by schema title. */
const eventFields = {
  Received: {
    kind: word("received"),
    method: submitMethod,
    tipLamports: described("lamports that the transaction transfers to tip addresses", lamports),
    priorityFeeLamports: described(
      "compute unit price x limit, rounded up to lamports; v1: the fee of its configuration",
      lamports,
    ),
    ingress: described(
      "present if it arrived over QUIC, or in a binary message of a WebSocket",
      enumOf(ingresses),
    ),
  },
  Held: { kind: word("held"), reason: string },
  Queued: { kind: word("queued"), route, attempt },
  Sent: {
    kind: word("sent"),
    route,
    attempt,
    bytes,
    slot: orNull(slot),
    leader: orNull(publicKey),
  },
  Acknowledged: { kind: word("acknowledged"), route, attempt },
  Lost: { kind: enumOf(["refused", "failed", "dropped"]), route, attempt, reason: string },
  AuctionLost: { kind: word("auction_lost"), slot: orNull(slot), leader: publicKey },
  Seen: { kind: word("seen"), slot },
  Withdrawn: { kind: word("withdrawn"), slot, reason: enumOf(withdrawalReasons) },
  Ended: {
    kind: enumOf(endStates),
    reason: string,
    slot: orNull(slot),
    err: nodeError,
    sibling: described("signature of the transaction that superseded it", signatureText),
  },
} as const satisfies Record<string, EventFields>;

/**
 * Present only if there is a sibling, an error that JSON can represent, or another ingress than HTTP. Amounts
 * are absent in records of earlier versions.
 */
const optionalFields: ReadonlySet<PropertyKey> = new Set<keyof Event>([
  "sibling",
  "err",
  "ingress",
  "tipLamports",
  "priorityFeeLamports",
]);

function eventSchema(when: Pick<EventFields, "at" | "offsetMs">): SchemaOf<Event> {
  const kinds = Object.entries<EventFields>(eventFields).map(([title, { kind, ...fields }]) =>
    closedOver(title, { kind, ...when, ...fields }, optionalFields),
  );
  return schemaOf({ title: "TimelineEvent", oneOf: kinds });
}

export const statusSchema = closed<TransactionStatus<WrittenInteger>>("TransactionStatus", {
  signature: signatureText,
  state: enumOf(["open", ...endStates]),
  method: submitMethod,
  bundleId: orNull(bundleId),
  receivedAt: time,
  slot: orNull(described("slot where it landed or was last observed", slot)),
  reason: orNull(described("reason of the end; null while the state is open", string)),
  err: nodeError,
  events: listOf(
    eventSchema({ at: time, offsetMs: described("milliseconds since the receipt", number) }),
    { maxItems: eventsMax },
  ),
});

/** Messages that the /status WebSocket pushes. */
export const pushedEventSchema = closed<StatusUpdate<WrittenInteger>>("PushedEvent", {
  signature: signatureText,
  event: eventSchema({ at: time }),
});

export const rateLimitSchema = closed<RateLimitNotice>("RateLimitNotice", {
  rateLimited: closed("RateLimit", {
    at: time,
    ingress: enumOf(ingresses),
    protocol: described("ALPN protocol of the connection; over WebSocket: websocket", string),
    address: described("address of the client", string),
    apiKey: described("public name of the API key", string),
    submissions: described(
      "rejected submissions since the last message",
      wholeNumber(1, Number.MAX_SAFE_INTEGER),
    ),
    message: described("the last response", string),
  }),
});
