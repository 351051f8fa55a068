// Managed nonces: creates one nonce account per API key on the chain and returns it on every later
// call.
//
// Called by nonce-service.ts. The store's row is durable before any transaction for the account is
// sent. After a crash at any step, the row says which key owns the account, and the next call of
// that key continues. One creation runs per key however many calls wait; `creationsMax` limits
// creations of all keys.

import type { Clock } from "../../core/clock.ts";
import { isShredwayError, messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { Refresher } from "../../core/refresher.ts";
import {
  NonceAccountCreation,
  type NonceAccountCreationDependencies,
  type NonceCreationLimits,
  nonceCreationLimits,
} from "./nonce-account-creation.ts";
import type {
  ManagedNonce,
  ManagedNonceStore,
  NonceAccountView,
  NonceKeys,
  NonceNode,
  NonceOwner,
} from "./types.ts";

export interface ManagedNonceLimits extends NonceCreationLimits {
  /** Creations that run concurrently; further ones wait. */
  readonly creationsMax: number;
}

export const managedNonceLimits: ManagedNonceLimits = { ...nonceCreationLimits, creationsMax: 16 };

export interface ManagedNonceDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly node: NonceNode;
  readonly store: ManagedNonceStore;
  readonly keys: NonceKeys;
  /** Base58. */
  readonly encode: (bytes: Uint8Array) => string;
  /** Reports the state of an account during creation. `askedMs`: monotonic time of the query. */
  readonly observed: (address: string, view: NonceAccountView | null, askedMs: number) => void;
}

/** Calls within this time after a failure get the same error without a new attempt. */
const failureCacheMs = 2_000;
/** Other processes may reserve the same index first; this limits the retries. */
const reserveAttemptsMax = 64;

/** The text for the log: the cause of a failure may concern the operator alone. */
function operatorTextOf(error: unknown): string {
  const isFailed = isShredwayError(error, "nonce_failed");
  return messageOf(isFailed && error.cause instanceof Error ? error.cause : error);
}

export class ManagedNonces {
  readonly #dependencies: ManagedNonceDependencies;
  readonly #limits: ManagedNonceLimits;
  /** Ready nonces. */
  readonly #byKey = new Map<string, ManagedNonce>();
  readonly #byAddress = new Map<string, ManagedNonce>();
  readonly #jobs = new Map<string, Promise<ManagedNonce>>();
  /** State of failed creations by index; the next attempt resumes from it. */
  readonly #creations = new Map<number, NonceAccountCreation>();
  readonly #closing = new AbortController();
  readonly #refresher: Refresher;
  readonly #endWatch: () => void;
  /** Recent failures by key. */
  readonly #failures = new Map<string, { readonly error: Error; readonly untilMs: number }>();
  #fundingLamports: bigint | null = null;
  #hasWarned = false;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  /** Throws ShredwayError "store_failed". */
  static async open(
    dependencies: ManagedNonceDependencies,
    limits: ManagedNonceLimits = managedNonceLimits,
  ): Promise<ManagedNonces> {
    const nonces = new ManagedNonces(dependencies, limits);
    try {
      await nonces.#refresher.refresh();
    } catch (error) {
      await nonces.close();
      throw error;
    }
    return nonces;
  }

