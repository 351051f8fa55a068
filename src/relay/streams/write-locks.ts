// Write locks: how often transactions of recent blocks lock an account for writing.
//
// Used by getTipAccounts to order tip addresses by contention. It is a subscriber of the decoded streams:
// it counts each transaction that the relay's shreds contain and that has one of the accounts as writable,
// from any sender, also failed ones. Votes are not counted. The observation begins with the first question
// and ends an hour after the last one, because matching costs CPU time on every transaction.

import type { Clock, Timer } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import type { Attachment, StreamHub } from "./stream-hub.ts";
import { readWireTransaction, type WireTransaction } from "./wire-transaction.ts";

interface WriteLocksDependencies {
  readonly hub: Pick<StreamHub, "attach" | "room">;
  /** The tier with the most sources. */
  readonly tier: string;
  readonly decode: (address: string) => Uint8Array | null;
  readonly clock: Clock;
}

/** Write locks by account in one part of the window. */
type Bucket = Map<string, number>;

const bucketSeconds = 10;
/** The window: the last full parts and the present one. */
const bucketsMax = 6;
/** An order that is younger would be chance. */
const leastSeconds = 10;
/** Without a new slot for this time, the source is silent. */
const silenceNs = 5_000_000_000n;
const leaseNs = 3_600_000_000_000n;
const filterName = "write-locks";
const nsPerSecond = 1_000_000_000n;

function keyOf(account: Uint8Array): string {
  return Buffer.from(account.buffer, account.byteOffset, account.byteLength).toString("latin1");
}

/** Addresses that the message itself names as writable. */
function* writableKeys({ header, keys }: WireTransaction): Iterable<Uint8Array> {
  const [signers, readonlySigned, readonlyUnsigned] = header;
  for (const [i, key] of keys.entries()) {
    const isSigner = i < signers;
    const end = isSigner ? signers - readonlySigned : keys.length - readonlyUnsigned;
    if (i < end) yield key;
  }
}

export class WriteLocks {
  readonly #dependencies: WriteLocksDependencies;
  readonly tier: string;
  readonly wantsEntries = false;
  #attachment: Attachment | null = null;
  #timer: Timer | null = null;
  /** The bytes as latin1, by address. */
  #accounts = new Map<string, string>();
  /** Counted accounts, as latin1. */
  #watched = new Set<string>();
  /** The newest is the last. */
  #buckets: Bucket[] = [];
  #begunNs = 0n;
  #askedNs = 0n;
  #slotNs: bigint | null = null;

  constructor(dependencies: WriteLocksDependencies) {
    this.#dependencies = dependencies;
    this.tier = dependencies.tier;
  }

  /**
   * Write locks of each of `addresses` in the last minute. `all`: every address that may be asked for;
   * a change of it begins the observation again. Throws ShredwayError "contention_unknown".
   */
  locksOf(addresses: readonly string[], all: readonly string[]): number[] {
    this.#observe(all);
    this.#askedNs = this.#nowNs;
    this.#check(this.#askedNs);
    return addresses.map((address) => {
      const key = this.#accounts.get(address) ?? "";
      return this.#buckets.reduce((sum, locks) => sum + (locks.get(key) ?? 0), 0);
    });
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#attachment?.detach();
    this.#attachment = null;
    this.#accounts = new Map();
    this.#watched = new Set();
    this.#buckets = [];
    this.#slotNs = null;
  }

  // ---- the hub's subscriber ----

  onTransaction({ content, loadedAddresses }: StreamMessage): void {
    const locks = this.#bucket;
    const count = (account: Uint8Array): void => {
      const key = keyOf(account);
      if (this.#watched.has(key)) locks.set(key, (locks.get(key) ?? 0) + 1);
    };
    for (const account of writableKeys(readWireTransaction(content))) count(account);
    for (const account of loadedAddresses?.writable ?? []) count(account);
  }

  onEntries(): void {}

  onEvent({ kind }: StreamMessage): void {
    if (kind !== "slot_begin") return;
    this.#slotNs = this.#nowNs;
  }

  /** Losses concern all accounts alike. */
  onLoss(): void {}

  flush(): boolean {
    return false;
  }

  #observe(all: readonly string[]): void {
    const isKnown =
      all.length === this.#accounts.size && all.every((one) => this.#accounts.has(one));
    if (isKnown && this.#attachment) return;
    const { hub, decode, clock } = this.#dependencies;
    this.close();
    const accounts = all.flatMap((address) => decode(address) ?? []);
    const room = hub.room();
    if (room.filters < 1 || room.accounts < accounts.length) {
      const message = `the filters of decoded streams leave room for ${room.accounts} accounts, expected ${accounts.length}; retry later`;
      throw unknown(message, 60);
    }
    this.#accounts = new Map(
      all.map((address) => [address, keyOf(decode(address) ?? new Uint8Array())]),
    );
    this.#watched = new Set(this.#accounts.values());
    this.#attachment = hub.attach(this);
    const anyFilter = { votes: "none", signature: null, exclude: [], required: [] } as const;
    this.#attachment.setFilters([{ ...anyFilter, name: filterName, include: accounts }]);
    this.#begunNs = this.#nowNs;
    this.#buckets = [new Map()];
    this.#timer = clock.every(bucketSeconds * 1000, () => this.#turn());
  }

  #turn(): void {
    if (this.#nowNs - this.#askedNs > leaseNs) this.close();
    else this.#buckets = [...this.#buckets, new Map()].slice(-bucketsMax);
  }

  #check(nowNs: bigint): void {
    const seconds = Number(nowNs - this.#begunNs) / 1e9;
    if (seconds < leastSeconds) {
      const wait = Math.ceil(leastSeconds - seconds);
      throw unknown(
        `the observation of write locks began ${Math.floor(seconds)} s ago; retry in ${wait} s`,
        wait,
      );
    }
    const isSilent = this.#slotNs === null || nowNs - this.#slotNs > silenceNs;
    if (!isSilent) return;
    const since = nowNs - (this.#slotNs ?? this.#begunNs);
    throw unknown(
      `no shreds of a new slot for ${since / nsPerSecond} s, so write locks are not known; retry in 10 s`,
      10,
    );
  }

  get #bucket(): Bucket {
    const newest = this.#buckets.at(-1);
    if (newest) return newest;
    const bucket: Bucket = new Map();
    this.#buckets.push(bucket);
    return bucket;
  }

  get #nowNs(): bigint {
    return this.#dependencies.clock.monotonicNs();
  }
}

function unknown(message: string, retryAfterSeconds: number): ShredwayError {
  return new ShredwayError("contention_unknown", message, { details: { retryAfterSeconds } });
}
