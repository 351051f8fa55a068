// Options of the sandbox chain, with their meanings, defaults and ranges.
//
// Called by chain.ts. These are all inputs of a block, so that the same options and the same calls
// give the same bytes.

import { quote, ShredwayError } from "../../core/errors.ts";
import { parsePubkey } from "../../core/primitives.ts";
import { ticksPerSlot } from "./block-shreds.ts";
import { unrootedBlocksMax } from "./ledger.ts";
import { HashChain } from "./poh.ts";
import type { EmittedShreds } from "./producer.ts";
import type { TransactionFailure } from "./types.ts";

export interface ChainOptions {
  /** Seed of all keys, the leader schedule, background traffic and random faults. Default 1. */
  readonly seed?: number;
  /** Number of validators, 1 to 64. Default 5. */
  readonly validators?: number;
  /** Length of a slot in milliseconds, 1 to 60,000. Default 400. */
  readonly slotMs?: number;
  /** Batches of entries per slot: a power of two up to 64. Default 16. */
  readonly intervalsPerSlot?: number;
  /** Slots per epoch: a multiple of 4, 32 to 432,000. Default 8,192. */
  readonly slotsPerEpoch?: number;
  /** First slot with a block; the root is in the slot before. Default 1. */
  readonly firstSlot?: bigint;
  /** Block time of the first slot, seconds since 1970. Default 1,767,225,600. */
  readonly genesisSeconds?: bigint;
  /** Shred version. Default 50093. */
  readonly shredVersion?: number;
  /** Slots from a confirmed block to the tip, 0 to 32. Default 1. */
  readonly confirmedDepth?: number;
  /** Blocks from a rooted block to the newest confirmed one, 0 to 95. Default 31. */
  readonly rootedDepth?: number;
  /** Number of slots whose blocks are retained, 256 or more. Default 2,000. */
  readonly historySlots?: number;
  /** Maximum number of transactions in the leader's queue. Default 4,096. */
  readonly queueMax?: number;
  /** Transactions from the queue per interval, 1 to 512. Default 128. */
  readonly transactionsPerIntervalMax?: number;
  /** SHA-256 hashes between two ticks, 4 to 12,500. Default 16. */
  readonly hashesPerTick?: number;
  /** Maximum number of slots per call of `advanceTo`; further time is skipped. Default 1,000. */
  readonly catchUpSlotsMax?: number;
  /** Whether validators vote. Default true. */
  readonly votes?: boolean;
  /** false: no background traffic. */
  readonly background?: BackgroundChoice | false;
  /** Accounts at genesis: base58 -> lamports. */
  readonly funded?: ReadonlyMap<string, bigint>;
  readonly onShreds?: (shreds: EmittedShreds) => void;
  readonly onDropped?: (signature: string, failure: TransactionFailure) => void;
}

interface BackgroundChoice {
  /** Transactions per second, 0 to 2,000. Default 60. */
  readonly transactionsPerSecond?: number;
  /** Number of wallets, 2 to 256. Default 8. */
  readonly wallets?: number;
  /** Tip addresses in base58. Default none. */
  readonly tipAddresses?: readonly string[];
  /** Share of transactions with a tip, 0 to 1. Default 0.25. */
  readonly tipShare?: number;
}

const defaultOptions = {
  seed: 1,
  validators: 5,
  slotMs: 400,
  intervalsPerSlot: 16,
  slotsPerEpoch: 8192,
  firstSlot: 1n,
  genesisSeconds: 1_767_225_600n,
  shredVersion: 50_093,
  confirmedDepth: 1,
  rootedDepth: 31,
  historySlots: 2000,
  queueMax: 4096,
  transactionsPerIntervalMax: 128,
  hashesPerTick: 16,
  catchUpSlotsMax: 1000,
  votes: true,
  background: {} as BackgroundChoice | false,
  funded: new Map() as ReadonlyMap<string, bigint>,
} as const;

const defaultBackground = {
  transactionsPerSecond: 60,
  wallets: 8,
  tipAddresses: [] as readonly string[],
  tipShare: 0.25,
} as const;

