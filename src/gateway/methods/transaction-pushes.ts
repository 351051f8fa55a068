// startTransactionPush, stopTransactionPush, getTransactionPushes: matching transactions as UDP datagrams to
// a verified destination of the account.
//
// Called through method-table.ts. relay/streams/transaction-pushes.ts runs the pushes.

import type {
  EndedTransactionPush,
  TransactionPushes as PushesResponse,
  TransactionPush,
} from "../../client/responses.ts";
import { encodeBase58 } from "../../core/base58.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import type { EndedStream } from "../../relay/streams/stream-records.ts";
import type { PushView, TransactionPushes } from "../../relay/streams/transaction-pushes.ts";
import {
  boolean,
  closed,
  described,
  listOf,
  number,
  orNull,
  schemaOf,
  signatureText,
  string,
  time,
  wholeNumber,
} from "../schema/json-schema.ts";
import { type ArgsOf, optional } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { anything, field, flag, optionsOf, positive } from "../schema/shapes.ts";
import { destinationId, salesOf, timeText } from "./destinations.ts";
import { type Call, type MethodTable, method } from "./method.ts";

const leaseSecondsDefault = 60;
const leaseSecondsMax = 600;
const nsPerMs = 1_000_000n;
const countMax = 2 ** 53 - 1;

function streamsOf({ dependencies }: Pick<Call, "dependencies">) {
  const streams = dependencies.streams?.();
  if (streams) return streams;
  const problem = "transaction pushes need decoded streams";
  throw new ShredwayError(
    "method_unknown",
    `${problem}; the operator has not configured the section streams`,
  );
}

/** Throws ShredwayError "registration_off" or "method_unknown". */
function pushesOf(call: Pick<Call, "dependencies">): TransactionPushes {
  salesOf(call);
  const { pushes } = streamsOf(call);
  if (pushes) return pushes;
  throw new ShredwayError("registration_off", "this service has no destinations of accounts");
}

const accountList = {
  anyOf: [{ type: "array", items: { type: "string" } }, { type: "null" }],
} as const;

const startParams = {
  destination: destinationId,
  filter: optional(
    anything({
      anyOf: [
        {
          title: "TransactionPushFilter",
          type: "object",
          properties: {
            vote: { anyOf: [{ type: "boolean" }, { type: "null" }] },
            signature: { anyOf: [signatureText, { type: "null" }] },
            accounts: {
              anyOf: [
                {
                  type: "object",
                  properties: { include: accountList, exclude: accountList, required: accountList },
                },
                { type: "null" },
              ],
            },
          },
        },
        { type: "null" },
      ],
    }),
    "as of shredTransactionSubscribe; {} matches everything; null: keep the filter of the open push",
  ),
  options: optional(
    optionsOf("TransactionPushOptions", {
      leaseSeconds: field(positive(leaseSecondsMax), {
        description: "seconds until the push ends, unless this method is called again",
        absent: leaseSecondsDefault,
        fallback: leaseSecondsDefault,
      }),
      shreds: field(flag, {
        description:
          "false: the destination receives no shreds while the push is open; needs the scope shreds; absent: as before, at first true",
        absent: null,
      }),
    }),
    "lease of the push, and shreds beside it",
  ),
};

function start(call: Call, args: ArgsOf<typeof startParams>): TransactionPush {
  const { destination, filter = null, options } = args;
  const { scopes: own } = call.key;
  if (options.shreds !== null && !own.includes("shreds")) {
    const problem = `the option shreds needs a key with the scope shreds; this one has: ${own.join(", ")}`;
    throw new ShredwayError("scope_missing", `startTransactionPush: ${problem}`);
  }
  return shownPush(pushesOf(call).start(call.key, { destination, filter, ...options }));
}

function stop(call: Call, { destination }: { readonly destination: string }): true {
  if (pushesOf(call).stop(call.key.accountId, destination)) return true;
  throw new ShredwayError(
    "destination_unknown",
    `no push of this account to destination ${quote(destination)} is open`,
  );
}

function list(call: Call): PushesResponse {
  const { accountId } = call.key;
  const { ended } = streamsOf(call).snapshot();
  return {
    open: pushesOf(call).ofAccount(accountId).map(shownPush),
    ended: ended
      .filter((one) => one.accountId === accountId && one.dialect === "push")
      .map(shownEnd),
  };
}

const votesShown = { any: null, none: false, only: true } as const;

