// Accounts as subscribers of the block engine for stock proxies: registered public keys with their tiers.
//
// Created by open-service.ts. Compared once a second, because public keys, API keys, tiers and the time decide
// together. The relay's table is published only after a change, and again while the relay rejects it.

import { isDeepStrictEqual } from "node:util";
import type { Clock, Timer } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import { FailureStreak } from "../core/failure-streak.ts";
import type { Logger } from "../core/log.ts";
import type { PublicKeys } from "../gateway/accounts/public-keys.ts";
import type { Subscriber } from "../relay/shredstream/subscriber-leases.ts";
import type { SubscriberService } from "../relay/shredstream/subscriber-service.ts";
import type { Tiers } from "../shreds/tiers/types.ts";

interface AccountSubscribersDependencies {
  readonly publicKeys: Pick<PublicKeys, "withPurpose" | "apiKeyOf">;
  readonly tiers: Pick<Tiers, "tierOf">;
  readonly subscribers: Pick<SubscriberService, "setAccountSubscribers">;
  readonly clock: Clock;
  readonly log: Pick<Logger, "error">;
}

/** A removed public key must have no effect after a second. */
const checkMs = 250;
/** About every minute. */
const logEvery = 240;
/** Addresses that one public key may use at the same time. */
const destinationsPerKey = 1;

export class AccountSubscribers {
  readonly #dependencies: AccountSubscribersDependencies;
  readonly #timer: Timer;
  readonly #failures = new FailureStreak(logEvery);
  /** Subscribers in force. */
  #present: readonly Subscriber[] = [];

  constructor(dependencies: AccountSubscribersDependencies) {
    this.#dependencies = dependencies;
    this.#timer = dependencies.clock.every(checkMs, () => this.#check());
  }

  close(): void {
    this.#timer.cancel();
  }

  #check(): void {
    const { publicKeys, tiers, subscribers, log } = this.#dependencies;
    const next = publicKeys
      .withPurpose("shredstream")
      .filter((each) => publicKeys.apiKeyOf(each) !== null)
      .map(({ publicKey, accountId, accountName }) => ({
        name: `${accountName}/${publicKey.slice(0, 8)}`,
        publicKey,
        tier: tiers.tierOf(accountId),
        destinations: destinationsPerKey,
        accountId,
      }));
    if (isDeepStrictEqual(next, this.#present)) return;
    try {
      subscribers.setAccountSubscribers(next);
      this.#present = next;
      this.#failures.end();
    } catch (error) {
      if (!this.#failures.add(messageOf(error))) return;
      log.error({ err: error }, "shredstream: the accounts' subscribers could not be published");
    }
  }
}
