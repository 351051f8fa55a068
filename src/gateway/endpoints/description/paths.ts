// The table of HTTP paths: parameters, bodies and responses.
//
// openapi.ts and the API document read it; gateway.ts serves the paths. Tests compare both and
// validate real responses against the schemas. URL parameters are the objects that also parse them.

import type { FilterSet, NextAltValidator, WrittenInteger } from "../../../client/responses.ts";
import {
  closed,
  described,
  enumOf,
  listOf,
  orNull,
  publicKey,
  schemaOf,
  signatureText,
  slot,
  string,
  wholeNumber,
  word,
} from "../../schema/json-schema.ts";
import { samples } from "../../schema/samples.ts";
import { pushedEventSchema, rateLimitSchema } from "../../schema/status-schema.ts";
import { rawMethods, rawParameters } from "../raw-endpoints.ts";
import { uriParameters } from "../request-context.ts";
import { keySetType, signingKeysPath } from "../signing-keys.ts";
import { signaturesMax } from "../status-feed.ts";
import { socketParameters } from "../stream-submissions.ts";
import { nextPath, slotPath, validatorsPath } from "../tracker-handler.ts";
import { openApiPath, openRpcPath } from "./document-paths.ts";
import { answer, jsonRpcRefusals, limitHeaders, plainRefusals } from "./http-answers.ts";
import { callAnswer, callBody, rawAnswer } from "./json-rpc-bodies.ts";
import { inQuery, type Operation } from "./operation.ts";
import { keySet, receiptHeaders } from "./receipt-schemas.ts";
import { streamNotification } from "./stream-schemas.ts";
import { tips } from "./tip-paths.ts";

// ---- JSON-RPC -------------------------------------------------------------------------------

const callRefusals = jsonRpcRefusals(401, 413, 415, 429, 503);

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
      ...plainRefusals(400, 503),
    },
  },
  {
    path: nextPath,
    method: "get",
    id: "nextAlternativePartner",
    summary: "Returns the next alternative partner that leads, from the current slot on.",
    needsKey: false,
    parameters: [],
    answers: {
      200: answer("the partner and its slot", nextPartner),
      ...plainRefusals(400, 404, 503),
    },
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
      ...jsonRpcRefusals(400, 401, 403, 426, 429, 503),
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
      ...jsonRpcRefusals(400, 401, 403, 426, 429, 503),
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
