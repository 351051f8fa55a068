// API keys in memory: finds the key of a caller and checks its address ranges.
//
// The gateway queries it for every call, the portal for every session. KeyUpdates fills it from the
// store. A look-up costs one SHA-256. Unknown, expired and revoked keys give the same result after
// the same work, so a caller cannot find out that a key once existed.

import { timingSafeEqual } from "node:crypto";
import { type AddressRange, isInRange, parseAddressRange } from "../../core/addresses/addresses.ts";
import { hashKeyText, keyState } from "./api-keys.ts";
import type { ApiKey } from "./types.ts";

/** Valid keys have at most 47 characters; hashing longer texts would waste time. */
const textLengthMax = 256;

interface Entry {
  readonly key: ApiKey;
  readonly hash: Buffer;
}

/** Compared when no key is found, so that both cases take the same time. */
const absentHash = Buffer.alloc(32);

function parsedRanges(key: ApiKey): readonly AddressRange[] | "nowhere" {
  try {
    return key.allowedRanges.map(parseAddressRange);
  } catch {
    return "nowhere"; // an unreadable range in the store must not allow access
  }
}

export class KeyRing {
  #entries = new Map<string, Entry>();
  #byId = new Map<string, ApiKey>();
  #ranges = new Map<string, readonly AddressRange[] | "nowhere">();
  readonly #replaced: () => void;

  /** `replaced`: called after every change. */
  constructor(replaced: () => void = () => undefined) {
    this.#replaced = replaced;
  }

  /** Replaces all keys. If two keys have the same hash, the later one applies. */
  replace(keys: readonly ApiKey[]): void {
    const usable = keys.filter(({ hash }) => hash.length === absentHash.length);
    const entries = usable.map((key): [string, Entry] => {
      const hash = Buffer.from(key.hash);
      return [hash.toString("latin1"), { key, hash }];
    });
    this.#entries = new Map(entries);
    this.#byId = new Map(usable.map((key) => [key.id, key]));
    this.#ranges = new Map(keys.map((key) => [key.id, parsedRanges(key)]));
    this.#replaced();
  }

  /** Includes revoked and expired keys. */
  get size(): number {
    return this.#entries.size;
  }

  /** Numbers of keys by state, and of accounts with a key in force. */
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

  /** The key with that text; null if it is unknown, expired or revoked. */
  find(text: string, nowNs: bigint): ApiKey | null {
    if (text.length > textLengthMax) return null;
    const hash = hashKeyText(text);
    const entry = this.#entries.get(hash.toString("latin1"));
    // Callers cannot choose the hash; the constant-time comparison protects even if they could.
    const isSame = timingSafeEqual(hash, entry?.hash ?? absentHash);
    return entry && isSame && keyState(entry.key, nowNs) === "in force" ? entry.key : null;
  }

  /** The key with that id; null if it is unknown, expired or revoked. */
  get(id: string, nowNs: bigint): ApiKey | null {
    const key = this.#byId.get(id);
    return key && keyState(key, nowNs) === "in force" ? key : null;
  }

  /** Whether the key may be used from `remoteAddress` (16 bytes). */
  allows({ id }: ApiKey, remoteAddress: Uint8Array): boolean {
    const ranges = this.#ranges.get(id);
    if (ranges === undefined || ranges === "nowhere") return false;
    return ranges.length === 0 || ranges.some((range) => isInRange(remoteAddress, range));
  }
}
