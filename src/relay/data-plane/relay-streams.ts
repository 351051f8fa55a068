// Decoded streams of the relay: publishes the subscribers' filters and reads what matches them.
//
// A typed wrapper of native/stream/, one per relay. Nothing is decoded while no filter is published.

import type { StreamMessageName } from "./names.ts";
import { streamMessageNames } from "./names.ts";
import { describeNative, guarded, type NativeRelay } from "./native.ts";
import { RelayLookupTables } from "./relay-lookup-tables.ts";

/** Conditions of one filter: all of them must hold. */
export interface StreamFilter {
  /** Unique; below `limits().ids`. */
  readonly id: number;
  /** Name of the tier whose sources are decoded. */
  readonly tier: string;
  readonly votes: "any" | "none" | "only";
  /** 64 bytes; the transaction's first signature. null: any. */
  readonly signature: Uint8Array | null;
  /** At least one of these accounts (32 bytes each); empty: any. */
  readonly include: readonly Uint8Array[];
  /** None of these accounts. */
  readonly exclude: readonly Uint8Array[];
  /** All of these accounts. */
  readonly required: readonly Uint8Array[];
}

/** A subscriber that reads the history before it continues live. */
export interface StreamReplay {
  /** 1 to 65535; two replays differ modulo `replaysMax`. */
  readonly id: number;
  readonly tier: string;
  readonly fromSlot: bigint;
  /** Ids of the subscriber's filters. */
  readonly filters: readonly number[];
}

/** Replays at once. */
export const replaysMax = 64;

/** Everything that the relay decodes, for all subscribers. */
export interface StreamTable {
  readonly filters: readonly StreamFilter[];
  /** Tiers whose batches are wanted. */
  readonly entryTiers: ReadonlySet<string>;
  /** Tiers whose history is recorded. */
  readonly historyTiers: ReadonlySet<string>;
  readonly replays: readonly StreamReplay[];
}

/** One message; `content` is valid during the call that receives it. */
export interface StreamMessage {
  readonly kind: StreamMessageName;
  readonly tier: string;
  /** The filters that a transaction matches. */
  readonly filters: readonly number[];
  readonly slot: bigint;
  /**
   * Parent slot of `slot_begin` (0: unknown) and `restart`; of `replay_end` the number of events that the
   * tier had lost; of `replay_refused` the newest slot.
   */
  readonly parent: bigint;
  /** Receive time (CLOCK_REALTIME) of the last shred that it needed. */
  readonly arrivalNs: bigint;
  /** Generation of the filters that it was matched with. */
  readonly generation: number;
  /** First data shred of its batch. */
  readonly batchIndex: number;
  /** Position among the transactions of its batch. */
  readonly ordinal: number;
  /** Data shred that completed it. */
  readonly shredIndex: number;
  readonly isVote: boolean;
  /** The replay that the message belongs to; 0: it is live. */
  readonly replay: number;
  readonly content: Uint8Array;
  /**
   * Addresses that a transaction loads from lookup tables. null: at least one of them is unknown; absent:
   * the transaction has no lookups. Valid during the call that receives it.
   */
  readonly loadedAddresses?: LoadedAddresses | null | undefined;
}

/** 32 bytes each, in the order of the transaction. */
interface LoadedAddresses {
  readonly writable: readonly Uint8Array[];
  readonly readonly: readonly Uint8Array[];
}

/** Messages lost since the start, because nobody read them in time. */
export interface StreamLosses {
  readonly byFilter: (id: number) => bigint;
  /** Batches, by tier. */
  readonly entries: (tier: string) => bigint;
  /** Beginnings, ends and restarts of slots, by tier. */
  readonly events: (tier: string) => bigint;
}

interface StreamHistory {
  /** Bytes in use. */
  readonly bytes: number;
  /** Replayed messages since the start. */
  readonly replayed: bigint;
  /** The lowest slot of the tier that can be replayed; null: none. */
  readonly oldest: (tier: string) => bigint | null;
}

const voteRules = ["any", "none", "only"] as const;
const tiersMax = 8;
/** The longest message (native/stream/stream_ring.h). */
const drainBytes = 4 << 20;
const headBytes = 64;
const tableHeadBytes = 12;
const filterBytes = 24;
const replayBytes = 16;
const accountBytes = 32;
const signatureBytes = 64;

