// A submission as a row of the database, and back.
//
// Called by submission-store.ts for every change of every submission, so writing must be cheap. Times,
// slots and lamports in the timeline are decimal strings, because a JSON number would be rounded. The
// chain's error (`err`) is JSON of another program and is stored as text.

import { messageOf, quote, ShredwayError } from "../../../core/errors.ts";
import { readJson, writeJson } from "../../../core/json-rpc/json-text.ts";
import { isObject } from "../../../core/values.ts";
import {
  type EndState,
  endStates,
  ingresses,
  type SubmissionRecord,
  type SubmitMethod,
  type SubmitOptions,
  type TimelineEvent,
  type WithdrawalReason,
  withdrawalReasons,
} from "../../../gateway/submission/types.ts";
import {
  bytesOrNullAt,
  integerAt,
  integerOrNullAt,
  type Row,
  type SqlValue,
  textAt,
  textOrNullAt,
} from "../driver.ts";

export const submissionColumns = `account_id, signature, method, bundle_id, bundle_index, options,
  received_ns, state, ended_ns, slot, reason, err, events, wire`;

const methods: readonly SubmitMethod[] = [
  "sendTransaction",
  "sendBundle",
  "sendBatch",
  "sendIdeal",
  "sendAlt",
];
/** A node's error of a failed transaction has four levels. */
const errDepthMax = 64;

// ---- to the database ----

function errText(err: unknown): string | null {
  return err === null || err === undefined ? null : writeJson(err);
}

function plainEvent(event: TimelineEvent): object {
  const atNs = event.atNs.toString();
  if (event.kind === "received") {
    const tipLamports = event.tipLamports?.toString();
    const priorityFeeLamports = event.priorityFeeLamports?.toString();
    return { ...event, atNs, tipLamports, priorityFeeLamports };
  }
  if (!("slot" in event)) return { ...event, atNs };
  const slot = event.slot === null ? null : event.slot.toString();
  return "err" in event
    ? { ...event, atNs, slot, err: errText(event.err) }
    : { ...event, atNs, slot };
}

/** The row's values in the order of `submissionColumns`, then its node. */
export function rowOf(record: SubmissionRecord, node: string): SqlValue[] {
  return [
    record.accountId,
    record.signature,
    record.method,
    record.bundleId,
    BigInt(record.bundleIndex),
    JSON.stringify(record.options),
    record.receivedNs,
    record.state,
    record.endedNs,
    record.slot,
    record.reason,
    errText(record.err),
    JSON.stringify(record.events.map(plainEvent)),
    record.state === "open" ? record.wire : null,
    node,
  ];
}

// ---- and back ----

type Fields = Readonly<Record<string, unknown>>;

function fault(expected: string, got: unknown): Error {
  return new Error(`expected ${expected}, got ${quote(got)}`);
}

function textIn(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value === "string") return value;
  throw fault(`text in ${name}`, value);
}

function textOrNullIn(fields: Fields, name: string): string | null {
  return fields[name] === null ? null : textIn(fields, name);
}

function integerIn(fields: Fields, name: string): bigint {
  const text = textIn(fields, name);
  if (/^\d{1,20}$/.test(text)) return BigInt(text);
  throw fault(`digits in ${name}`, text);
}

function integerOrNullIn(fields: Fields, name: string): bigint | null {
  return fields[name] === null ? null : integerIn(fields, name);
}

function countIn(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value === "number") return value;
  throw fault(`a number in ${name}`, value);
}

function flagIn(fields: Fields, name: string): boolean {
  const value = fields[name];
  if (typeof value === "boolean") return value;
  throw fault(`true or false in ${name}`, value);
}

function methodOf(text: string): SubmitMethod {
  const method = methods.find((known) => known === text);
  if (method) return method;
  throw fault(`one of ${methods.join(", ")}`, text);
}

function withdrawalReasonOf(text: string): WithdrawalReason {
  const found = withdrawalReasons.find((one) => one === text);
  if (found) return found;
  throw fault(`one of ${withdrawalReasons.join(", ")}`, text);
}

function endStateOf(text: string): EndState {
  const state = endStates.find((known) => known === text);
  if (state) return state;
  throw fault(`one of ${endStates.join(", ")}`, text);
}

function errOf(text: string | null): unknown {
  return text === null ? null : readJson(text, errDepthMax);
}

