// Parameters of the dialects on WebSockets: shredTransactionSubscribe and shredSubscribe.
//
// Everything is untrusted. An unknown or impossible value is an error, so that no subscription silently
// differs from what its client asked for.

import { quote, ShredwayError } from "../../core/errors.ts";
import {
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
} from "../../core/json-rpc/json-text.ts";
import { decodeBase58 } from "../data-plane/base58.ts";
import type { NamedFilter } from "./named-filter.ts";

const encodings = ["base58", "base64", "json"] as const;
const detailNames = ["full", "accounts", "signatures"] as const;
const versionMax = 1;

interface ShredTransactionSubscription {
  readonly dialect: "shred_transaction";
  readonly filter: NamedFilter;
}

interface ShredSubscription {
  readonly dialect: "shred";
  readonly filter: NamedFilter;
  readonly encoding: (typeof encodings)[number];
  readonly details: (typeof detailNames)[number];
  /** Transactions of a higher version are left out; null: all are sent. */
  readonly versionMax: number | null;
}

export type SocketSubscription = ShredTransactionSubscription | ShredSubscription;

/** The method, whose name begins every error, and its limit. */
interface Place {
  readonly method: string;
  readonly accountsMax: number;
}

export type ReadSubscription = (params: readonly Json[], place: Place) => SocketSubscription;

/** Throws ShredwayError "value_invalid". */
export function readShredTransaction(
  params: readonly Json[],
  place: Place,
): ShredTransactionSubscription {
  const [filter] = objectsIn(params, place, ["filter"]);
  onlyKnown(filter, ["vote", "signature", "accounts"], `${place.method}: filter`);
  const accounts = objectOf(filter["accounts"], `${place.method}: accounts`);
  onlyKnown(accounts, ["include", "exclude", "required"], `${place.method}: accounts`);
  return {
    dialect: "shred_transaction",
    filter: filterOf({
      place,
      vote: filter["vote"],
      signature: filter["signature"],
      lists: {
        "accounts.include": accounts["include"],
        "accounts.exclude": accounts["exclude"],
        "accounts.required": accounts["required"],
      },
    }),
  };
}

/** Throws ShredwayError "value_invalid" or "transaction_version". */
export function readShred(params: readonly Json[], place: Place): ShredSubscription {
  const { method } = place;
  const [filter, options] = objectsIn(params, place, ["filter", "options"]);
  const filterNames = ["accountInclude", "accountExclude", "accountRequired", "vote"];
  onlyKnown(filter, filterNames, `${method}: filter`);
  const optionNames = ["encoding", "transactionDetails", "maxSupportedTransactionVersion"];
  onlyKnown(options, optionNames, `${method}: options`);
  return {
    dialect: "shred",
    filter: filterOf({
      place,
      vote: filter["vote"],
      signature: null,
      lists: {
        accountInclude: filter["accountInclude"],
        accountExclude: filter["accountExclude"],
        accountRequired: filter["accountRequired"],
      },
    }),
    encoding: oneOf(encodings, options["encoding"] ?? "base64", `${method}: encoding`),
    details: oneOf(
      detailNames,
      options["transactionDetails"] ?? "full",
      `${method}: transactionDetails`,
    ),
    versionMax: readVersionMax(options["maxSupportedTransactionVersion"], method),
  };
}

/** The number of a subscription to end. Throws ShredwayError "value_invalid". */
export function readNumber(params: readonly Json[], method: string): number {
  const [number] = params;
  if (params.length === 1 && typeof number === "number") return number;
  throw invalid(method, "the number of a subscription on this connection", params);
}

function objectsIn(
  params: readonly Json[],
  { method }: Place,
  names: readonly string[],
): [JsonObject, JsonObject] {
  if (params.length > names.length) {
    const expected = `at most ${names.length} parameter${names.length > 1 ? "s" : ""}: ${names.join(", ")}`;
    throw invalid(method, expected, params.length);
  }
  const [first, second] = names.map((name, i) => objectOf(params[i], `${method}: ${name}`));
  return [first ?? {}, second ?? {}];
}

function objectOf(value: Json | undefined, what: string): JsonObject {
  if (value === undefined || value === null) return {};
  if (isJsonObject(value)) return value;
  throw invalid(what, "an object", value);
}

function onlyKnown(object: JsonObject, known: readonly string[], what: string): void {
  const other = Object.keys(object).find((name) => !known.includes(name));
  if (other !== undefined) throw invalid(`${what}: unknown member`, known.join(", "), other);
}

interface FilterValues {
  readonly place: Place;
  readonly vote: Json | undefined;
  readonly signature: Json | undefined;
  /** Included, excluded and required accounts, by the names of the dialect. */
  readonly lists: Readonly<Record<string, Json | undefined>>;
}

function filterOf({ place, vote, signature, lists }: FilterValues): NamedFilter {
  const { method, accountsMax } = place;
  const texts = Object.entries(lists).map(([name, value]) => ({
    name,
    accounts: listOf(value, `${method}: ${name}`),
  }));
  const count = texts.reduce((sum, { accounts }) => sum + accounts.length, 0);
  if (count > accountsMax) {
    throw invalid(`${method}: accounts in the filter`, `at most ${accountsMax}`, count);
  }
  const [include = [], exclude = [], required = []] = texts.map(({ name, accounts }) => [
    ...new Map(
      accounts.map((text, i) => [
        text,
        bytesOf(text, 32, `${method}: ${name}[${i}]`, "a public key in base58 (32 bytes)"),
      ]),
    ).values(),
  ]);
  return {
    name: method,
    votes: votesOf(vote, `${method}: vote`),
    signature:
      signature === undefined || signature === null
        ? null
        : bytesOf(signature, 64, `${method}: signature`, "a signature in base58 (64 bytes)"),
    include,
    exclude,
    required,
  };
}

function votesOf(value: Json | undefined, what: string): NamedFilter["votes"] {
  if (value === undefined || value === null) return "any";
  if (typeof value !== "boolean") throw invalid(what, "true or false", value);
  return value ? "only" : "none";
}

function listOf(value: Json | undefined, what: string): readonly Json[] {
  if (value === undefined || value === null) return [];
  if (isJsonArray(value)) return value;
  throw invalid(what, "an array of public keys", value);
}

/** The longest base58 text of `length` bytes has 1.366 characters per byte. */
function bytesOf(value: Json, length: number, what: string, expected: string): Uint8Array {
  const isShort = typeof value === "string" && value.length <= Math.ceil(length * 1.37);
  const bytes = isShort ? decodeBase58(value) : null;
  if (bytes?.length === length) return bytes;
  throw invalid(what, expected, value);
}

function oneOf<const T extends string>(names: readonly T[], value: Json, what: string): T {
  const found = names.find((name) => name === value);
  if (found !== undefined) return found;
  throw invalid(what, names.join(", "), value);
}

function readVersionMax(value: Json | undefined, method: string): number | null {
  if (value === undefined || value === null) return null;
  const isKnown = typeof value === "number" && Number.isInteger(value) && value >= 0;
  if (isKnown && value <= versionMax) return value;
  throw new ShredwayError(
    "transaction_version",
    `${method}: maxSupportedTransactionVersion: expected 0 or ${versionMax}, got ${quote(value)}`,
  );
}

function invalid(what: string, expected: string, value: unknown): ShredwayError {
  return new ShredwayError("value_invalid", `${what}: expected ${expected}, got ${quote(value)}`);
}
