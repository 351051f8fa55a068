// Managed nonces: one account for each key, reserved, made on the chain, then the same one ever after.
//
// Called by nonce-service.ts. The row of the store comes first, and is durable before anything of the
// account reaches the chain: a process that is killed at any step leaves a row that says which account is
// whose, and the next call of its key goes on from there. However many calls wait, one making runs; and
// so many at once, whoever asks.

import type { Clock } from "../../core/clock.ts";
import { isShredwayError, messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { Refresher } from "../../core/refresher.ts";
import {
  type MakingLimits,
  makingLimits,
  NonceAccountCreation,
  type NonceAccountCreationDependencies,
} from "./nonce-account-creation.ts";
import type {
  ManagedNonce,
  ManagedNonceStore,
  NonceAccountView,
  NonceKeys,
  NonceNode,
  NonceOwner,
} from "./types.ts";

export interface ManagedNonceLimits extends MakingLimits {
  /** Makings that run at once; the others wait. */
  readonly makingsMax: number;
}

export const managedNonceLimits: ManagedNonceLimits = { ...makingLimits, makingsMax: 16 };

export interface ManagedNonceDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly node: NonceNode;
  readonly store: ManagedNonceStore;
  readonly keys: NonceKeys;
  /** Base58. */
  readonly encode: (bytes: Uint8Array) => string;
  /** Of an account on its way, and when it was asked (monotonic). */
  readonly seen: (address: string, view: NonceAccountView | null, askedMs: number) => void;
}

/** So long a failure stands: whoever asks again and again costs nothing. */
const failureRestMs = 2_000;
/** Others may be as quick a few times, not for ever. */
const reserveTriesMax = 64;

export class ManagedNonces {
  readonly #dependencies: ManagedNonceDependencies;
  readonly #limits: ManagedNonceLimits;
  /** Those that are ready. */
  readonly #byKey = new Map<string, ManagedNonce>();
  readonly #byAddress = new Map<string, ManagedNonce>();
  readonly #jobs = new Map<string, Promise<ManagedNonce>>();
  /** What a failed job leaves to the next one. By index. */
  readonly #makings = new Map<number, NonceAccountCreation>();
  readonly #closing = new AbortController();
  readonly #refresher: Refresher;
  readonly #endWatch: () => void;
  /** By key: told again without asking, for a moment. */
  readonly #failures = new Map<string, { readonly error: Error; readonly untilMs: number }>();
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
        dependencies.log.warn(`managed nonces could not be read again: ${messageOf(error)}`);
      },
    });
    this.#endWatch = dependencies.store.onForeignChange(() => this.#refresher.notifyChange());
  }

  /** Ready ones. */
  get size(): number {
    return this.#byKey.size;
  }

  /** On their way, or waiting for others. */
  get making(): number {
    return this.#jobs.size;
  }

  /** null: none of the service's, or not ready. */
  find(address: string): ManagedNonce | null {
    return this.#byAddress.get(address) ?? null;
  }

  /**
   * The account of that key, ready. Throws ShredwayError "nonce_failed", "store_failed", "rpc_failed", or
   * "nonce_pending" when the service closes. May last minutes.
   */
  async ready(owner: NonceOwner): Promise<ManagedNonce> {
    return this.#byKey.get(owner.keyId) ?? this.#job(owner);
  }

  /** The chain seems to have lost it: another chain, e.g. of a sandbox. Throws as `ready`. */
  again(owner: NonceOwner): Promise<ManagedNonce> {
    return this.#job(owner);
  }

  /** Throws "nonce_failed" when the account is not derived from the present key file. */
  checkDerived({ index, address }: ManagedNonce): void {
    const derived = this.#dependencies.keys.account(index).address;
    if (derived === address) return;
    throw new ShredwayError(
      "nonce_failed",
      `nonce account ${address} (index ${index}): expected it to be derived from the authority key ` +
        `file, which gives ${derived}; it was made with another file`,
    );
  }

  /** Jobs under way fail with "nonce_pending". Settles when all have ended. Idempotent. */
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
      if (nonce.state === "ready") this.#remember(nonce);
      if (this.#dependencies.keys.account(nonce.index).address !== nonce.address)
        others.push(nonce.address);
    }
    if (others.length === 0 || this.#hasWarned) return;
    this.#hasWarned = true;
    this.#dependencies.log.warn(
      `nonces.authorityKeyFile: expected the file that the accounts were made with, got another: ` +
        `${others.length} nonce accounts cannot be used, ${others[0]} first`,
    );
  }

  #remember(nonce: ManagedNonce): void {
    this.#byKey.set(nonce.keyId, nonce);
    this.#byAddress.set(nonce.address, nonce);
  }

  #job(owner: NonceOwner): Promise<ManagedNonce> {
    const { keyId } = owner;
    const failure = this.#failures.get(keyId);
    if (failure && this.#nowMs() < failure.untilMs) return Promise.reject(failure.error);
    let job = this.#jobs.get(keyId);
    if (!job) {
      job = this.#make(owner).finally(() => this.#jobs.delete(keyId));
      this.#jobs.set(keyId, job);
      // Callers may be gone by then.
      job.catch((error: unknown) => {
        if (isShredwayError(error, "nonce_failed")) {
          this.#failures.set(keyId, { error, untilMs: this.#nowMs() + failureRestMs });
        }
        if (!this.#closing.signal.aborted) {
          this.#dependencies.log.warn({ keyId }, `nonce account not made: ${messageOf(error)}`);
        }
      });
    }
    return job;
  }

  async #make(owner: NonceOwner): Promise<ManagedNonce> {
    await this.#enter();
    try {
      const nonce = await this.#reserve(owner);
      this.checkDerived(nonce);
      const making = this.#makings.get(nonce.index) ?? this.#makingOf(nonce);
      this.#makings.set(nonce.index, making);
      await making.run(this.#closing.signal);
      await this.#dependencies.store.setReady(nonce.index);
      this.#makings.delete(nonce.index);
      const ready = { ...nonce, state: "ready" as const };
      this.#remember(ready);
      const { keyId, address } = ready;
      this.#dependencies.log.info({ keyId, address }, "nonce account ready");
      return ready;
    } finally {
      this.#leave();
    }
  }

  async #enter(): Promise<void> {
    while (this.#running >= this.#limits.makingsMax && !this.#closing.signal.aborted) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#running++;
  }

  #leave(): void {
    this.#running--;
    this.#waiting.shift()?.();
  }

  /** The row of the key, made when there is none. Another process may be at the same. */
  async #reserve({ keyId, accountId }: NonceOwner): Promise<ManagedNonce> {
    const { store, keys, clock } = this.#dependencies;
    for (let tries = 0; tries < reserveTriesMax; tries++) {
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
      `the store: expected a free index for a nonce account in ${reserveTriesMax} tries, got none`,
    );
  }

  #makingOf({ index, keyId, address }: ManagedNonce): NonceAccountCreation {
    const { clock, node, keys, store, encode, seen } = this.#dependencies;
    const dependencies: NonceAccountCreationDependencies = {
      clock,
      node,
      funding: keys.funding,
      account: keys.account(index),
      authority: keys.authority(index),
      encode,
      isReady: async () => (await store.find(keyId))?.state === "ready",
      seen: (view, askedMs) => seen(address, view, askedMs),
    };
    return new NonceAccountCreation(dependencies, this.#limits);
  }
}
