// Simulation: the effect of a transaction at the current state, without changes.
//
// Called by chain.ts. The transaction is executed by the same rules as in a block, and then undone.

import { parsePubkey, pubkeyBytes } from "../../core/primitives.ts";
import { lifetimeSlots } from "../../core/solana-constants.ts";
import { encodeBase58 } from "../../relay/data-plane/base58.ts";
import { type Candidate, candidateOf, type Executor, type Verdict } from "./executor.ts";
import { verifySignatures } from "./keys.ts";
import type { Ledger } from "./ledger.ts";
import type { Svm } from "./svm.ts";
import type { Account, SimulateOptions, Simulation } from "./types.ts";
import { UndoLog } from "./undo.ts";

interface SimulationOptions {
  readonly svm: Svm;
  readonly executor: Executor;
  readonly ledger: Ledger;
}

function withBlockhash(candidate: Candidate, blockhash: Uint8Array): Candidate {
  const wire = Uint8Array.from(candidate.transaction.wire);
  wire.set(blockhash, candidate.transaction.blockhashAt);
  return candidateOf(wire);
}

/** Throws "transaction_invalid", "transaction_version" and, if requested, "signature_invalid". */
export function simulate(
  wire: Uint8Array,
  { verifySignatures: isVerified, replaceBlockhash }: SimulateOptions,
  { svm, executor, ledger }: SimulationOptions,
): Simulation {
  let candidate = candidateOf(wire);
  if (isVerified) verifySignatures(candidate.transaction);
  const { tip, tipEnd } = ledger;
  if (replaceBlockhash) candidate = withBlockhash(candidate, tipEnd.blockhash);
  const undo = new UndoLog(svm);
  const verdict = executor.execute(
    candidate,
    {
      slot: ledger.open?.slot ?? tip.slot + 1n,
      parentBlockhash: tipEnd.blockhash,
      isRecent: (blockhash) => ledger.isRecent(blockhash),
      wasExecuted: (messageKey) => ledger.wasExecuted(messageKey),
    },
    undo,
  );
  const accounts = accountsOf(candidate, verdict, svm);
  undo.rollBack();
  return {
    ...outcomeOf(verdict),
    fee: candidate.fee.lamports,
    accounts,
    replacementBlockhash: replaceBlockhash
      ? { blockhash: tip.blockhash, lastValidBlockHeight: tip.blockHeight + lifetimeSlots }
      : null,
  };
}

function accountsOf(candidate: Candidate, verdict: Verdict, svm: Svm): Map<string, Account | null> {
  const { keys } = candidate.transaction;
  const accounts = new Map<string, Account | null>();
  for (const key of keys) accounts.set(encodeBase58(key), svm.account(key));
  if (verdict.kind === "landed") {
    const { writable, readonly } = verdict.transaction.loadedAddresses;
    for (const address of [...writable, ...readonly]) {
      accounts.set(address, svm.account(pubkeyBytes(parsePubkey(address))));
    }
  }
  return accounts;
}

function outcomeOf(
  verdict: Verdict,
): Pick<Simulation, "err" | "logs" | "unitsConsumed" | "returnData" | "innerInstructions"> {
  if (verdict.kind === "landed") {
    const { err, logs, computeUnits, returnData, innerInstructions } = verdict.transaction;
    return { err, logs, unitsConsumed: computeUnits, returnData, innerInstructions };
  }
  const { failure, outcome } = verdict;
  return {
    err: failure,
    logs: outcome?.logs ?? [],
    unitsConsumed: outcome?.computeUnits ?? 0n,
    returnData: outcome?.returnData ?? null,
    innerInstructions: outcome?.innerInstructions ?? [],
  };
}
