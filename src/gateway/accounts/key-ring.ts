// The keys in memory: whose key is this, and may it be used from there?
//
// Asked by the gateway for every call and by the portal for every session; filled from the store at the start and after every change.
// One SHA-256 and one look-up. Whether a key is unknown, expired or revoked, the answer is the same
// and takes the same work: nobody learns from outside that a key ever was one.

import { timingSafeEqual } from "node:crypto";
import { type AddressRange, isInRange, parseAddressRange } from "../../core/addresses/addresses.ts";
import { hashKeyText, keyState } from "./api-keys.ts";
import type { ApiKey } from "./types.ts";

/** Ours have at most 47 characters; longer ones would only cost time. */
const textLengthMax = 256;

interface Entry {
  readonly key: ApiKey;
  readonly hash: Buffer;
}

/** Stands in for keys that are not there. Its hash is nobody's, and it is never told. */
const nobodysHash = Buffer.alloc(32);

function rangesOf(key: ApiKey): readonly AddressRange[] | "nowhere" {
  try {
    return key.allowedRanges.map(parseAddressRange);
  } catch {
    return "nowhere"; // written by another hand: a limit that cannot be read lets nobody in
  }
}

export class KeyRing {
  #entries = new Map<string, Entry>();
  #byId = new Map<string, ApiKey>();
  #ranges = new Map<string, readonly AddressRange[] | "nowhere">();

  /** From now on these and no others. Two with one hash: the later one holds. */
  replace(keys: readonly ApiKey[]): void {
    const usable = keys.filter(({ hash }) => hash.length === nobodysHash.length);
    const entries = usable.map((key): [string, Entry] => {
      const hash = Buffer.from(key.hash);
      return [hash.toString("latin1"), { key, hash }];
    });
    this.#entries = new Map(entries);
    this.#byId = new Map(usable.map((key) => [key.id, key]));
    this.#ranges = new Map(keys.map((key) => [key.id, rangesOf(key)]));
  }

  /** Revoked and expired ones, too. */
  get size(): number {
    return this.#entries.size;
  }

  /** How many there are by state, and how many accounts have one in force. */
  counts(nowNs: bigint): {
    readonly states: ReadonlyMap<string, number>;
    readonly accounts: number;
  } {
    const states = new Map<string, number>([
      ["in_force", 0],
      ["expired", 0],
      ["revoked", 0],
    ]);
    const accounts = new Set<string>();
    for (const { key } of this.#entries.values()) {
      const state = keyState(key, nowNs);
      if (state === "in force") accounts.add(key.accountId);
      const name = state === "in force" ? "in_force" : state;
      states.set(name, (states.get(name) ?? 0) + 1);
    }
    return { states, accounts: accounts.size };
  }

  /** The key with that text when it may be used now; null for every other text. */
  find(text: string, nowNs: bigint): ApiKey | null {
    if (text.length > textLengthMax) return null;
    const hash = hashKeyText(text);
    const entry = this.#entries.get(hash.toString("latin1"));
    // The look-up is by a hash that callers cannot steer; the comparison holds even if they could.
    const isSame = timingSafeEqual(hash, entry?.hash ?? nobodysHash);
    return entry && isSame && keyState(entry.key, nowNs) === "in force" ? entry.key : null;
  }

  /** The key with that id while it may be used; null for every other id. */
  get(id: string, nowNs: bigint): ApiKey | null {
    const key = this.#byId.get(id);
    return key && keyState(key, nowNs) === "in force" ? key : null;
  }

  /** Whether the key's ranges hold the address, 16 bytes. */
  allows({ id }: ApiKey, remoteAddress: Uint8Array): boolean {
    const ranges = this.#ranges.get(id);
    if (ranges === undefined || ranges === "nowhere") return false;
    return ranges.length === 0 || ranges.some((range) => isInRange(remoteAddress, range));
  }
}
