// Sessions: signed-in browsers with their API keys.
//
// Checked for every request of the page and once a second for every live feed. A session is a
// random token in a cookie. Memory holds only the token's hash, so a restart ends all sessions. A
// session ends when its time is over or its key is revoked or expires. It is unusable while its
// key does not allow the client's address. The key's text is never stored.

import { randomBytes } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { hashKeyText } from "../../gateway/accounts/api-keys.ts";
import type { ApiKey } from "../../gateway/accounts/types.ts";

export const sessionsPerKeyMax = 16;
export const sessionsMax = 4096;
const tokenBytes = 32;
const tokenShape = /^[A-Za-z0-9_-]{43}$/;

export interface SessionKeys {
  /** Null for an unknown, revoked or expired key. `nowNs` is wall time. */
  get(id: string, nowNs: bigint): ApiKey | null;
  /** `address` has 16 bytes. */
  allows(key: ApiKey, address: Uint8Array): boolean;
}

interface SessionsDependencies {
  readonly clock: Clock;
  readonly keys: SessionKeys;
  readonly hours: number;
}

/** One object per session for its whole life. `keyId` changes when its page rotates the key. */
export interface Session {
  /** Hash of the token. */
  readonly hash: string;
  keyId: string;
  readonly accountId: string;
  /** End in wall time. */
  readonly endsNs: bigint;
}

interface Entry {
  readonly session: Session;
  /** Also limits the session if the wall clock is set back. */
  readonly endsMonotonicNs: bigint;
}

const hourNs = 3_600_000_000_000n;

function hashOf(token: string): string {
  return hashKeyText(token).toString("hex");
}

export class Sessions {
  readonly #dependencies: SessionsDependencies;
  /** Sessions by hash, least recently used first. */
  readonly #entries = new Map<string, Entry>();

  constructor(dependencies: SessionsDependencies) {
    this.#dependencies = dependencies;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Opens a session. If there are too many, the least recently used one ends. */
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

  /** Null if unknown or ended. `address` is the client's, 16 bytes. */
  find(token: string | undefined, address: Uint8Array): Session | null {
    if (token === undefined || !tokenShape.test(token)) return null;
    const entry = this.#entries.get(hashOf(token));
    if (!entry || !this.#validKey(entry, address)) return null;
    const { session } = entry;
    this.#entries.delete(session.hash);
    this.#entries.set(session.hash, entry);
    return session;
  }

  /** Returns the key of a session that `find` returned; null if the session has ended since. */
  keyOf(session: Session, address: Uint8Array): ApiKey | null {
    const entry = this.#entries.get(session.hash);
    return entry ? this.#validKey(entry, address) : null;
  }

  end(token: string | undefined): void {
    if (token !== undefined && tokenShape.test(token)) this.#entries.delete(hashOf(token));
  }

  #validKey(entry: Entry, address: Uint8Array): ApiKey | null {
    const { clock, keys } = this.#dependencies;
    const { session } = entry;
    const nowNs = clock.nowNs();
    const key = keys.get(session.keyId, nowNs);
    const isOver = session.endsNs <= nowNs || entry.endsMonotonicNs <= clock.monotonicNs();
    if (!key || key.accountId !== session.accountId || isOver) {
      this.#entries.delete(session.hash);
      return null;
    }
    // Keep the session: at an allowed address it works again without another sign-in.
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
