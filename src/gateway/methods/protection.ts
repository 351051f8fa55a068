// Protective options of a submission: mevProtect, swqosOnly, revertProtection.
//
// Called by send-*.ts with the parameters of a call, and by raw-endpoints.ts. A client that requests
// protection must get it or an error. Therefore every options object counts at any position, and an
// unknown name that resembles a protective option is refused. If several places differ, the
// protected choice applies.

import { quote, ShredwayError } from "../../core/errors.ts";
import { isJsonObject, type Json } from "../../core/json-rpc/json-text.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import { flag, switchField } from "../schema/shapes.ts";
import type { SubmitOptions } from "../submission/types.ts";

export interface Protection {
  /** Only routes that keep the transaction private. */
  readonly mevProtect: boolean;
  /** Only SWQoS partners. */
  readonly swqosOnly: boolean;
  /** Only routes that drop a failing transaction instead of landing it as failed. */
  readonly revertProtection: boolean;
}

type ProtectionName = keyof Protection;

const descriptions: Readonly<Record<ProtectionName, string>> = {
  mevProtect: "uses only routes that keep the transaction private",
  swqosOnly: "uses only SWQoS partners",
  revertProtection:
    "uses only routes that drop a failing transaction instead of landing it as failed",
};

const names = ["mevProtect", "swqosOnly", "revertProtection"] as const satisfies ProtectionName[];
const expectedNames = names.join(", ");

/** Schemas of the protective options, for documents. */
export const protectionSchema: Readonly<Record<ProtectionName, JsonSchema>> = {
  mevProtect: switchField(descriptions.mevProtect).schema,
  swqosOnly: switchField(descriptions.swqosOnly).schema,
  revertProtection: switchField(descriptions.revertProtection).schema,
};

/** Known options without protective meaning; checked before any comparison of names. */
const otherNames = new Set([
  "encoding",
  "skipPreflight",
  "preflightCommitment",
  "minContextSlot",
  "min_context_slot",
  "maxRetries",
  "max_retries",
  "enableFallback",
  "receipt",
]);

function isProtectionName(name: string): name is ProtectionName {
  return names.some((each) => each === name);
}

const editsMax = 2;
/** Only the first characters of longer names are compared. */
const comparedLengthMax = 64;
/**
 * Words that only protective options contain, across services. The last three are lists of leaders that may
 * or must not get the transaction: validatorAcls (Helius), forwardingPolicies (Triton).
 */
const protectiveWords =
  /mev|swqos|revert|protect|sandwich|frontrun|privatetx|bundleonly|acls?$|forwardingpolic|shield/;

/** Number of edits (insert, delete, replace) between two texts. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}

/** Whether a client that writes `name` may expect protection from it. */
export function resemblesProtection(name: string): boolean {
  const letters = name
    .slice(0, comparedLengthMax)
    .toLowerCase()
    .replaceAll(/[^a-z]/g, "");
  if (protectiveWords.test(letters)) return true;
  return names.some((each) => editDistance(letters, each.toLowerCase()) <= editsMax);
}

function unknownName(what: string, name: string): ShredwayError {
  return new ShredwayError(
    "value_invalid",
    `${what}: unknown option ${quote(name)}; the protective options are ${expectedNames}`,
  );
}

function readFlag(position: number, name: ProtectionName, json: Json | undefined): boolean {
  if (json === undefined || json === null) return false;
  if (typeof json === "boolean") return json;
  return flag.reader(`params[${position}].${name}`)(json);
}

/** A literal: a spread of the protection creates another hidden class for every submission. */
export function submitOptionsOf(
  { swqosOnly, mevProtect, revertProtection }: Protection,
  resendsMax: number | null,
): SubmitOptions {
  return { swqosOnly, mevProtect, revertProtection, resendsMax };
}

/**
 * The protection that the options objects of `params` and the URL request. Throws ShredwayError
 * "value_invalid" for an invalid value and for an unknown name that resembles a protective option.
 */
export function readProtection(params: readonly Json[], uri: Protection): Protection {
  const requested = {
    mevProtect: uri.mevProtect,
    swqosOnly: uri.swqosOnly,
    revertProtection: uri.revertProtection,
  };
  for (const [position, given] of params.entries()) {
    if (!isJsonObject(given)) continue;
    for (const [name, json] of Object.entries(given)) {
      if (otherNames.has(name)) continue;
      if (isProtectionName(name)) {
        if (readFlag(position, name, json)) requested[name] = true;
      } else if (resemblesProtection(name)) {
        throw unknownName(`params[${position}]`, name);
      }
    }
  }
  return requested;
}
