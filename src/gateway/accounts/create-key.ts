// Creates and stores an API key; used by the command `keys create` and by the sandbox.

import { type NewKeySettings, newApiKey } from "./api-keys.ts";
import type { ApiKey, KeyStore } from "./types.ts";

interface NewKey {
  /** Not stored; the store has only its hash. */
  readonly text: string;
  readonly key: ApiKey;
}

/**
 * Settles when the key is durable. Creates the account if no account has that name. `random`: 38
 * unpredictable bytes. Throws ShredwayError "value_invalid" or "store_failed".
 */
export async function createKey(
  keys: KeyStore,
  settings: Omit<NewKeySettings, "accountId">,
  { random, nowNs }: { readonly random: Uint8Array; readonly nowNs: bigint },
): Promise<NewKey> {
  const { id } = await keys.ensureAccount(settings.accountName, nowNs);
  const created = newApiKey({ ...settings, accountId: id }, random, nowNs);
  await keys.addKey(created.key);
  return created;
}