  private constructor(dependencies: ManagedNonceDependencies, limits: ManagedNonceLimits) {
    this.#dependencies = dependencies;
    this.#limits = limits;
    this.#refresher = new Refresher({
      clock: dependencies.clock,
      read: () => this.#load(),
      failed: (error) => {
        dependencies.log.warn(`nonces: managed nonces could not be reloaded: ${messageOf(error)}`);
      },
    });
    this.#endWatch = dependencies.store.onForeignChange(() => this.#refresher.notifyChange());
  }

  /** Number of ready nonces. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Number of creations that run or wait. */
  get creating(): number {
    return this.#jobs.size;
  }

  /** Balance of the funding key when an account was last created; null: none was. */
  get fundingLamports(): bigint | null {
    return this.#fundingLamports;
  }

  /** null: the service does not manage it, or it is not ready. */
  find(address: string): ManagedNonce | null {
    return this.#byAddress.get(address) ?? null;
  }

  /**
   * The ready account of that key, created if missing. Throws ShredwayError "nonce_failed",
   * "store_failed", "rpc_failed", or "nonce_pending" when the service closes. May take minutes.
   */
  async ready(owner: NonceOwner): Promise<ManagedNonce> {
    return this.#byKey.get(owner.keyId) ?? this.#job(owner);
  }

  /**
   * Checks and repairs an account that the chain does not show, e.g. after a sandbox restart.
   * Throws like `ready`.
   */
  recheck(owner: NonceOwner): Promise<ManagedNonce> {
    return this.#job(owner);
  }

  /** Throws "nonce_failed" if the account is not derived from the present key file. */
  checkDerived({ index, address }: ManagedNonce): void {
    const derived = this.#dependencies.keys.account(index).address;
    if (derived === address) return;
    throw new ShredwayError(
      "nonce_failed",
      `nonce account ${address} (index ${index}): expected it to be derived from the authority key ` +
        `file, which gives ${derived}; restore the file that it was created with`,
    );
  }

  /** Running jobs fail with "nonce_pending". Settles when all have ended. Idempotent. */
  async close(): Promise<void> {
    this.#endWatch();
    this.#refresher.close();
    this.#closing.abort();
    for (const proceed of this.#waiting.splice(0)) proceed();
    await Promise.allSettled(this.#jobs.values());
  }

  #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / 1_000_000n);
  }

  async #load(): Promise<void> {
    const others: string[] = [];
    for (const nonce of await this.#dependencies.store.all()) {
      if (nonce.state === "ready") this.#add(nonce);
      if (this.#dependencies.keys.account(nonce.index).address !== nonce.address)
        others.push(nonce.address);
    }
    if (others.length === 0 || this.#hasWarned) return;
    this.#hasWarned = true;
    this.#dependencies.log.warn(
      `nonces: nonces.authorityKeyFile: expected the file that the accounts were created with, got another: ` +
        `${others.length} nonce accounts cannot be used, the first is ${others[0]}; restore the earlier file`,
    );
  }

  #add(nonce: ManagedNonce): void {
    this.#byKey.set(nonce.keyId, nonce);
    this.#byAddress.set(nonce.address, nonce);
  }

  #job(owner: NonceOwner): Promise<ManagedNonce> {
    const { keyId } = owner;
    const failure = this.#failures.get(keyId);
    if (failure && this.#nowMs() < failure.untilMs) return Promise.reject(failure.error);
    let job = this.#jobs.get(keyId);
    if (!job) {
      job = this.#create(owner).finally(() => this.#jobs.delete(keyId));
      this.#jobs.set(keyId, job);
      // Without this handler, a rejection that no caller awaits would end the process.
      job.catch((error: unknown) => {
        if (isShredwayError(error, "nonce_failed")) {
          this.#failures.set(keyId, { error, untilMs: this.#nowMs() + failureCacheMs });
        }
        if (!this.#closing.signal.aborted) {
          this.#dependencies.log.warn(
            { keyId },
            `nonces: nonce account not created: ${operatorTextOf(error)}`,
          );
        }
      });
    }
    return job;
  }

  async #create(owner: NonceOwner): Promise<ManagedNonce> {
    await this.#enter();
    try {
      const nonce = await this.#reserve(owner);
      this.checkDerived(nonce);
      const creation = this.#creations.get(nonce.index) ?? this.#newCreation(nonce);
      this.#creations.set(nonce.index, creation);
      await creation.run(this.#closing.signal);
      await this.#dependencies.store.setReady(nonce.index);
      this.#creations.delete(nonce.index);
      const ready = { ...nonce, state: "ready" as const };
      this.#add(ready);
      const { keyId, address } = ready;
      this.#dependencies.log.info({ keyId, address }, "nonces: nonce account ready");
      return ready;
    } finally {
      this.#leave();
    }
  }

  async #enter(): Promise<void> {
    while (this.#running >= this.#limits.creationsMax && !this.#closing.signal.aborted) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#running++;
  }

  #leave(): void {
    this.#running--;
    this.#waiting.shift()?.();
  }

  /**
   * Returns the store's row of the key, or reserves a new one. Another process may do the same
   * concurrently.
   */
  async #reserve({ keyId, accountId }: NonceOwner): Promise<ManagedNonce> {
    const { store, keys, clock } = this.#dependencies;
    for (let tries = 0; tries < reserveAttemptsMax; tries++) {
      const found = await store.find(keyId);
      if (found) return found;
      const index = (await store.all()).reduce((max, nonce) => Math.max(max, nonce.index), -1) + 1;
      const { address } = keys.account(index);
      const createdMs = Number(clock.nowNs() / 1_000_000n);
      const nonce = { index, keyId, accountId, address, state: "making" as const, createdMs };
      if (await store.add(nonce)) return nonce;
    }
    throw new ShredwayError(
      "store_failed",
      `nonces: no free nonce account index after ${reserveAttemptsMax} attempts; other processes reserve indexes concurrently, try again`,
    );
  }

  #newCreation({ index, keyId, address }: ManagedNonce): NonceAccountCreation {
    const { clock, node, keys, store, encode, observed } = this.#dependencies;
    const dependencies: NonceAccountCreationDependencies = {
      clock,
      node,
      funding: keys.funding,
      account: keys.account(index),
      authority: keys.authority(index),
      encode,
      isReady: async () => (await store.find(keyId))?.state === "ready",
      observed: (view, askedMs) => observed(address, view, askedMs),
      fundingObserved: (lamports) => {
        this.#fundingLamports = lamports;
      },
    };
    return new NonceAccountCreation(dependencies, this.#limits);
  }
}