function shownPush(push: PushView): TransactionPush {
  const { destination, address, filter, subscription, streamId, sequence, endsNs, shreds } = push;
  const { tier, openedNs, matched, sent, sentBytes, skipped, dropped, failed } = subscription;
  return {
    destination,
    address,
    tier,
    streamId: Buffer.from(streamId).toString("hex"),
    vote: votesShown[filter.votes],
    signature: filter.signature && encodeBase58(filter.signature),
    accounts: {
      include: filter.include.length,
      exclude: filter.exclude.length,
      required: filter.required.length,
    },
    startedAt: timeOf(openedNs),
    endsAt: timeOf(endsNs),
    shreds,
    nextSequence: Number(sequence),
    matched,
    sent,
    sentBytes,
    skipped,
    dropped,
    failed,
    delayNs: matched === 0 ? null : Math.round(subscription.delaySumNs / matched),
  };
}

function shownEnd(one: EndedStream): EndedTransactionPush {
  const { address, tier, openedNs, endedNs, reason, text: explanation, matched, sent } = one;
  const times = { startedAt: timeOf(openedNs), endedAt: timeOf(endedNs) };
  return { address, tier, ...times, reason, text: explanation, matched, sent };
}

function timeOf(ns: bigint): string {
  return timeText(Number(ns / nsPerMs));
}

const count = wholeNumber(0, countMax);

const pushSchema = closed<TransactionPush>("TransactionPush", {
  destination: described("id of the destination", string),
  address: described("ip:port", string),
  tier: described("the tier whose sources deliver its transactions", string),
  streamId: described(
    "bytes 8 to 15 of each datagram",
    schemaOf<string>({ type: "string", pattern: "^[0-9a-f]{16}$" }),
  ),
  vote: orNull(boolean),
  signature: orNull(signatureText),
  accounts: closed<TransactionPush["accounts"]>("TransactionPushAccounts", {
    include: count,
    exclude: count,
    required: count,
  }),
  startedAt: time,
  endsAt: described("it ends then, unless startTransactionPush is called again", time),
  shreds: described("whether the destination also receives shreds", boolean),
  nextSequence: described("sequence of the next datagram", count),
  matched: described("sent transactions and withdrawals", count),
  sent: described("sent datagrams of every kind", count),
  sentBytes: described("bytes of these datagrams, without headers of UDP and IP", count),
  skipped: described("transactions that are too long for a datagram", count),
  dropped: described("messages that the service could not send", count),
  failed: described("datagrams that the kernel refused", count),
  delayNs: orNull(
    described("mean delay from the last shred to the socket, in nanoseconds", number),
  ),
});

const endedSchema = closed<EndedTransactionPush>("EndedTransactionPush", {
  address: described("ip:port", string),
  tier: described("the tier whose sources delivered its transactions", string),
  startedAt: time,
  endedAt: time,
  reason: described("why it ended (docs/transaction-push.md)", string),
  text: described("the reason with its details, for people", string),
  matched: described("sent transactions and withdrawals", count),
  sent: described("sent datagrams of every kind", count),
});

const sample = {
  destination: samples.destination,
  address: samples.address,
  tier: "tier-1",
  streamId: "9a3b5c7d1e2f4a6b",
  vote: false,
  signature: null,
  accounts: { include: 1, exclude: 0, required: 0 },
  startedAt: samples.time,
  endsAt: "2026-11-21T12:01:00.123Z",
  shreds: true,
  nextSequence: 1,
  matched: 0,
  sent: 1,
  sentBytes: 72,
  skipped: 0,
  dropped: 0,
  failed: 0,
  delayNs: null,
} as const;

const scopes = ["stream"] as const;
const available = pushesOf;

export const transactionPushMethods: MethodTable = {
  startTransactionPush: method({
    scopes,
    summary: "Sends matching transactions to a destination over UDP, or renews that.",
    description:
      "The push ends with its lease. Call this again before that; another filter replaces the first one.",
    available,
    params: startParams,
    result: { name: "push", schema: pushSchema },
    errors: ["registration_off", "method_unknown", "destination_unknown", "destination_refused"],
    example: {
      params: [
        samples.destination,
        { vote: false, accounts: { include: [samples.tipAddress] } },
        { leaseSeconds: 60 },
      ],
      result: sample,
    },
    run: start,
  }),
  stopTransactionPush: method({
    scopes,
    summary: "Ends the push to a destination.",
    available,
    params: { destination: destinationId },
    result: { name: "isStopped", schema: schemaOf<true>({ type: "boolean", const: true }) },
    errors: ["registration_off", "method_unknown", "destination_unknown"],
    example: { params: [samples.destination], result: true },
    run: stop,
  }),
  getTransactionPushes: method({
    scopes,
    summary: "Lists the account's pushes on this node, and how the last ones ended.",
    available,
    params: {},
    result: {
      name: "pushes",
      schema: closed<PushesResponse>("TransactionPushes", {
        open: listOf(pushSchema),
        ended: listOf(endedSchema),
      }),
    },
    errors: ["registration_off", "method_unknown"],
    example: { params: [], result: { open: [sample], ended: [] } },
    run: list,
  }),
};
