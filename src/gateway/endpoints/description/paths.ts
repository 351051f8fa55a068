// The table of HTTP paths: parameters, bodies and responses.
//
// openapi.ts and the API document read it; gateway.ts serves the paths. Tests compare both and
// validate real responses against the schemas. URL parameters are the objects that also parse them.

import type {
  FilterSet,
  NextAltValidator,
  RegistrationReceipt,
  RejectedRegistration,
  TipFloorEntry,
  WrittenInteger,
} from "../../../client/responses.ts";
import { registrationReasons } from "../../../shreds/registrations/registration-types.ts";
import { transactionText } from "../../methods/submission-params.ts";
import {
  boolean,
  closed,
  described,
  enumOf,
  type FieldSchemas,
  type JsonSchema,
  lamports,
  listOf,
  number,
  orNull,
  publicKey,
  type Sample,
  type SchemaOf,
  schemaOf,
  signatureText,
  slot,
  string,
  time,
  wholeNumber,
  word,
} from "../../schema/json-schema.ts";
import { samples } from "../../schema/samples.ts";
import { pushedEventSchema, rateLimitSchema } from "../../schema/status-schema.ts";
import { batchBytesMax } from "../body-limits.ts";
import { rawMethods, rawParameters } from "../raw-endpoints.ts";
import { uriParameters } from "../request-context.ts";
import { entriesMax, shredPayParameters, shredPayPath } from "../shred-pay.ts";
import { keySetType, signingKeysPath } from "../signing-keys.ts";
import { signaturesMax } from "../status-feed.ts";
import { socketParameters } from "../submission-sockets.ts";
import { formatParameter, signedParameter } from "../tip-floor.ts";
import { nextPath, slotPath, validatorsPath } from "../tracker-handler.ts";
import { openApiPath, openRpcPath } from "./document-paths.ts";
import {
  type Answers,
  answer,
  jsonRpcRefusals,
  limitHeaders,
  plainRefusals,
} from "./http-answers.ts";
import { callAnswer, callBody, rawAnswer } from "./json-rpc-bodies.ts";
import { keySet, receiptHeaders, tipSignatureHeaders } from "./receipt-schemas.ts";
import { streamNotification } from "./stream-schemas.ts";

export interface Parameter {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
  readonly in: "query" | "path";
}

export interface Operation {
  readonly path: string;
  readonly method: "get" | "post";
  /** Unique; generated clients use it as a name. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly needsKey: boolean;
  readonly parameters: readonly Parameter[];
  readonly body?: { readonly type: string; readonly schema: JsonSchema; readonly example?: Sample };
  readonly answers: Answers;
  /** Messages of the path's WebSocket: `request` from the client, `message` from the service. */
  readonly webSocket?: { readonly request?: JsonSchema; readonly message: JsonSchema };
}

type Described = Pick<Parameter, "name" | "description" | "schema">;

function inQuery(...parameters: readonly Described[]): Parameter[] {
  return parameters.map(({ name, description, schema }) => ({
    name,
    description,
    schema,
    in: "query",
  }));
}

// ---- JSON-RPC -------------------------------------------------------------------------------

const callRefusals = jsonRpcRefusals(401, 413, 429, 503);

function callOperation(path: string, id: string, isBlockEngine: boolean): Operation {
  const { mevProtect, swqosOnly, revertProtection, bundleOnly, receipt } = uriParameters;
  const uuid = { name: "uuid", description: "an API key", schema: string };
  return {
    path,
    method: "post",
    id,
    summary: "JSON-RPC 2.0: a call, or an array of up to 25.",
    description: `The methods are those of \`${openRpcPath}\`. The Content-Type is ignored.`,
    needsKey: true,
    parameters: inQuery(
      mevProtect,
      swqosOnly,
      revertProtection,
      receipt,
      ...(isBlockEngine ? [bundleOnly, uuid] : []),
    ),
    body: {
      type: "application/json",
      schema: callBody,
      example: { jsonrpc: "2.0", id: 1, method: "getHealth" },
    },
    answers: {
      200: {
        ...answer("the response, including errors", callAnswer),
        headers: {
          ...limitHeaders,
          ...receiptHeaders,
          ...(isBlockEngine && {
            "X-Bundle-Id": {
              description: "id of the bundle, if the call sent one",
              schema: string,
            },
          }),
        },
      },
      ...callRefusals,
    },
  };
}