function eventOf(fields: unknown): TimelineEvent {
  if (!isObject(fields)) throw fault("an event", fields);
  const kind = textIn(fields, "kind");
  const atNs = integerIn(fields, "atNs");
  const route = () => textIn(fields, "route");
  const attempt = () => countIn(fields, "attempt");
  const slot = () => integerOrNullIn(fields, "slot");
  const reason = () => textIn(fields, "reason");
  switch (kind) {
    case "received": {
      const ingress = ingresses.find((known) => known === fields["ingress"]);
      return {
        kind,
        atNs,
        method: methodOf(textIn(fields, "method")),
        ...(ingress && { ingress }),
        ...(fields["tipLamports"] !== undefined && {
          tipLamports: integerIn(fields, "tipLamports"),
        }),
        ...(fields["priorityFeeLamports"] !== undefined && {
          priorityFeeLamports: integerIn(fields, "priorityFeeLamports"),
        }),
      };
    }
    case "held":
      return { kind, atNs, reason: reason() };
    case "queued":
    case "acknowledged":
      return { kind, atNs, route: route(), attempt: attempt() };
    case "sent": {
      const bytes = countIn(fields, "bytes");
      const leader = textOrNullIn(fields, "leader");
      return { kind, atNs, route: route(), attempt: attempt(), bytes, slot: slot(), leader };
    }
    case "refused":
    case "failed":
    case "dropped":
      return { kind, atNs, route: route(), attempt: attempt(), reason: reason() };
    case "auction_lost":
      return { kind, atNs, slot: slot(), leader: textIn(fields, "leader") };
    case "seen":
      return { kind, atNs, slot: integerIn(fields, "slot") };
    case "withdrawn":
      return { kind, atNs, slot: integerIn(fields, "slot"), reason: withdrawalReasonOf(reason()) };
    default: {
      const err = errOf(textOrNullIn(fields, "err"));
      const { sibling } = fields;
      const end = { kind: endStateOf(kind), atNs, reason: reason(), slot: slot(), err };
      return typeof sibling === "string" ? { ...end, sibling } : end;
    }
  }
}

function eventsOf(text: string): TimelineEvent[] {
  const events: unknown = JSON.parse(text);
  if (!Array.isArray(events)) throw fault("a list of events", events);
  return events.map(eventOf);
}

function optionsOf(text: string): SubmitOptions {
  const fields: unknown = JSON.parse(text);
  if (!isObject(fields)) throw fault("options", fields);
  return {
    swqosOnly: flagIn(fields, "swqosOnly"),
    mevProtect: flagIn(fields, "mevProtect"),
    revertProtection: flagIn(fields, "revertProtection"),
    resendsMax: fields["resendsMax"] === null ? null : countIn(fields, "resendsMax"),
    ...(fields["enableFallback"] !== undefined && {
      enableFallback: flagIn(fields, "enableFallback"),
    }),
    ...(fields["pairedWith"] !== undefined && { pairedWith: textIn(fields, "pairedWith") }),
  };
}

/** The record in a row of `submissionColumns`. Throws ShredwayError "store_failed". */
export function recordOf(row: Row): SubmissionRecord {
  const signature = textAt(row, 1);
  try {
    const state = textAt(row, 7);
    return {
      accountId: textAt(row, 0),
      signature,
      method: methodOf(textAt(row, 2)),
      bundleId: textOrNullAt(row, 3),
      bundleIndex: Number(integerAt(row, 4)),
      options: optionsOf(textAt(row, 5)),
      receivedNs: integerAt(row, 6),
      state: state === "open" ? state : endStateOf(state),
      endedNs: integerOrNullAt(row, 8),
      slot: integerOrNullAt(row, 9),
      reason: textOrNullAt(row, 10),
      err: errOf(textOrNullAt(row, 11)),
      events: eventsOf(textAt(row, 12)),
      wire: bytesOrNullAt(row, 13),
    };
  } catch (cause) {
    throw new ShredwayError("store_failed", `submission ${signature}: ${messageOf(cause)}`, {
      cause,
    });
  }
}

const noOptions: SubmitOptions = {
  swqosOnly: false,
  mevProtect: false,
  revertProtection: false,
  resendsMax: 0,
};

/**
 * The same for startup, which a damaged row must not prevent: the readable parts, without the
 * transaction's bytes. Throws only if the signature is unreadable.
 */
export function recordOrRemains(row: Row): SubmissionRecord {
  try {
    return recordOf(row);
  } catch {
    return {
      accountId: textAt(row, 0),
      signature: textAt(row, 1),
      method: "sendTransaction",
      bundleId: null,
      bundleIndex: 0,
      options: noOptions,
      receivedNs: integerAt(row, 6),
      state: "open",
      endedNs: null,
      slot: null,
      reason: null,
      err: null,
      events: [],
      wire: null,
    };
  }
}
