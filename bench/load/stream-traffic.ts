// Slots of transactions for the bench of streams, with accounts that its subscribers name.
//
// Half of the transactions are votes. Every other one names one of 1,000 accounts, all equally often, so
// that a filter with ten of them matches 1 % of these transactions.

import { SeededRandom } from "../../src/core/seeded-random.ts";
import { Shredder, type SlotPosition } from "../../src/relay/data-plane/shredder.ts";

export const sourceAddress = "127.0.0.2";
export const firstSlot = 1000n;
export const slotsMax = 20_000;
export const accountsInTraffic = 1000;
const batchesPerSlot = 62;
/** They fill one FEC set. */
const transactionsPerBatch = 132;

const voteProgram = Buffer.from(
  "0761481d357474bb7c4d7624ebd3bdb3d8355e73d11043fc0da3538000000000",
  "hex",
);
const otherProgram = new Uint8Array(32).fill(0x33);

/** 32 bytes that begin with the number. */
export function accountOf(number: number): Uint8Array {
  const account = new Uint8Array(32).fill(0x5a);
  new DataView(account.buffer).setUint32(0, number, true);
  return account;
}

export interface Traffic {
  readonly packets: readonly Uint8Array[];
  /** Transactions that name an account, by its number. */
  readonly named: Uint32Array;
}

export class StreamTraffic {
  readonly #shredder = new Shredder(new Uint8Array(32).fill(9));
  readonly #random = new SeededRandom(5);
  #slot = firstSlot;

  get leader(): Uint8Array {
    return this.#shredder.publicKey;
  }

  /** Whole slots with at least this number of shreds. */
  make(shreds: number): Traffic {
    const packets: Uint8Array[] = [];
    const named = new Uint32Array(accountsInTraffic);
    while (packets.length < shreds) packets.push(...this.#makeSlot(named));
    return { packets, named };
  }

  #makeSlot(named: Uint32Array): Uint8Array[] {
    let position: SlotPosition = {
      slot: this.#slot++,
      parentOffset: 1,
      version: 1,
      chainedRoot: new Uint8Array(32),
      nextFecSetIndex: 0,
    };
    return Array.from({ length: batchesPerSlot }, (_, i) => {
      const lastInSlot = i + 1 === batchesPerSlot;
      const shreds = this.#shredder.shred(this.#makeBatch(named), {
        position,
        referenceTick: 1,
        lastInSlot,
      });
      position = shreds.position;
      return shreds.packets;
    }).flat();
  }

  /** A batch of one entry. */
  #makeBatch(named: Uint32Array): Uint8Array {
    const header = Buffer.alloc(8 + 48);
    header.writeBigUInt64LE(1n, 0); // entries
    header.writeBigUInt64LE(1n, 8); // hashes
    header.writeBigUInt64LE(BigInt(transactionsPerBatch), 48);
    const transactions = Array.from({ length: transactionsPerBatch }, (_, i) =>
      this.#makeTransaction(i % 2 === 0, named),
    );
    return Buffer.concat([header, ...transactions]);
  }

  #makeTransaction(isVote: boolean, named: Uint32Array): Uint8Array {
    const random = new Uint8Array(64 + 32);
    this.#random.fillBytes(random);
    const number = ((random[0] ?? 0) * 256 + (random[1] ?? 0)) % accountsInTraffic;
    if (!isVote) named[number] = (named[number] ?? 0) + 1;
    return Buffer.concat([
      Uint8Array.of(1),
      random.subarray(0, 64), // signature
      Uint8Array.of(1, 0, 1, 3),
      random.subarray(64), // the one who pays
      isVote ? accountOf(0xffff_ffff) : accountOf(number),
      isVote ? voteProgram : otherProgram,
      new Uint8Array(32).fill(0xab),
      Uint8Array.of(1, 2, 1, 0, 2, 7, 8),
    ]);
  }
}
