// Connects a pipeline with a sandbox chain: facts of transactions, observations of blocks, results
// of the node.

import { VersionedTransaction } from "@solana/web3.js";
import { parsePubkey, pubkeyBytes, pubkeyOf } from "../../../src/core/primitives.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import type { LandingObservations, Outcomes } from "../../../src/gateway/submission/types.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import type { ManualClock } from "../../support/clocks/manual-clock.ts";
import type { ChainRun } from "../../support/transactions/chain.ts";

export function factsOf(
  wire: Uint8Array,
  nonce: TransactionFacts["nonce"] = null,
): TransactionFacts {
  const { message, signatures } = VersionedTransaction.deserialize(wire);
  const signatureBytes = signatures[0] ?? new Uint8Array(64);
  return {
    wire,
    version: "legacy",
    signatureBytes,
    signature: encodeBase58(signatureBytes),
    feePayer: message.staticAccountKeys[0]?.toBytes() ?? new Uint8Array(32),
    lifetime: pubkeyBytes(parsePubkey(message.recentBlockhash)),
    nonce,
    tipLamports: 10_000n,
    computeUnitLimit: 200_000,
    computeUnitPrice: 0n,
    priorityFeeLamports: 0n,
    hasFrontKey: false,
  };
}

export function landingsOf({ chain }: ChainRun, clock: ManualClock): LandingObservations {
  return {
    watch: (bytes, observed, withdrawn) => {
      const signature = encodeBase58(bytes);
      return chain.subscribe((event) => {
        const seenNs = clock.nowNs();
        if (event.kind === "executed" && event.transaction.signature === signature)
          observed({ slot: event.slot, seenNs, mayRestart: true });
        if (event.kind !== "restarted") return;
        if (event.transactions.some((one) => one.signature === signature))
          withdrawn?.({ slot: event.slot, seenNs });
      });
    },
  };
}

/** Nonce value at "confirmed"; null: not a nonce account. */
export function nonceValueOf({ chain }: ChainRun, account: string): string | null {
  const data = chain.account(account, "confirmed")?.data;
  return data?.length === 80 ? pubkeyOf(data.slice(40, 72)) : null;
}

export function outcomesOf(run: ChainRun): Outcomes {
  const { chain } = run;
  return {
    signatureStatuses: async (signatures) =>
      signatures.map((signature) => {
        const status = chain.status(signature);
        return (
          status && { slot: status.slot, err: status.err, commitment: status.confirmationStatus }
        );
      }),
    blockhashState: async (blockhash) => ({
      isValid: chain.isBlockhashValid(blockhash),
      slot: chain.slot("confirmed"),
    }),
    nonceValue: async (account) => nonceValueOf(run, account),
  };
}
