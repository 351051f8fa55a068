// The keys that the operator has created for the customers.

import { createHash } from "node:crypto";
import { keyRandomBytes, newApiKey } from "../../../src/gateway/accounts/api-keys.ts";
import type { ApiKey, Scope } from "../../../src/gateway/accounts/types.ts";
import { accounts } from "../scenario.ts";
import type { KeyKind } from "./key-kinds.ts";

function keyOf(account: number, name: string, scopes: readonly Scope[], isRevoked = false) {
  const { id, name: accountName } = accounts[account] ?? { id: "", name: "" };
  const seed = createHash("sha512").update(`${id} ${name}`).digest();
  const settings = { accountId: id, accountName, label: name, scopes, allowedRanges: [] };
  const limitless = { requestsPerSecond: null, burst: null };
  const random = seed.subarray(0, keyRandomBytes);
  const { text, key } = newApiKey({ ...settings, ...limitless }, random, 0n);
  return { text, key: { ...key, revokedNs: isRevoked ? 0n : null } satisfies ApiKey };
}

/** The keys that the operator has created, by account. */
export const createdKeys = accounts.map((_, i) => ({
  own: keyOf(i, "own", ["submit", "batch"]),
  reader: keyOf(i, "reader", ["read"]),
  revoked: keyOf(i, "revoked", ["submit", "batch"], true),
}));

/** null: a request without a key. */
export function keyText(account: number, kind: KeyKind): string | null {
  if (kind === "none") return null;
  if (kind === "unknown") return keyOf(account, "unknown", ["submit"]).text;
  return createdKeys[account]?.[kind].text ?? null;
}