const rawParameterList = inQuery(
  {
    name: "method",
    description: "default: sendTransaction, or getHealth if the body is empty",
    schema: enumOf(rawMethods),
  },
  uriParameters.mevProtect,
  uriParameters.swqosOnly,
  uriParameters.revertProtection,
  uriParameters.receipt,
  ...Object.values(rawParameters),
);

function rawOperation(
  path: string,
  id: string,
  summary: string,
  body: Operation["body"],
): Operation {
  return {
    path,
    method: "post",
    id,
    summary,
    description: "Responses are JSON-RPC with the id 1. There is no preflight.",
    needsKey: true,
    parameters: rawParameterList,
    ...(body && { body }),
    answers: {
      200: {
        ...answer("the response, including errors", rawAnswer),
        headers: { ...limitHeaders, ...receiptHeaders },
      },
      ...callRefusals,
    },
  };
}

const calls: readonly Operation[] = [
  callOperation("/relay", "call", false),
  callOperation("/", "callAtRoot", false),
  callOperation("/api/v1/transactions", "callTransactions", true),
  callOperation("/api/v1/bundles", "callBundles", true),
  callOperation("/api/v1/getTipAccounts", "callGetTipAccounts", true),
  callOperation("/api/v1/getBundleStatuses", "callGetBundleStatuses", true),
  callOperation("/api/v1/getInflightBundleStatuses", "callGetInflightBundleStatuses", true),
  rawOperation("/relayb", "sendBytes", "Sends a transaction as bytes, or several as frames.", {
    type: "application/octet-stream",
    schema: {
      description: "a frame: its length as u16 big-endian, then that many bytes",
    },
  }),
  {
    path: "/relayb",
    method: "get",
    id: "submissionSocket",
    summary: "WebSocket: sends transactions as binary messages over one connection.",
    description:
      "Each binary message is a transaction, or a bundle as frames (its length as u16 big-endian, then that " +
      "many bytes). The parameters apply to every message. With `responses=true` each message gets a binary " +
      "response frame, in the order of the messages: version u8 = 1, flags u8 = 0, status u16 big-endian, length " +
      "of the body u16 big-endian, body in UTF-8 (docs/quic.md).",
    needsKey: true,
    parameters: inQuery(
      socketParameters.responses,
      uriParameters.mevProtect,
      uriParameters.swqosOnly,
      uriParameters.revertProtection,
      rawParameters.maxRetries,
      rawParameters.minContextSlot,
    ),
    answers: {
      101: { description: "the WebSocket is open" },
      ...jsonRpcRefusals(400, 401, 403, 426, 429, 503),
    },
    webSocket: {
      request: { type: "string", format: "binary" },
      message: described("a response frame", { type: "string", format: "binary" }),
    },
  },
  rawOperation(
    "/relay2",
    "sendText",
    "Sends a transaction in base64, or several separated by commas.",
    {
      type: "text/plain",
      schema: string,
      example: samples.transaction,
    },
  ),
];

// ---- tips -----------------------------------------------------------------------------------

type Snapshot = TipFloorEntry<WrittenInteger>;
type Average = "ema_landed_tips_50th_percentile";

function snapshotSchema(
  title: string,
  amount: SchemaOf<WrittenInteger>,
  averages: Pick<FieldSchemas<Snapshot>, Average> | null,
): JsonSchema {
  return closed<Omit<Snapshot, Average>>(
    title,
    {
      time: described("time of the refresh", time),
      landed_tips_25th_percentile: amount,
      landed_tips_50th_percentile: amount,
      landed_tips_75th_percentile: amount,
      landed_tips_95th_percentile: amount,
      landed_tips_99th_percentile: amount,
      ...averages,
      count: described(
        "number of landed tips in the snapshot",
        wholeNumber(0, Number.MAX_SAFE_INTEGER),
      ),
      window_start: time,
      stale: described(
        "true if no tip landed in the window; the values are those of an earlier snapshot",
        boolean,
      ),
      newest_slot: described("with signed=1: slot at the refresh; null: unknown", orNull(slot)),
    },
    ["newest_slot"],
  );
}