/** The enum LookupState of native/stream/lookup_resolver.h. */
const lookupState = { none: 0, resolved: 1 } as const;

type StreamCalls = Pick<
  NativeRelay,
  | "publishStreamFilters"
  | "drainStreams"
  | "streamsLost"
  | "readStreamLosses"
  | "onStreams"
  | "setStreamHistory"
  | "readStreamHistory"
  | "grantReplay"
  | "changeLookupTables"
  | "drainLookupReports"
  | "lookupTableCounts"
>;

export class RelayStreams {
  /** The address lookup tables that transactions are resolved with. */
  readonly lookupTables: RelayLookupTables;
  /** Tiers of the relay. */
  readonly tiers: readonly string[];
  readonly #native: StreamCalls;
  readonly #buffer = new Uint8Array(drainBytes);
  #generation = 0;

  constructor(native: StreamCalls, tiers: readonly string[]) {
    this.lookupTables = new RelayLookupTables(native);
    this.#native = native;
    this.tiers = tiers;
  }

  /** Ids are below `ids`. */
  static limits(): { readonly filters: number; readonly ids: number; readonly accounts: number } {
    const { streamFilters, streamFilterIds, streamAccounts } = describeNative().limits;
    return { filters: streamFilters, ids: streamFilterIds, accounts: streamAccounts };
  }

