// Stored API keys and public keys that this version cannot use, and the texts that name them.
//
// An operator may have edited a row, or a newer version of another node may have written it. Such a row has no
// effect, and all others stay in force. key-updates.ts logs it; the readiness, `shredway doctor` and the account's portal report it.

import { counted } from "../../core/counted.ts";
import { quote } from "../../core/errors.ts";

export interface UnusableKey {
  readonly id: string;
  readonly accountId: string;
  readonly accountName: string;
  readonly isRevoked: boolean;
  /** Expected and actual value. */
  readonly problem: string;
}

export interface UnusablePublicKey {
  readonly publicKey: string;
  readonly accountId: string;
  readonly accountName: string;
  readonly problem: string;
}

/** One sentence for each row. A revoked API key is refused in any case, so it has none. */
export function unusableKeyTexts(
  keys: readonly UnusableKey[],
  publicKeys: readonly UnusablePublicKey[],
): string[] {
  return [
    ...keys
      .filter(({ isRevoked }) => !isRevoked)
      .map(
        ({ id, accountName, problem }) =>
          `API key ${quote(id)} of account ${quote(accountName)} is refused: ${problem}`,
      ),
    ...publicKeys.map(
      ({ publicKey, accountName, problem }) =>
        `public key ${quote(publicKey)} of account ${quote(accountName)} is refused: ${problem}`,
    ),
  ];
}

const namedMax = 3;

/** One line for all of them; empty: none. */
export function unusableKeysSummary(texts: readonly string[]): string {
  const more = texts.length - namedMax;
  const named = texts.slice(0, namedMax).join("; ");
  return more > 0 ? `${named}; and ${counted(more, "more key")}` : named;
}
