// API keys: creation, hashing, and validation of their settings.
//
// The `keys` command, the portal and the sandbox create keys with it; key-ring.ts hashes the keys
// of callers. The text of a key exists only in the return value of newApiKey. Callers pass the
// random bytes.

import { hash } from "node:crypto";
import { formatAddressRange, parseAddressRange } from "../../core/addresses/addresses.ts";
import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import { pubkeyOf } from "../../core/primitives.ts";
import { type ApiKey, type Scope, scopes } from "./types.ts";

/** Random bytes of a key's secret text; `idBytes`: those of its public id. */
const secretBytes = 32;
const idBytes = 6;
export const keyRandomBytes = secretBytes + idBytes;

const textPrefix = "sw_";
const hintLength = textPrefix.length + 4;

const nameLengthMax = 64;
const labelLengthMax = 100;
const requestsPerSecondMax = 1_000_000;
const burstMax = 1_000_000;
const rangesMax = 64;
/** The scopes "batch", "stream" and "operate" are granted only on request. */
export const defaultScopes: readonly Scope[] = ["submit", "read", "shreds"];

/** Validated settings of a new key. */
export type NewKeySettings = Pick<
  ApiKey,
  "accountId" | "accountName" | "label" | "scopes" | "requestsPerSecond" | "burst" | "allowedRanges"
>;

/** SHA-256 of a key's text, 32 bytes. */
export function hashKeyText(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

function refuse(what: string, expected: string, got: unknown): ShredwayError {
  return new ShredwayError(
    "value_invalid",
    `${what}: invalid value ${quote(got)}; expected ${expected}`,
  );
}

/**
 * Creates a key and its text; the text is not stored anywhere. `random`: 38 unpredictable bytes.
 * Throws ShredwayError "value_invalid" for another length.
 */
export function newApiKey(
  settings: NewKeySettings,
  random: Uint8Array,
  nowNs: bigint,
): { text: string; key: ApiKey } {
  if (random.length !== keyRandomBytes) {
    throw refuse("random bytes", `${keyRandomBytes}`, random.length);
  }
  // Base58 contains no characters that look alike.
  const text = textPrefix + pubkeyOf(random.subarray(0, secretBytes));
  const key: ApiKey = {
    id: `k_${Buffer.from(random.subarray(secretBytes)).toString("hex")}`,
    accountId: settings.accountId,
    accountName: settings.accountName,
    hash: new Uint8Array(hashKeyText(text)),
    hint: text.slice(0, hintLength),
    label: settings.label,
    scopes: settings.scopes,
    requestsPerSecond: settings.requestsPerSecond,
    burst: settings.burst,
    allowedRanges: settings.allowedRanges,
    createdNs: nowNs,
    expiresNs: null,
    revokedNs: null,
  };
  return { text, key };
}

/** "in force": callers may use the key now. */
type KeyState = "in force" | "expired" | "revoked";

export function keyState(key: Pick<ApiKey, "expiresNs" | "revokedNs">, nowNs: bigint): KeyState {
  if (key.revokedNs !== null) return "revoked";
  return key.expiresNs !== null && key.expiresNs <= nowNs ? "expired" : "in force";
}

/** Rejects control characters, line breaks and outer spaces, so that lists print correctly. */
function isOneLine(text: string): boolean {
  return !/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(text) && text.trim() === text;
}

/** Throws ShredwayError "value_invalid". */
export function checkAccountName(name: string): string {
  if (name !== "" && name.length <= nameLengthMax && isOneLine(name)) return name;
  throw refuse("account", `a name of 1 to ${nameLengthMax} characters on one line`, name);
}

/** Throws ShredwayError "value_invalid". */
export function checkLabel(label: string): string {
  if (label.length <= labelLengthMax && isOneLine(label)) return label;
  throw refuse("label", `at most ${labelLengthMax} characters on one line`, label);
}

/** Parses "submit,read". Returns each scope once, in the order of `scopes`. Throws ShredwayError "value_invalid". */
export function parseScopes(text: string): readonly Scope[] {
  const names = text.split(",").map((name) => name.trim());
  const unknown = names.find((name) => !scopes.some((scope) => scope === name));
  if (unknown !== undefined)
    throw refuse("scopes", `a comma-separated list of ${scopes.join(", ")}`, unknown);
  return scopes.filter((scope) => names.includes(scope));
}

function checkCount(what: string, count: number | null, max: number): number | null {
  if (count === null || (Number.isInteger(count) && count >= 1 && count <= max)) return count;
  throw refuse(what, `a whole number from 1 to ${max}`, count);
}

/** null: the gateway's default applies. Throws ShredwayError "value_invalid". */
export function checkLimits(
  requestsPerSecond: number | null,
  burst: number | null,
): Pick<ApiKey, "requestsPerSecond" | "burst"> {
  return {
    requestsPerSecond: checkCount("requests per second", requestsPerSecond, requestsPerSecondMax),
    burst: checkCount("burst", burst, burstMax),
  };
}

/** Returns addresses and ranges in canonical text. Throws ShredwayError "value_invalid". */
export function checkRanges(texts: readonly string[]): readonly string[] {
  if (texts.length > rangesMax) {
    throw refuse("allowed ranges", `at most ${rangesMax} ranges`, texts.length);
  }
  const ranges = texts.map((text) => {
    try {
      return formatAddressRange(parseAddressRange(text.trim()));
    } catch (cause) {
      const message = `allowed ranges: ${messageOf(cause)}`;
      throw new ShredwayError("value_invalid", message, { cause });
    }
  });
  return [...new Set(ranges)];
}
