// Background traffic: seeded wallets that transfer to each other and sometimes pay a tip.
//
// Called by the producer in every interval. It creates signed transfers at a configured rate; every
// third one sets a priority fee. All transfers differ, because the amount counts up.

import { SeededRandom } from "../../core/seeded-random.ts";
import {
  type BuildInstruction,
  buildTransaction,
  transferInstruction,
  u32Bytes,
  u64Bytes,
} from "../../core/transactions/build-legacy.ts";
import { computeBudgetProgram } from "./addresses.ts";
import { SandboxKeyPair } from "./keys.ts";

interface BackgroundOptions {
  readonly transactionsPerSecond: number;
  readonly wallets: number;
  /** Addresses of 32 bytes. Some transfers go to them as tips. */
  readonly tipAddresses: readonly Uint8Array[];
  /** Share of transactions with a tip, 0 to 1. Without addresses, no transaction has a tip. */
  readonly tipShare: number;
}

const priorityShare = 1 / 3;
const priceMax = 500_000; // micro-lamports per compute unit
const unitLimit = 600;
const tipMean = 60_000; // lamports, above the fee of 10,000 that all transfers pay
const tipMax = 5_000_000;

function computeBudget(units: number, price: number): BuildInstruction[] {
  const instruction = (data: Uint8Array): BuildInstruction => ({
    program: computeBudgetProgram,
    accounts: [],
    data,
  });
  return [
    instruction(Buffer.concat([Uint8Array.of(2), u32Bytes(units)])),
    instruction(Buffer.concat([Uint8Array.of(3), u64Bytes(BigInt(price))])),
  ];
}

export class Background {
  readonly wallets: readonly SandboxKeyPair[];
  readonly #options: BackgroundOptions;
  readonly #random: SeededRandom;
  #owed = 0;
  #made = 0;

  constructor(seed: number, options: BackgroundOptions) {
    this.#options = options;
    this.#random = new SeededRandom(BigInt(seed) ^ 0xbac4_90n);
    this.wallets = Array.from({ length: options.wallets }, (_, i) =>
      SandboxKeyPair.named(seed, `wallet ${i}`),
    );
  }

  /** Wire bytes of the transfers for these `seconds`. */
  take(seconds: number, blockhash: Uint8Array): readonly Uint8Array[] {
    if (this.wallets.length < 2) return [];
    this.#owed += seconds * this.#options.transactionsPerSecond;
    const count = Math.floor(this.#owed);
    this.#owed -= count;
    return Array.from({ length: count }, () => this.#transaction(blockhash));
  }

  #transaction(blockhash: Uint8Array): Uint8Array {
    const random = this.#random;
    const from = random.below(this.wallets.length);
    const to = (from + 1 + random.below(this.wallets.length - 1)) % this.wallets.length;
    const payer = this.wallets[from];
    const receiver = this.wallets[to];
    if (!payer || !receiver) throw new RangeError("expected a wallet at every index, got none");
    const price = random.happens(priorityShare) ? 1 + random.below(priceMax) : 0;
    const amount = BigInt(1_000_000 + (this.#made++ % 1_000_000));
    const instructions = [transferInstruction(payer.publicKey, receiver.publicKey, amount)];
    const { tipAddresses, tipShare } = this.#options;
    const tipAddress = tipAddresses[random.below(Math.max(1, tipAddresses.length))];
    if (tipAddress && random.happens(tipShare)) {
      const tip = BigInt(10_000 + Math.floor(random.exponential(tipMean, tipMax)));
      instructions.push(transferInstruction(payer.publicKey, tipAddress, tip));
    }
    return buildTransaction(
      [payer],
      price === 0 ? instructions : [...computeBudget(unitLimit, price), ...instructions],
      blockhash,
    );
  }
}
