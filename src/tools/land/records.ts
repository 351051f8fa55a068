// Records of a landing benchmark: what happened to each transaction. Only types.
//
// run.ts fills them in, the journal stores them, and land-statistics.ts evaluates them.

/** One observation in the shred feed. */
export interface ShredObservation {
  readonly slot: number;
  /** Receive time of the shred that completed the transaction, wall clock. */
  readonly seenNs: bigint;
  /** First data shred of its FEC set. */
  readonly fecSet: number;
  /** Data shred that contains its end. */
  readonly shredIndex: number;
  /** First data shred of its batch of entries, and the position in the batch. */
  readonly batchIndex: number;
  readonly ordinal: number;
}

/** Answer of a sender. */
export interface SenderAnswer {
  /** Wall clock, at the call of the sender. */
  readonly sentNs: bigint;
  /** Place in the order in which the senders of the round were called, from 0. */
  readonly order: number;
  /** From the call to the complete response; null: none came in time. */
  readonly responseNs: number | null;
  /** null: accepted. */
  readonly error: { readonly reason: string; readonly message: string } | null;
}

export type EndState =
  /** In a confirmed block. */
  | "landed"
  /** In a confirmed block, with an error: its fee was paid, its tip was not. */
  | "failed"
  /** Its blockhash expired. It can never land. */
  | "expired"
  /** Another transaction used its nonce. It can never land. */
  | "superseded"
  /** The benchmark stopped waiting. It may still land. */
  | "not_landed";

export interface TransactionEnd {
  readonly state: EndState;
  /** null: not in a block. */
  readonly landing: {
    readonly slot: number;
    /** Slots since the newest slot at the time of sending. */
    readonly slots: number;
    /** From sending to the observation; null: nobody observed it live. */
    readonly timeNs: number | null;
    readonly via: "shreds" | "node";
    readonly shred: Omit<ShredObservation, "slot" | "seenNs"> | null;
    /** Position among the transactions of the block; null: the node did not say. */
    readonly block: { readonly index: number; readonly transactions: number } | null;
    /** The error of the transaction as JSON; null: it succeeded. */
    readonly error: string | null;
  } | null;
}

export interface TransactionRecord {
  /** Number of the sender in the plan. */
  readonly sender: number;
  /** Base58. */
  readonly signature: string;
  /** The most that it can cost. */
  readonly lamports: bigint;
  /** null: it was not sent, or the program was killed before it knew. */
  answer: SenderAnswer | null;
  end: TransactionEnd | null;
}

export interface RoundRecord {
  /** From 1. */
  readonly round: number;
  /** Newest slot when the round was sent, according to the node. */
  readonly slot: number;
  /** null: the transactions use a nonce. */
  readonly lastValidBlockHeight: number | null;
  /** Value of the nonce; null: they use a blockhash. */
  readonly nonce: string | null;
  /** In the order of the senders. */
  readonly transactions: readonly TransactionRecord[];
}

/** Whether every sender was called: a killed program leaves rounds that compare nothing. */
export function isComplete({ transactions }: RoundRecord): boolean {
  return transactions.every(({ answer }) => answer !== null);
}