const sol = { ...number, minimum: 0, description: "SOL" };
const snapshot: JsonSchema = {
  title: "TipSnapshot",
  oneOf: [
    snapshotSchema("TipSnapshotInLamports", lamports, null),
    snapshotSchema("TipSnapshotInSol", sol, { ema_landed_tips_50th_percentile: sol }),
  ],
};

const tips: readonly Operation[] = [
  {
    path: "/tip_floor",
    method: "get",
    id: "tipFloor",
    summary: "Returns the percentiles of recent landed tips, as an array with one snapshot.",
    needsKey: false,
    parameters: inQuery(formatParameter, signedParameter),
    answers: {
      200: {
        ...answer("the snapshot", listOf(snapshot, { minItems: 1, maxItems: 1 })),
        headers: { ...limitHeaders, ...tipSignatureHeaders },
      },
      ...plainRefusals(400, 429, 503),
    },
  },
  {
    path: "/tip_stream",
    method: "get",
    id: "tipStream",
    summary: "WebSocket: pushes the current snapshot at once, and the new one after every refresh.",
    needsKey: false,
    parameters: inQuery(formatParameter),
    answers: {
      101: { description: "the WebSocket is open" },
      ...plainRefusals(400, 429, 503),
      ...jsonRpcRefusals(426),
    },
    webSocket: { message: snapshot },
  },
  {
    path: shredPayPath,
    method: "post",
    id: "registerTips",
    summary: "Registers tips for shreds.",
    description: `Each entry is checked by itself: an invalid entry is skipped, and \`verbose\` returns it with its reason. The body has at most ${batchBytesMax} bytes. Accepted entries are stored on disk. An entry whose transaction names the account (memo or reference key of getTier), or that has a proof, takes the tip over from a registration without a proof during 24 hours.`,
    needsKey: true,
    parameters: inQuery(...Object.values(shredPayParameters)),
    body: {
      type: "application/json",
      schema: listOf(
        {
          title: "RegistrationEntry",
          type: "object",
          required: ["transaction", "slot"],
          properties: {
            transaction: transactionText,
            slot: { anyOf: [slot, { type: "string", pattern: "^[0-9]{1,20}$" }] },
            proof: described(
              "the fee payer's signature over the text `shredway: register tip\\naccount: ACCOUNT\\ntransaction: SIGNATURE\\n` (64 bytes in base58 or base64); ACCOUNT: tipProof.account of getTier",
              string,
            ),
          },
        },
        { minItems: 1, maxItems: entriesMax },
      ),
      example: [{ transaction: samples.transaction, slot: samples.slot }],
    },
    answers: {
      200: {
        ...answer(
          "accepted signatures, in order",
          closed<Pick<RegistrationReceipt, "accepted"> & Partial<RegistrationReceipt>>(
            "Registered",
            {
              accepted: listOf(signatureText, { maxItems: entriesMax }),
              rejected: listOf(
                closed<RejectedRegistration>("RejectedEntry", {
                  index: wholeNumber(0, entriesMax - 1),
                  reason: enumOf(registrationReasons),
                  message: string,
                }),
              ),
            },
            ["rejected"],
          ),
        ),
        headers: limitHeaders,
      },
      ...plainRefusals(400, 401, 403, 404, 413, 429, 503),
    },
  },
];

// ---- partners, statuses, the service itself -------------------------------------------------

const nextPartner = closed<NextAltValidator<WrittenInteger>>("NextPartner", {
  pubkey: publicKey,
  leader_slot: described("first slot at or after the requested one that the partner leads", slot),
  context_slot: described("current slot; 0: unknown", slot),
});