  /**
   * Replaces all filters. Returns the generation that messages carry from the message `filters_applied` on. Throws ShredwayError
   * "table_refused"; the previous filters then stay in force.
   */
  publish(wanted: StreamTable): number {
    const table = encodeTable(wanted, this.tiers);
    const generation = (this.#generation + 1) >>> 0;
    guarded("table_refused", () => this.#native.publishStreamFilters(table, generation));
    this.#generation = generation;
    return generation;
  }

  /**
   * Passes on waiting messages, oldest first, up to the one that reaches `enough` bytes. Returns false if
   * some may wait.
   */
  drain(receive: (message: StreamMessage) => void, enough: number): boolean {
    for (let total = 0; total < enough; ) {
      const bytes = this.#native.drainStreams(this.#buffer, enough - total);
      if (bytes === 0) return true;
      total += bytes;
      this.#decode(bytes, receive);
    }
    return false;
  }

  /** Memory of the history, from the next `publish` on; below 1 MiB: no history. */
  setHistoryBytes(bytes: number): void {
    this.#native.setStreamHistory(bytes);
  }

  history(): StreamHistory {
    const words = new BigUint64Array(2 + tiersMax);
    this.#native.readStreamHistory(words);
    return {
      bytes: Number(words[0] ?? 0n),
      replayed: words[1] ?? 0n,
      oldest: (tier) => words[2 + this.tiers.indexOf(tier)] || null,
    };
  }

  /** Lets a replay send this many bytes, as `replayedBytes` counts them, since its beginning. */
  grantReplay(id: number, bytes: number): void {
    this.#native.grantReplay(id, BigInt(bytes));
  }

  /** Number of lost messages; it changes rarely. */
  get lost(): number {
    return this.#native.streamsLost();
  }

  losses(): StreamLosses {
    const { ids } = RelayStreams.limits();
    const words = new BigUint64Array(ids + 2 * tiersMax);
    this.#native.readStreamLosses(words);
    const ofTier = (tier: string, begin: number) => words[begin + this.tiers.indexOf(tier)] ?? 0n;
    return {
      byFilter: (id) => words[id] ?? 0n,
      entries: (tier) => ofTier(tier, ids),
      events: (tier) => ofTier(tier, ids + tiersMax),
    };
  }

  /** Calls `listener` shortly after messages arrived or were lost; it should call `drain`. Once per relay. */
  onMessages(listener: () => void): void {
    guarded("watch_refused", () => this.#native.onStreams(listener));
  }

  /** `at`: beginning of a message; `begin`: of its loaded addresses. */
  #loaded(view: DataView, at: number, begin: number): StreamMessage["loadedAddresses"] {
    const state = view.getUint8(at + 53);
    if (state === lookupState.none) return undefined;
    if (state !== lookupState.resolved) return null;
    const listOf = (from: number, length: number) =>
      Array.from({ length }, (_, i) => {
        const address = from + i * accountBytes;
        return this.#buffer.subarray(address, address + accountBytes);
      });
    const writable = listOf(begin, view.getUint16(at + 54, true));
    const readonlyBegin = begin + writable.length * accountBytes;
    return { writable, readonly: listOf(readonlyBegin, view.getUint16(at + 56, true)) };
  }

  #decode(bytes: number, receive: (message: StreamMessage) => void): void {
    const buffer = this.#buffer;
    const view = new DataView(buffer.buffer, 0, bytes);
    for (let at = 0; at < bytes; at += view.getUint32(at, true)) {
      const count = view.getUint16(at + 6, true);
      const filters: number[] = [];
      for (let i = 0; i < count; i++) filters.push(view.getUint16(at + headBytes + 2 * i, true));
      const begin = at + headBytes + 2 * count;
      const end = begin + view.getUint32(at + 48, true);
      receive({
        kind: streamMessageNames[view.getUint8(at + 4)] ?? "transaction",
        tier: this.tiers[view.getUint8(at + 5)] ?? "",
        filters,
        slot: view.getBigUint64(at + 8, true),
        parent: view.getBigUint64(at + 16, true),
        arrivalNs: view.getBigUint64(at + 24, true),
        generation: view.getUint32(at + 32, true),
        batchIndex: view.getUint32(at + 36, true),
        ordinal: view.getUint32(at + 40, true),
        shredIndex: view.getUint32(at + 44, true),
        content: buffer.subarray(begin, end),
        isVote: view.getUint8(at + 52) !== 0,
        replay: view.getUint16(at + 58, true),
        loadedAddresses: this.#loaded(view, at, end),
      });
    }
  }
}

/** Bytes of a replayed message, as the relay counts them. */
export function replayedBytes({ content }: StreamMessage): number {
  return headBytes + content.length;
}

/** The table of native/stream/filter_index.h. */
function encodeTable(
  { filters, entryTiers, historyTiers, replays }: StreamTable,
  tiers: readonly string[],
): Uint8Array {
  const bitsOf = (wanted: ReadonlySet<string>) =>
    tiers.reduce((bits, tier, i) => (wanted.has(tier) ? bits | (1 << i) : bits), 0);
  const head = Buffer.alloc(tableHeadBytes);
  head.write("SWF1", "latin1");
  head.writeUInt32LE(filters.length, 4);
  head.writeUInt8(bitsOf(entryTiers), 8);
  head.writeUInt8(bitsOf(historyTiers), 9);
  head.writeUInt16LE(replays.length, 10);
  return Buffer.concat([
    head,
    ...filters.flatMap((filter) => [headOf(filter, tiers), ...accountsOf(filter)]),
    ...replays.map((replay) => replayOf(replay, tiers)),
  ]);
}

function replayOf(
  { id, tier, fromSlot, filters }: StreamReplay,
  tiers: readonly string[],
): Uint8Array {
  const bytes = Buffer.alloc(replayBytes + 2 * filters.length);
  bytes.writeUInt16LE(id, 0);
  bytes.writeUInt8(tiers.indexOf(tier) & 0xff, 2);
  bytes.writeUInt32LE(filters.length, 4);
  bytes.writeBigUInt64LE(fromSlot, 8);
  for (const [i, filter] of filters.entries()) bytes.writeUInt16LE(filter, replayBytes + 2 * i);
  return bytes;
}

function headOf(filter: StreamFilter, tiers: readonly string[]): Uint8Array {
  const head = Buffer.alloc(filterBytes);
  head.writeUInt16LE(filter.id, 0);
  head.writeUInt8(tiers.indexOf(filter.tier) & 0xff, 2);
  head.writeUInt8(voteRules.indexOf(filter.votes), 3);
  head.writeUInt32LE(filter.include.length, 4);
  head.writeUInt32LE(filter.exclude.length, 8);
  head.writeUInt32LE(filter.required.length, 12);
  head.writeUInt8(filter.signature ? 1 : 0, 16);
  return head;
}

function accountsOf({ signature, include, exclude, required }: StreamFilter): Uint8Array[] {
  const accounts = [...include, ...exclude, ...required];
  const isValid =
    accounts.every(({ length }) => length === accountBytes) &&
    (signature === null || signature.length === signatureBytes);
  if (!isValid) throw new RangeError("expected accounts of 32 bytes and a signature of 64 bytes");
  return signature ? [signature, ...accounts] : accounts;
}
