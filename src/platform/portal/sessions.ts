// Sessions: who has signed in with which key, and does that still hold?
//
// Asked for every request of the page and once a second for every live feed. A session is a random text
// in a cookie; kept is its hash, in memory: a restart ends all. It ends with its time, and at once when
// its key is revoked, expires or may not be used from the caller's address any more. The key's text is
// not kept anywhere.

import { randomBytes } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { hashKeyText } from "../../gateway/accounts/api-keys.ts";
import type { ApiKey } from "../../gateway/accounts/types.ts";

export const sessionsPerKeyMax = 16;
export const sessionsMax = 4096;
const tokenBytes = 32;
const tokenShape = /^[A-Za-z0-9_-]{43}$/;

export interface SessionKeys {
  /** null: unknown, revoked, expired. Wall time. */
  get(id: string, nowNs: bigint): ApiKey | null;
  /** 16 bytes. */
  allows(key: ApiKey, address: Uint8Array): boolean;
}

interface SessionsDependencies {
  readonly clock: Clock;
  readonly keys: SessionKeys;
  readonly hours: number;
}

/** One of them; the same object as long as it lasts. `keyId` changes when its own page rotates the key. */
export interface Session {
  /** Of its token. */
  readonly hash: string;
  keyId: string;
  readonly accountId: string;
  /** Wall time. */
  readonly endsNs: bigint;
}

interface Entry {
  readonly session: Session;
  /** Wall time may be set; this one holds, too. */
  readonly endsMonotonicNs: bigint;
}

const hourNs = 3_600_000_000_000n;

function hashOf(token: string): string {
  return hashKeyText(token).toString("hex");
}

export class Sessions {
  readonly #dependencies: SessionsDependencies;
  /** By hash; the longest unused first. */
  readonly #entries = new Map<string, Entry>();

  constructor(dependencies: SessionsDependencies) {
    this.#dependencies = dependencies;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** A new one; where there are too many, the longest unused ends. */
  open(key: ApiKey): { readonly token: string; readonly session: Session } {
    const { clock, hours } = this.#dependencies;
    const lengthNs = BigInt(hours) * hourNs;
    const token = randomBytes(tokenBytes).toString("base64url");
    const hash = hashOf(token);
    const endsNs = clock.nowNs() + lengthNs;
    const session: Session = { hash, keyId: key.id, accountId: key.accountId, endsNs };
    this.#trim(key.id);
    const endsMonotonicNs = clock.monotonicNs() + lengthNs;
    this.#entries.set(hash, { session, endsMonotonicNs });
    return { token, session };
  }

  /** null: none, or it has ended. `address`: of the caller, 16 bytes. */
  find(token: string | undefined, address: Uint8Array): Session | null {
    if (token === undefined || !tokenShape.test(token)) return null;
    const entry = this.#entries.get(hashOf(token));
    if (!entry || !this.#holds(entry, address)) return null;
    const { session } = entry;
    this.#entries.delete(session.hash);
    this.#entries.set(session.hash, entry);
    return session;
  }

  /** The key of one that `find` returned before; null: it has ended since. */
  keyOf(session: Session, address: Uint8Array): ApiKey | null {
    const entry = this.#entries.get(session.hash);
    return entry ? this.#holds(entry, address) : null;
  }

  end(token: string | undefined): void {
    if (token !== undefined && tokenShape.test(token)) this.#entries.delete(hashOf(token));
  }

  #holds(entry: Entry, address: Uint8Array): ApiKey | null {
    const { clock, keys } = this.#dependencies;
    const { session } = entry;
    const nowNs = clock.nowNs();
    const key = keys.get(session.keyId, nowNs);
    const isOver = session.endsNs <= nowNs || entry.endsMonotonicNs <= clock.monotonicNs();
    if (!key || key.accountId !== session.accountId || isOver) {
      this.#entries.delete(session.hash);
      return null;
    }
    // Elsewhere it may go on: somebody who moves has to come back, not to sign in again.
    return keys.allows(key, address) ? key : null;
  }

  #trim(keyId: string): void {
    const ofKey = [...this.#entries.values()].filter(({ session }) => session.keyId === keyId);
    for (const { session } of ofKey.slice(0, Math.max(0, ofKey.length - sessionsPerKeyMax + 1))) {
      this.#entries.delete(session.hash);
    }
    for (const hash of this.#entries.keys()) {
      if (this.#entries.size < sessionsMax) return;
      this.#entries.delete(hash);
    }
  }
}