const partners: readonly Operation[] = [
  {
    path: validatorsPath,
    method: "get",
    id: "alternativePartners",
    summary: "Returns the alternative partners that lead in this epoch.",
    needsKey: false,
    parameters: [],
    answers: {
      200: answer("identities of the partners", listOf(publicKey)),
      ...plainRefusals(503),
    },
  },
  {
    path: nextPath,
    method: "get",
    id: "nextAlternativePartner",
    summary: "Returns the next alternative partner that leads, from the current slot on.",
    needsKey: false,
    parameters: [],
    answers: { 200: answer("the partner and its slot", nextPartner), ...plainRefusals(404, 503) },
  },
  {
    path: slotPath,
    method: "get",
    id: "nextAlternativePartnerAt",
    summary: "Returns the next alternative partner that leads, from a given slot on.",
    needsKey: false,
    parameters: [{ name: "slot", description: "a slot", schema: slot, in: "path" }],
    answers: {
      200: answer("the partner and its slot", nextPartner),
      ...plainRefusals(400, 404, 503),
    },
  },
];

const filter = closed("StatusFilter", {
  signatures: orNull(listOf(signatureText, { minItems: 1, maxItems: signaturesMax })),
});

function documentOperation(path: string, id: string, name: string): Operation {
  return {
    path,
    method: "get",
    id,
    summary: `Returns the ${name} document of this service.`,
    needsKey: false,
    parameters: [],
    answers: {
      200: {
        ...answer("the document", { type: "object" }),
        headers: { ETag: { description: "entity tag of the document", schema: string } },
      },
      304: { description: "the document matches If-None-Match" },
      ...jsonRpcRefusals(503),
    },
  };
}

const rest: readonly Operation[] = [
  {
    path: "/status",
    method: "get",
    id: "statusFeed",
    summary: "WebSocket: pushes every event of the account's submissions.",
    description:
      "Send a filter to receive events of some signatures only; null removes the filter.",
    needsKey: true,
    parameters: [],
    answers: {
      101: { description: "the WebSocket is open" },
      ...jsonRpcRefusals(401, 403, 426, 429, 503),
    },
    webSocket: {
      request: filter,
      message: {
        oneOf: [
          pushedEventSchema,
          rateLimitSchema,
          closed<FilterSet>("FilterSet", {
            filter: closed("FilterCount", {
              signatures: orNull(wholeNumber(1, signaturesMax)),
            }),
          }),
          closed("FeedError", { error: schemaOf<object>({ type: "object" }) }),
        ],
      },
    },
  },
  {
    path: "/stream",
    method: "get",
    id: "streamSocket",
    summary: "WebSocket: decoded streams (shredTransactionSubscribe, shredSubscribe).",
    description:
      "Messages are JSON-RPC calls of every method; notifications of streams follow (docs/streams.md). The key " +
      "may also be the path, or the header x-token or x-api-key.",
    needsKey: true,
    parameters: [],
    answers: {
      101: { description: "the WebSocket is open" },
      ...jsonRpcRefusals(401, 403, 426, 429, 503),
    },
    webSocket: { request: callBody, message: { oneOf: [callAnswer, streamNotification] } },
  },
  {
    path: "/gethealth",
    method: "get",
    id: "health",
    summary: "Reports that the service responds.",
    needsKey: false,
    parameters: [],
    answers: {
      200: answer("the service responds", word("ok"), "text/plain"),
      ...jsonRpcRefusals(503),
    },
  },
  {
    path: signingKeysPath,
    method: "get",
    id: "signingKeys",
    summary: "Returns the public keys of receipts and tip statistics, as a JWK Set.",
    needsKey: false,
    parameters: [],
    answers: {
      200: answer("the keys", keySet, keySetType),
      ...jsonRpcRefusals(503),
    },
  },
  documentOperation(openRpcPath, "openRpc", "OpenRPC"),
  documentOperation(openApiPath, "openApi", "OpenAPI"),
];

export const operations: readonly Operation[] = [...calls, ...tips, ...partners, ...rest];
