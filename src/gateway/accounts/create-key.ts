// A new key for an account, kept: what the command `keys create` and the sandbox's start do.

import { type KeyWishes, newApiKey } from "./api-keys.ts";
import type { ApiKey, KeyStore } from "./types.ts";

interface NewKey {
  /** Exists here only: what is kept is its hash. */
  readonly text: string;
  readonly key: ApiKey;
}

/**
 * Settles when the key is durable; its account is made when there is none of that name. `random`: 38
 * bytes that nobody can guess. Throws ShredwayError "value_invalid" or "store_failed".
 */
export async function createKey(
  keys: KeyStore,
  wishes: Omit<KeyWishes, "accountId">,
  { random, nowNs }: { readonly random: Uint8Array; readonly nowNs: bigint },
): Promise<NewKey> {
  const { id } = await keys.ensureAccount(wishes.accountName, nowNs);
  const made = newApiKey({ ...wishes, accountId: id }, random, nowNs);
  await keys.addKey(made.key);
  return made;
}
