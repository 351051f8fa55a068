// The public keys of a test's gateway: real rules over a list in memory.

import type { Clock } from "../../../src/core/clock.ts";
import type {
  PublicKeyPurpose,
  RegisteredPublicKey,
} from "../../../src/gateway/accounts/public-key-types.ts";
import { PublicKeys } from "../../../src/gateway/accounts/public-keys.ts";
import type { ApiKey } from "../../../src/gateway/accounts/types.ts";

export class TestPublicKeys {
  readonly publicKeys: PublicKeys;
  #all: readonly RegisteredPublicKey[] = [];

  constructor(clock: Clock, apiKeys: () => Iterable<ApiKey>) {
    const refresh = (): Promise<void> => {
      this.publicKeys.replace(this.#all);
      return Promise.resolve();
    };
    this.publicKeys = new PublicKeys({
      store: {
        add: (key) => {
          this.#all = [...this.#all, key];
          return Promise.resolve("added");
        },
        remove: (_accountId, publicKey) => {
          this.drop(publicKey);
          return Promise.resolve(true);
        },
      },
      apiKey: (id) => [...apiKeys()].find((key) => key.id === id) ?? null,
      refresh,
      clock,
      log: { info: () => {} },
    });
  }

  /** Registers without a proof. */
  readonly add = (
    { id, accountId, accountName }: ApiKey,
    publicKey: string,
    purpose: PublicKeyPurpose,
  ): void => {
    const key = { publicKey, purpose, accountId, accountName, keyId: id, registeredMs: 0 };
    this.#all = [...this.#all, key];
    this.publicKeys.replace(this.#all);
  };

  drop(publicKey: string): void {
    this.#all = this.#all.filter((each) => each.publicKey !== publicKey);
    this.publicKeys.replace(this.#all);
  }
}
