// Protective options of a submission: mevProtect, swqosOnly, revertProtection.
//
// Called by send-*.ts with the parameters of a call, and by raw.ts. A client that asks for protection
// in any place must get it or an error, so every options object of a call counts, whatever its
// position, and a name that only resembles a protective one is refused. Where several places disagree,
// the protected choice is taken.

import { quote, ShredwayError } from "../../core/errors.ts";
import { isJsonObject, type Json } from "../../core/json-rpc/json-text.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import { flag, switchField } from "../schema/shapes.ts";
import type { UriOptions } from "./method.ts";

export interface Protection {
  /** Only routes that keep the transaction private. */
  readonly mevProtect: boolean;
  /** Only SWQoS partners. */
  readonly swqosOnly: boolean;
  /** Dropped instead of landing as failed. */
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

/** For the options objects that documents describe. */
export const protectionSchema: Readonly<Record<ProtectionName, JsonSchema>> = {
  mevProtect: switchField(descriptions.mevProtect).schema,
  swqosOnly: switchField(descriptions.swqosOnly).schema,
  revertProtection: switchField(descriptions.revertProtection).schema,
};

/** Options that methods and nodes know, which protect from nothing: looked up before any comparison. */
const otherNames = new Set([
  "encoding",
  "skipPreflight",
  "preflightCommitment",
  "minContextSlot",
  "min_context_slot",
  "maxRetries",
  "max_retries",
  "enableFallback",
]);

function isProtectionName(name: string): name is ProtectionName {
  return names.some((each) => each === name);
}

const editsMax = 2;
/** Longer names are compared by their beginning only. */
const comparedLengthMax = 64;
/** Words that only options of this kind contain, over all services of the field. */
const protectiveWords = /mev|swqos|revert|protect|sandwich|frontrun|privatetx|bundleonly/;

/** Edits (insert, delete, replace) that make one of the other. */
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

/** Whether a client that writes `name` may believe that it asks for protection. */
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

/**
 * What the options objects of `params` and the URL ask for. Throws ShredwayError "value_invalid" for a
 * value that is no boolean and for an unknown name that resembles a protective one.
 */
export function readProtection(params: readonly Json[], uri: UriOptions): Protection {
  const asked = {
    mevProtect: uri.mevProtect,
    swqosOnly: uri.swqosOnly,
    revertProtection: uri.revertProtection,
  };
  for (const [position, given] of params.entries()) {
    if (!isJsonObject(given)) continue;
    for (const [name, json] of Object.entries(given)) {
      if (otherNames.has(name)) continue;
      if (isProtectionName(name)) {
        if (readFlag(position, name, json)) asked[name] = true;
      } else if (resemblesProtection(name)) {
        throw unknownName(`params[${position}]`, name);
      }
    }
  }
  return asked;
}
