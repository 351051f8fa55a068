// The HTTP paths of tips: statistics, their history, and the registration of tips for shreds.
//
// Part of the table of paths.ts.

import type {
  RegistrationReceipt,
  RejectedRegistration,
  TipFloorEntry,
  TipHistoryView,
  TipPercentileFields,
  WrittenInteger,
} from "../../../client/responses.ts";
import { registrationReasons } from "../../../shreds/registrations/registration-types.ts";
import { quartersMax } from "../../../tips/tip-history.ts";
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
  type SchemaOf,
  signatureText,
  slot,
  string,
  time,
  wholeNumber,
  word,
} from "../../schema/json-schema.ts";
import { samples } from "../../schema/samples.ts";
import { batchBytesMax } from "../body-limits.ts";
import type { UriParameter } from "../query.ts";
import { entriesMax, shredPayParameters, shredPayPath } from "../shred-pay.ts";
import {
  type Format,
  formatParameter,
  signedParameter,
  solFormatParameter,
} from "../tip-answers.ts";
import { blockEngineTipFloorPath } from "../tip-floor.ts";
import { periodParameter, tipHistoryPath } from "../tip-history.ts";
import { answer, jsonRpcRefusals, limitHeaders, plainRefusals } from "./http-answers.ts";
import { inQuery, type Operation } from "./operation.ts";
import { tipSignatureHeaders } from "./receipt-schemas.ts";

type Snapshot = TipFloorEntry<WrittenInteger>;
type Average = "ema_landed_tips_50th_percentile";
type History = TipHistoryView<WrittenInteger>;

function percentilesOf(
  amount: SchemaOf<WrittenInteger>,
): FieldSchemas<TipPercentileFields<WrittenInteger>> {
  return {
    landed_tips_25th_percentile: amount,
    landed_tips_50th_percentile: amount,
    landed_tips_75th_percentile: amount,
    landed_tips_95th_percentile: amount,
    landed_tips_99th_percentile: amount,
  };
}

function snapshotSchema(
  title: string,
  amount: SchemaOf<WrittenInteger>,
  averages: Pick<FieldSchemas<Snapshot>, Average> | null,
): JsonSchema {
  return closed<Omit<Snapshot, Average>>(
    title,
    {
      time: described("time of the refresh", time),
      ...percentilesOf(amount),
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

function historySchema(
  title: string,
  unit: History["unit"],
  amount: SchemaOf<WrittenInteger>,
): JsonSchema {
  const count = wholeNumber(0, Number.MAX_SAFE_INTEGER);
  return closed<History>(
    title,
    {
      period: enumOf(["24h", "7d"]),
      unit: word(unit),
      resolution_seconds: described("distance of the entries", wholeNumber(900, 900)),
      newest: described(
        "time of the newest entry with landed tips; null: none in the period",
        orNull(time),
      ),
      stale: described(
        "true if no tip landed in the last quarter hour, or the last refresh is missing",
        boolean,
      ),
      newest_slot: described("with signed=1: the current slot; null: unknown", orNull(slot)),
      entries: listOf(
        closed<History["entries"][number]>(`${title}Entry`, {
          time: described("time of the refresh, which ends the 15 minutes of the entry", time),
          count: described("number of landed tips", count),
          percentiles: orNull(
            closed<TipPercentileFields<WrittenInteger>>(
              `${title}Percentiles`,
              percentilesOf(amount),
            ),
          ),
        }),
        { maxItems: quartersMax },
      ),
    },
    ["newest_slot"],
  );
}

const history: JsonSchema = {
  title: "TipHistory",
  oneOf: [
    historySchema("TipHistoryInLamports", "lamports", lamports),
    historySchema("TipHistoryInSol", "sol", sol),
  ],
};

function floorOperation(
  operation: Pick<Operation, "path" | "id" | "summary">,
  format: UriParameter<Format>,
): Operation {
  return {
    ...operation,
    method: "get",
    needsKey: false,
    parameters: inQuery(format, signedParameter),
    answers: {
      200: {
        ...answer("the snapshot", listOf(snapshot, { minItems: 1, maxItems: 1 })),
        headers: { ...limitHeaders, ...tipSignatureHeaders },
      },
      ...plainRefusals(400, 429, 503),
    },
  };
}

export const tips: readonly Operation[] = [
  floorOperation(
    {
      path: "/tip_floor",
      id: "tipFloor",
      summary: "Returns the percentiles of recent landed tips, as an array with one snapshot.",
    },
    formatParameter,
  ),
  floorOperation(
    {
      path: blockEngineTipFloorPath,
      id: "blockEngineTipFloor",
      summary: "As `/tip_floor`, in SOL by default, for clients of block engines.",
    },
    solFormatParameter,
  ),
  {
    path: tipHistoryPath,
    method: "get",
    id: "tipHistory",
    summary: "Returns the percentiles of landed tips by quarter hour.",
    description:
      "A quarter hour without a refresh, as while the service was down, has no entry. One without landed tips has null as percentiles.",
    needsKey: false,
    parameters: inQuery(periodParameter, formatParameter, signedParameter),
    answers: {
      200: {
        ...answer("the quarter hours", history),
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
            slot: described(
              "slot that triggered the transaction: the one whose shreds made you send it, or the current slot if none did",
              { anyOf: [slot, { type: "string", pattern: "^[0-9]{1,20}$" }] },
            ),
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
      ...plainRefusals(400, 401, 403, 404, 413, 415, 429, 503),
    },
  },
];
