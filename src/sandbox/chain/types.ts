// What the sandbox chain is to those who ask it: the RPC endpoint, the feed of shreds, the screen.
//
// Only types. The chain itself is chain.ts. Public keys, hashes and signatures are base58 text, as
// the RPC writes them; amounts, slots and heights are bigint.

export type Commitment = "processed" | "confirmed" | "finalized";

export interface Account {
  readonly lamports: bigint;
  readonly data: Uint8Array;
  readonly owner: string;
  readonly executable: boolean;
  readonly rentEpoch: bigint;
}

/** As the RPC writes it: "BlockhashNotFound", { InstructionError: [0, { Custom: 1 }] }, … */
export type TransactionFailure = string | Readonly<Record<string, unknown>>;

export interface InnerInstructions {
  /** Index of the instruction that called. */
  readonly index: number;
  readonly instructions: readonly {
    readonly programIdIndex: number;
    readonly accounts: readonly number[];
    readonly data: Uint8Array;
    readonly stackHeight: number;
  }[];
}

/** A transaction that is part of a block; it paid its fee even when `err` is not null. */
export interface ExecutedTransaction {
  /** First signature. */
  readonly signature: string;
  /** Place in the block. */
  readonly index: number;
  readonly wire: Uint8Array;
  readonly version: "legacy" | 0 | 1;
  readonly err: TransactionFailure | null;
  readonly fee: bigint;
  readonly computeUnits: bigint;
  readonly logs: readonly string[];
  /** Static keys, then loaded writable, then loaded read-only ones; balances follow this order. */
  readonly accountKeys: readonly string[];
  readonly loadedAddresses: {
    readonly writable: readonly string[];
    readonly readonly: readonly string[];
  };
  readonly preBalances: readonly bigint[];
  readonly postBalances: readonly bigint[];
  readonly innerInstructions: readonly InnerInstructions[];
  readonly returnData: { readonly programId: string; readonly data: Uint8Array } | null;
}

export interface Block {
  readonly slot: bigint;
  readonly parentSlot: bigint;
  readonly blockhash: string;
  readonly previousBlockhash: string;
  readonly blockHeight: bigint;
  /** Seconds since 1970. */
  readonly blockTime: bigint;
  readonly leader: string;
  readonly transactions: readonly ExecutedTransaction[];
}

export interface Validator {
  readonly name: string;
  readonly identity: string;
  readonly voteAccount: string;
  readonly stakeLamports: bigint;
  /** Runs the alternative partner's software. */
  readonly isAltPartner: boolean;
}

export interface SignatureStatus {
  readonly slot: bigint;
  /** null: rooted. */
  readonly confirmations: bigint | null;
  readonly err: TransactionFailure | null;
  readonly confirmationStatus: Commitment;
}

export interface EpochInfo {
  readonly epoch: bigint;
  readonly slotIndex: bigint;
  readonly slotsInEpoch: bigint;
  readonly absoluteSlot: bigint;
  readonly blockHeight: bigint;
  readonly transactionCount: bigint;
}

export interface Simulation {
  readonly err: TransactionFailure | null;
  readonly logs: readonly string[];
  readonly unitsConsumed: bigint;
  readonly returnData: ExecutedTransaction["returnData"];
  readonly innerInstructions: readonly InnerInstructions[];
  readonly fee: bigint | null;
  /** After the simulated execution, of the accounts that the transaction names. */
  readonly accounts: ReadonlyMap<string, Account | null>;
  /** Set when `replaceBlockhash` was asked for. */
  readonly replacementBlockhash: { blockhash: string; lastValidBlockHeight: bigint } | null;
}

export interface SimulateOptions {
  readonly verifySignatures: boolean;
  readonly replaceBlockhash: boolean;
}

export type ChainEvent =
  /** A leader began its slot. */
  | { readonly kind: "slot"; readonly slot: bigint; readonly parent: bigint; readonly root: bigint }
  /** Executed by the leader; its block may still be open. */
  | {
      readonly kind: "executed";
      readonly slot: bigint;
      readonly transaction: ExecutedTransaction;
    }
  | { readonly kind: "block"; readonly block: Block }
  /** The slot passed without a block. */
  | { readonly kind: "skipped"; readonly slot: bigint; readonly leader: string }
  /** The cluster left this block for another fork; its transactions never happened. */
  | { readonly kind: "abandoned"; readonly block: Block }
  | { readonly kind: "confirmed"; readonly slot: bigint }
  | { readonly kind: "rooted"; readonly slot: bigint };

/** Reading, simulating and submitting. Errors are ShredwayError with a reason of the one table. */
export interface ChainApi {
  readonly genesisHash: string;
  slot(commitment: Commitment): bigint;
  blockHeight(commitment: Commitment): bigint;
  transactionCount(): bigint;
  latestBlockhash(commitment: Commitment): {
    readonly blockhash: string;
    readonly lastValidBlockHeight: bigint;
  };
  isBlockhashValid(blockhash: string): boolean;
  epochInfo(commitment: Commitment): EpochInfo;
  readonly slotsPerEpoch: bigint;
  /** Of the slot's epoch: identity -> slots relative to the epoch's first; null when unknown yet. */
  leaderSchedule(slot: bigint): ReadonlyMap<string, readonly number[]> | null;
  leaderOf(slot: bigint): string | null;
  validators(): readonly Validator[];
  /** At the newest block of the commitment (default: at the tip). */
  account(address: string, commitment?: Commitment): Account | null;
  programAccounts(program: string, commitment?: Commitment): ReadonlyMap<string, Account>;
  minimumBalanceForRentExemption(bytes: number): bigint;
  /** null: no block there (skipped, abandoned, not yet); undefined: older than what is kept. */
  block(slot: bigint): Block | null | undefined;
  /** First slot of which blocks are kept. */
  firstKeptSlot(): bigint;
  transaction(
    signature: string,
  ): { readonly block: Block; readonly transaction: ExecutedTransaction } | null;
  /** Known at once after execution, also while the block is open. */
  status(signature: string): SignatureStatus | null;
  /** Newest first. */
  signaturesFor(address: string): readonly { readonly signature: string; readonly slot: bigint }[];
  simulate(wire: Uint8Array, options: SimulateOptions): Simulation;
  /**
   * Puts a transaction into the leader's queue and returns its signature. Signatures are checked
   * now; what else is wrong with it shows when a leader takes it (or in `simulate`). `tipLamports`, of
   * what comes by an alternative partner's port: orders those that pay the same fee per compute unit.
   */
  send(wire: Uint8Array, tipLamports?: bigint): string;
  /** All or nothing, in order, next to each other in one block. Returns the signatures. */
  sendBundle(wires: readonly Uint8Array[], tipLamports?: bigint): readonly string[];
  /** A real transfer from the faucet. */
  airdrop(address: string, lamports: bigint): string;
  /** Calls `listener` from now on; the returned function ends that. */
  subscribe(listener: (event: ChainEvent) => void): () => void;
}
