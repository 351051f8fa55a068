// The sandbox's API key: created at the first start and stored next to the database.
//
// Called by open-sandbox.ts. This is the only key whose text is stored in a file (for its owner
// only): the first screen shows it, and it must stay valid after a restart.

import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hashKeyText, keyRandomBytes } from "../gateway/accounts/api-keys.ts";
import { createKey } from "../gateway/accounts/create-key.ts";
import { type KeyStore, scopes } from "../gateway/accounts/types.ts";

export const sandboxKeyFile = "sandbox.key";
const requestsPerSecond = 10_000;
const fileMode = 0o600;

/** Text of a key with all scopes. */
export async function ensureSandboxKey(
  keys: KeyStore,
  folder: string,
  nowNs: bigint,
): Promise<string> {
  const path = join(folder, sandboxKeyFile);
  const storedKey = existsSync(path) ? readFileSync(path, "utf8").trim() : "";
  const hash = hashKeyText(storedKey);
  // A key of an earlier version may lack a scope.
  const isGood = (await keys.keys()).some(
    (key) =>
      hash.equals(key.hash) &&
      key.revokedNs === null &&
      scopes.every((scope) => key.scopes.includes(scope)),
  );
  if (isGood) return storedKey;
  const wishes = {
    accountName: "sandbox",
    label: "first screen",
    scopes,
    requestsPerSecond,
    burst: requestsPerSecond,
    allowedRanges: [],
  };
  const apiKey = await createKey(keys, wishes, { random: randomBytes(keyRandomBytes), nowNs });
  writeFileSync(path, `${apiKey.text}\n`, { mode: fileMode });
  chmodSync(path, fileMode);
  return apiKey.text;
}
