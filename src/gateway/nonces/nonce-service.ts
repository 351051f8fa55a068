// The service's durable nonces: present values, managed accounts and co-signing.
//
// Created by the composition. getNonce and sendIdeal call it; the submission pipeline reports
// landed transactions. A managed authority signs only the bytes that CoSigningCheck inspected, at
// the place it found, and only with the present nonce value.

import type { Clock, Timer } from "../../core/clock.ts";
import { isShredwayError, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { parsePubkey, pubkeyBytes, pubkeyOf } from "../../core/primitives.ts";
import type { CoSigningCheck } from "./co-signing.ts";
import {
  type ManagedNonceDependencies,
  type ManagedNonceLimits,
  ManagedNonces,
  managedNonceLimits,
} from "./managed-nonces.ts";
import { type NonceValueLimits, NonceValues, valueLimitsFor } from "./nonce-values.ts";
import type {
  ManagedNonce,
  ManagedNonceStore,
  NonceInfo,
  NonceKeys,
  NonceNode,
  NonceOwner,
  Nonces,
} from "./types.ts";

interface NonceServiceDependencies {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  /** Must answer or fail before an HTTP connection times out. */
  readonly node: NonceNode;
  readonly store: ManagedNonceStore;
  /** null: managed nonces are disabled. */
  readonly keys: NonceKeys | null;
  readonly check: CoSigningCheck;
  /** Base58. */
  readonly encode: (bytes: Uint8Array) => string;
}

export interface NonceServiceLimits {
  readonly values: NonceValueLimits;
  readonly managed: ManagedNonceLimits;
  /** Maximum wait of a call for its account; HTTP connections time out after 10 s. */
  readonly waitMs: number;
  readonly retryAfterSeconds: number;
}

export function nonceServiceLimitsFor(pollMs: number): NonceServiceLimits {
  return {
    values: valueLimitsFor(pollMs),
    managed: managedNonceLimits,
    waitMs: 8_000,
    retryAfterSeconds: 2,
  };
}

export interface NonceServiceSnapshot {
  /** Managed accounts that are ready, and those that are being created. */
  readonly managed: number;
  readonly creating: number;
  /** Accounts with a cached value. */
  readonly inUse: number;
  /** Balance of the funding key when an account was last created; null: not known. */
  readonly fundingLamports: bigint | null;
}

function isInvalid(thrown: unknown): boolean {
  return isShredwayError(thrown, "nonce_invalid");
}

export class NonceService implements Nonces {
  readonly #dependencies: NonceServiceDependencies;
  readonly #limits: NonceServiceLimits;
  readonly #values: NonceValues;
  #managed: ManagedNonces | null = null;

  /** Throws ShredwayError "store_failed". */
  static async open(
    dependencies: NonceServiceDependencies,
    limits: NonceServiceLimits,
  ): Promise<NonceService> {
    const service = new NonceService(dependencies, limits);
    const { keys } = dependencies;
    if (keys) {
      const managedDependencies: ManagedNonceDependencies = {
        ...dependencies,
        keys,
        observed: (address, view, askedMs) => service.#values.observe(address, view, askedMs),
      };
      service.#managed = await ManagedNonces.open(managedDependencies, limits.managed);
    }
    return service;
  }

  private constructor(dependencies: NonceServiceDependencies, limits: NonceServiceLimits) {
    this.#dependencies = dependencies;
    this.#limits = limits;
    this.#values = new NonceValues(dependencies, limits.values);
  }

  async managed(owner: NonceOwner): Promise<NonceInfo> {
    const managed = this.#managed;
    if (managed) return this.#inTime(this.#infoOf(managed, owner));
    throw new ShredwayError(
      "nonce_unavailable",
      "managed nonces are disabled: nonces.fundingKeyFile is not configured; " +
        "pass the public key of your own nonce account",
    );
  }

  async of(account: string, accountId?: string): Promise<NonceInfo> {
    const { value, authority } = await this.#values.get(account, accountId);
    return { nonce: value, nonceAccount: account, nonceAuthority: authority };
  }

  ownerOf(account: string): NonceOwner | null {
    const nonce = this.#managed?.find(account);
    return nonce ? { accountId: nonce.accountId, keyId: nonce.keyId } : null;
  }

  async coSign(account: string, wire: Uint8Array): Promise<Uint8Array> {
    const copy = Uint8Array.from(wire); // the caller cannot change the bytes between check and signature
    const { managed, keys, nonce } = this.#managedAt(account);
    managed.checkDerived(nonce);
    const authority = keys.authority(nonce.index);
    const place = this.#dependencies.check.place(
      copy,
      pubkeyBytes(parsePubkey(account)),
      authority.publicKey,
    );
    await this.#checkValue(account, authority.address, pubkeyOf(place.lifetime));
    const { signatureAt, messageBegin, messageEnd } = place;
    copy.set(authority.sign(copy.subarray(messageBegin, messageEnd)), signatureAt);
    return copy;
  }

  /**
   * NonceListener of submission/types.ts: called when a transaction that advances the nonce was
   * observed.
   */
  advanced(account: Uint8Array, value: Uint8Array): void {
    this.#values.advanced(pubkeyOf(account), pubkeyOf(value));
  }

  snapshot(): NonceServiceSnapshot {
    return {
      managed: this.#managed?.size ?? 0,
      creating: this.#managed?.creating ?? 0,
      inUse: this.#values.size,
      fundingLamports: this.#managed?.fundingLamports ?? null,
    };
  }

  /** Settles when no query of the node or the store is running. Idempotent. */
  async close(): Promise<void> {
    this.#values.close();
    await this.#managed?.close();
  }

  async #infoOf(managed: ManagedNonces, owner: NonceOwner): Promise<NonceInfo> {
    const nonce = await managed.ready(owner);
    managed.checkDerived(nonce);
    try {
      return await this.of(nonce.address, owner.accountId);
    } catch (error) {
      if (!isInvalid(error)) throw error;
    }
    const { address } = await managed.recheck(owner);
    return this.of(address, owner.accountId);
  }

  /** Rejects after `waitMs`; `work` itself continues. */
  async #inTime<T>(work: Promise<T>): Promise<T> {
    const { waitMs, retryAfterSeconds } = this.#limits;
    let timer: Timer | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = this.#dependencies.clock.after(waitMs, () =>
        reject(
          new ShredwayError(
            "nonce_pending",
            `the nonce account is being created; retry in ${retryAfterSeconds} s`,
            { details: { retryAfterSeconds } },
          ),
        ),
      );
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      timer?.cancel();
    }
  }

  #managedAt(account: string): { managed: ManagedNonces; keys: NonceKeys; nonce: ManagedNonce } {
    const managed = this.#managed;
    const { keys } = this.#dependencies;
    const nonce = managed?.find(account);
    if (managed && keys && nonce) return { managed, keys, nonce };
    throw new ShredwayError(
      "co_signing_refused",
      `nonce account ${account}: expected a nonce account that this service manages`,
    );
  }

  async #checkValue(account: string, authority: string, lifetime: string): Promise<void> {
    let known = this.#values.recent(account);
    // The caller may know a newer value than the cache.
    if (known?.value !== lifetime) known = await this.#values.getNow(account);
    if (known.authority !== authority) {
      throw new ShredwayError(
        "nonce_invalid",
        `nonce account ${account}: expected authority ${authority}, got ${known.authority}`,
      );
    }
    if (known.value === lifetime) return;
    throw new ShredwayError(
      "nonce_stale",
      `nonce account ${account}: expected its present value ${known.value} as the blockhash, got ${lifetime}`,
    );
  }
}
