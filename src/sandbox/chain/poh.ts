// Entries of a block: the hash chain that orders transactions, and its bytes.
//
// Called by block-shreds.ts, one chain per block. Real SHA-256 by the rules of the network: an
// entry of n hashes is n - 1 times hash = SHA-256(hash), then once more, mixed with the Merkle root
// of its transactions' signatures, if it has transactions. Exactly `hashesPerTick` hashes are
// between two ticks. Only their number is small: mainnet hashes for hundreds of milliseconds, which
// would be of no use here. Batch = u64 count, then entries {u64 hashes, 32-byte hash, u64
// transactions, wire bytes}.

import { hash as hashOnce } from "node:crypto";
import { signatureBytes, type WireTransaction } from "./wire.ts";

/** Maximum number of transactions in one entry; a validator locks an entry's accounts together. */
const entryTransactionsMax = 64;
const entryHeaderBytes = 48;

function sha256(bytes: Uint8Array): Uint8Array {
  return hashOnce("sha256", bytes, "buffer");
}

/** Root over all signatures of the transactions; leaves and nodes have the prefixes 0 and 1. */
export function signaturesRoot(transactions: readonly WireTransaction[]): Uint8Array {
  const leaf = new Uint8Array(1 + signatureBytes);
  let level = transactions.flatMap(({ signatures }) =>
    signatures.map((signature) => {
      leaf.set(signature, 1);
      return sha256(leaf);
    }),
  );
  const node = new Uint8Array(65);
  node[0] = 1;
  while (level.length > 1) {
    const next: Uint8Array[] = [];
    for (let i = 0; i < level.length; i += 2) {
      const left = level[i] ?? leaf;
      node.set(left, 1);
      node.set(level[i + 1] ?? left, 33);
      next.push(sha256(node));
    }
    level = next;
  }
  return level[0] ?? new Uint8Array(32);
}

interface Entry {
  readonly hashes: number;
  readonly hash: Uint8Array;
  readonly transactions: readonly WireTransaction[];
}

export class HashChain {
  readonly #hashesPerTick: number;
  readonly #mixed = new Uint8Array(64);
  #hash: Uint8Array;
  #entries: Entry[] = [];
  #hashesInTick = 0;

  constructor(start: Uint8Array, hashesPerTick: number) {
    this.#hash = start;
    this.#hashesPerTick = hashesPerTick;
  }

  /** After the last tick of a block, this is its blockhash. */
  get hash(): Uint8Array {
    return this.#hash;
  }

  /** Maximum number of transactions in one tick. */
  static bytesOf(hashesPerTick: number): number {
    return (hashesPerTick - 1) * entryTransactionsMax;
  }

  /**
   * The bytes of a batch: `transactions` in as many entries as they need, then the rest of `ticks`
   * ticks. Throws RangeError for more transactions than the ticks can contain.
   */
  batch(transactions: readonly WireTransaction[], ticks: number): Uint8Array {
    let ticksLeft = ticks;
    for (let at = 0; at < transactions.length; at += entryTransactionsMax) {
      if (this.#hashesInTick === this.#hashesPerTick - 1) {
        this.#tick();
        ticksLeft--;
      }
      this.#record(transactions.slice(at, at + entryTransactionsMax));
    }
    if (ticksLeft < 1) {
      throw new RangeError(
        `entries: expected transactions for ${ticks} ticks, got ${transactions.length}`,
      );
    }
    for (; ticksLeft > 0; ticksLeft--) this.#tick();
    const bytes = entryBytes(this.#entries);
    this.#entries = [];
    return bytes;
  }

  #record(transactions: readonly WireTransaction[]): void {
    this.#mixed.set(this.#hash);
    this.#mixed.set(signaturesRoot(transactions), 32);
    this.#hash = sha256(this.#mixed);
    this.#hashesInTick++;
    this.#entries.push({ hashes: 1, hash: this.#hash, transactions });
  }

  #tick(): void {
    const hashes = this.#hashesPerTick - this.#hashesInTick;
    for (let i = 0; i < hashes; i++) this.#hash = sha256(this.#hash);
    this.#hashesInTick = 0;
    this.#entries.push({ hashes, hash: this.#hash, transactions: [] });
  }
}

function entryBytes(entries: readonly Entry[]): Uint8Array {
  const length = entries.reduce(
    (sum, { transactions }) =>
      sum + entryHeaderBytes + transactions.reduce((bytes, { wire }) => bytes + wire.length, 0),
    8,
  );
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(entries.length), true);
  let at = 8;
  for (const { hashes, hash, transactions } of entries) {
    view.setBigUint64(at, BigInt(hashes), true);
    bytes.set(hash, at + 8);
    view.setBigUint64(at + 40, BigInt(transactions.length), true);
    at += entryHeaderBytes;
    for (const { wire } of transactions) {
      bytes.set(wire, at);
      at += wire.length;
    }
  }
  return bytes;
}