export type CheckedOptions = Required<
  Omit<ChainOptions, "onShreds" | "onDropped" | "background">
> & {
  readonly background: Required<BackgroundChoice> | null;
  readonly onShreds: ChainOptions["onShreds"] | null;
  readonly onDropped: ChainOptions["onDropped"] | null;
};

function refuse(what: string, expected: string, actual: unknown): never {
  throw new ShredwayError(
    "value_invalid",
    `sandbox chain: ${what}: invalid value ${quote(actual)}; expected ${expected}`,
  );
}

function checkInteger(what: string, value: number, [min, max]: readonly [number, number]): void {
  if (!Number.isSafeInteger(value) || value < min || value > max) {
    refuse(what, `a whole number ${min} to ${max}`, value);
  }
}

const integerOptions = [
  "seed",
  "validators",
  "slotMs",
  "intervalsPerSlot",
  "slotsPerEpoch",
  "shredVersion",
  "confirmedDepth",
  "rootedDepth",
  "historySlots",
  "queueMax",
  "transactionsPerIntervalMax",
  "hashesPerTick",
  "catchUpSlotsMax",
] as const;
type IntegerOption = (typeof integerOptions)[number];

const ranges: Readonly<Record<IntegerOption, readonly [number, number]>> = {
  seed: [0, Number.MAX_SAFE_INTEGER],
  validators: [1, 64],
  slotMs: [1, 60_000],
  intervalsPerSlot: [1, ticksPerSlot],
  slotsPerEpoch: [32, 432_000],
  shredVersion: [0, 65_535],
  confirmedDepth: [0, 32],
  rootedDepth: [0, unrootedBlocksMax - 33],
  historySlots: [256, 1_000_000],
  queueMax: [1, 1_000_000],
  transactionsPerIntervalMax: [1, 512],
  hashesPerTick: [4, 12_500],
  catchUpSlotsMax: [1, 1_000_000],
};

function checkBackground(choice: BackgroundChoice | false): Required<BackgroundChoice> | null {
  if (choice === false) return null;
  const background = { ...defaultBackground, ...choice };
  const { transactionsPerSecond, tipShare } = background;
  if (!(transactionsPerSecond >= 0 && transactionsPerSecond <= 2000)) {
    refuse("background.transactionsPerSecond", "0 to 2000", transactionsPerSecond);
  }
  checkInteger("background.wallets", background.wallets, [2, 256]);
  if (!(tipShare >= 0 && tipShare <= 1)) refuse("background.tipShare", "0 to 1", tipShare);
  background.tipAddresses.forEach(parsePubkey);
  return background;
}

/** Fills in the defaults. Throws ShredwayError "value_invalid". */
export function checkOptions(options: ChainOptions): CheckedOptions {
  const all = { ...defaultOptions, ...options };
  for (const name of integerOptions) checkInteger(name, all[name], ranges[name]);
  if (ticksPerSlot % all.intervalsPerSlot !== 0) {
    refuse("intervalsPerSlot", `a divisor of ${ticksPerSlot}`, all.intervalsPerSlot);
  }
  if (all.slotsPerEpoch % 4 !== 0) refuse("slotsPerEpoch", "a multiple of 4", all.slotsPerEpoch);
  if (all.firstSlot < 1n || all.firstSlot > 2n ** 53n) {
    refuse("firstSlot", "1 to 2^53", all.firstSlot);
  }
  const ticks = ticksPerSlot / all.intervalsPerSlot;
  const capacity = HashChain.bytesOf(all.hashesPerTick) * ticks;
  const needed = all.transactionsPerIntervalMax + all.validators;
  if (capacity < needed) refuse("hashesPerTick", `capacity for ${needed} transactions`, capacity);
  for (const [address, lamports] of all.funded) {
    parsePubkey(address);
    if (lamports < 0n || lamports > 2n ** 63n) refuse(`funded.${address}`, "lamports", lamports);
  }
  return {
    ...all,
    background: checkBackground(all.background),
    onShreds: options.onShreds ?? null,
    onDropped: options.onDropped ?? null,
  };
}
