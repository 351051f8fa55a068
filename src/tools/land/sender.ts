// A sender: one way to hand a transaction to the network, with its response. Only types.
//
// Implemented by http-sender.ts and client-sender.ts, opened by open-senders.ts.

export interface SubmissionResult {
  /** null: accepted. */
  readonly error: { readonly reason: string; readonly message: string } | null;
  /** Whether the sender answered. */
  readonly hasResponse: boolean;
}

export interface Sender {
  /** Opens the connection, so that a round does not measure it. Rejects if the sender is unreachable. */
  warmUp(): Promise<void>;
  /** Tip accounts that the sender states; empty: it states none. Rejects if it does not answer. */
  tipAccounts(): Promise<readonly string[]>;
  /** Prepares the request; the returned function sends it. It never rejects. */
  prepare(wire: Uint8Array, signature: string): () => Promise<SubmissionResult>;
  close(): void;
}
