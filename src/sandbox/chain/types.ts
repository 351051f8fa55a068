// Types of the sandbox chain for the RPC endpoint, the shred feed and the screen.
//
// Only types. chain.ts has the chain itself. Public keys, hashes and signatures are base58 text, as
// in the RPC; amounts, slots and heights are bigint.

export type Commitment = "processed" | "confirmed" | "finalized";

export interface Account {
  readonly lamports: bigint;
  readonly data: Uint8Array;
  readonly owner: string;
  readonly executable: boolean;
  readonly rentEpoch: bigint;
}

/** In the format of the RPC: "BlockhashNotFound", { InstructionError: [0, { Custom: 1 }] }, … */
export type TransactionFailure = string | Readonly<Record<string, unknown>>;

export interface InnerInstructions {
  /** Index of the calling instruction. */
  readonly index: number;
  readonly instructions: readonly {
    readonly programIdIndex: number;
    readonly accounts: readonly number[];
    readonly data: Uint8Array;
    readonly stackHeight: number;
  }[];
}

/** A transaction in a block; it paid its fee even if `err` is not null. */
export interface ExecutedTransaction {
  /** First signature. */
  readonly signature: string;
  /** Index in the block. */
  readonly index: number;
  readonly wire: Uint8Array;
  readonly version: "legacy" | 0 | 1;
  readonly err: TransactionFailure | null;
  readonly fee: bigint;
  readonly computeUnits: bigint;
  readonly logs: readonly string[];
  /**
   * Static keys, then loaded writable keys, then loaded read-only keys; balances have this order.
   */
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
  /** Whether the validator runs the alternative partner's software. */
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
  /** State after the simulated execution of the transaction's accounts. */
  readonly accounts: ReadonlyMap<string, Account | null>;
  /** Set if `replaceBlockhash` was requested. */
  readonly replacementBlockhash: { blockhash: string; lastValidBlockHeight: bigint } | null;
}

export interface SimulateOptions {
  readonly verifySignatures: boolean;
  readonly replaceBlockhash: boolean;
}

export type ChainEvent =
  /** A leader began its slot. */
  | { readonly kind: "slot"; readonly slot: bigint; readonly parent: bigint; readonly root: bigint }
  /** The leader executed the transaction; its block may still be open. */
  | {
      readonly kind: "executed";
      readonly slot: bigint;
      readonly transaction: ExecutedTransaction;
    }
  | { readonly kind: "block"; readonly block: Block }
  /** The leader began its open block again without these transactions, which have no effect. */
  | {
      readonly kind: "restarted";
      readonly slot: bigint;
      readonly transactions: readonly ExecutedTransaction[];
    }
  /** The slot ended without a block. */
  | { readonly kind: "skipped"; readonly slot: bigint; readonly leader: string }
  /** The cluster abandoned this block for another fork; its transactions have no effect. */
  | { readonly kind: "abandoned"; readonly block: Block }
  | { readonly kind: "confirmed"; readonly slot: bigint }
  | { readonly kind: "rooted"; readonly slot: bigint };

/** Reads, simulates and submits. Errors are ShredwayErrors. */
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
  /**
   * Schedule of the slot's epoch: identity -> slots relative to the epoch's first; null: not known
   * yet.
   */
  leaderSchedule(slot: bigint): ReadonlyMap<string, readonly number[]> | null;
  leaderOf(slot: bigint): string | null;
  validators(): readonly Validator[];
  /** State at the newest block of the commitment (default: at the tip). */
  account(address: string, commitment?: Commitment): Account | null;
  programAccounts(program: string, commitment?: Commitment): ReadonlyMap<string, Account>;
  minimumBalanceForRentExemption(bytes: number): bigint;
  /**
   * null: the slot has no block (skipped, abandoned, or in the future); undefined: older than the
   * retained blocks.
   */
  block(slot: bigint): Block | null | undefined;
  /** First slot with a retained block. */
  firstKeptSlot(): bigint;
  transaction(
    signature: string,
  ): { readonly block: Block; readonly transaction: ExecutedTransaction } | null;
  /** Known immediately after execution, even while the block is open. */
  status(signature: string): SignatureStatus | null;
  /** Newest first. */
  signaturesFor(address: string): readonly { readonly signature: string; readonly slot: bigint }[];
  simulate(wire: Uint8Array, options: SimulateOptions): Simulation;
  /**
   * Adds a transaction to the leader's queue and returns its signature. Signatures are checked now.
   * Other errors occur when a leader executes it (or in `simulate`). `tipLamports`: the tip of a
   * transaction from an alternative partner's port; it orders transactions with equal fees per
   * compute unit.
   */
  send(wire: Uint8Array, tipLamports?: bigint): string;
  /** Adds a bundle: all or none land, consecutively in one block. Returns the signatures. */
  sendBundle(wires: readonly Uint8Array[], tipLamports?: bigint): readonly string[];
  /** A transfer from the faucet. */
  airdrop(address: string, lamports: bigint): string;
  /** Registers `listener`. The returned function removes it. */
  subscribe(listener: (event: ChainEvent) => void): () => void;
}
