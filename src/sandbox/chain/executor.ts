// Executor: runs one transaction, which lands (with or without an error) or is dropped.
//
// Called by the chain for every transaction that a leader executes, and for simulations. The VM
// executes; this file applies the validator's rules around it: recent blockhash or durable nonce,
// no duplicate, fees of transactions that could not be loaded, and the advance of a nonce by a
// failed transaction (litesvm 1.4.1 charges the fee and omits both). It does not know blocks and
// queues.

import { systemProgram } from "../../core/transactions/build-legacy.ts";
import { encodeBase58 } from "../../relay/data-plane/base58.ts";
import { sameKey } from "./addresses.ts";
import { loadFailures } from "./failures.ts";
import { type Fee, feeOf } from "./fees.ts";
import { sha256 } from "./keys.ts";
import { type LoadedKeys, loadLookups } from "./lookup-tables.ts";
import { advanced, advancedNonceKey, allowsNonce, nonceAccountBytes } from "./nonces.ts";
import type { Svm, VmOutcome } from "./svm.ts";
import type { ExecutedTransaction, TransactionFailure } from "./types.ts";
import type { UndoLog } from "./undo.ts";
import { isStaticWritable, parseTransaction, type WireTransaction } from "./wire.ts";

/** A transaction with its properties that do not depend on a block. */
export interface Candidate {
  readonly transaction: WireTransaction;
  readonly signature: string;
  readonly blockhash: string;
  /** Equal for two transactions with the same message, whatever their signatures are. */
  readonly messageKey: string;
  readonly fee: Fee;
}

/** Copies and parses `wire`. Throws like parseTransaction. */
export function candidateOf(wire: Uint8Array): Candidate {
  const transaction = parseTransaction(Uint8Array.from(wire));
  return {
    transaction,
    signature: encodeBase58(transaction.signatures[0] ?? new Uint8Array(0)),
    blockhash: encodeBase58(transaction.blockhash),
    messageKey: Buffer.from(sha256(transaction.message)).toString("latin1"),
    fee: feeOf(transaction),
  };
}

/** The block in which a transaction is executed. */
interface BlockContext {
  readonly slot: bigint;
  readonly parentBlockhash: Uint8Array;
  isRecent(blockhash: string): boolean;
  /** Whether a transaction with this message was already executed on this fork. */
  wasExecuted(messageKey: string): boolean;
}

export type LandedTransaction = Omit<ExecutedTransaction, "index">;
export type Verdict =
  | { readonly kind: "landed"; readonly transaction: LandedTransaction }
  /** Charges nothing and changes nothing. `outcome`: the VM's result, if it ran. */
  | {
      readonly kind: "dropped";
      readonly failure: TransactionFailure;
      readonly outcome: VmOutcome | null;
    };

const lockedAccountsMax = 128;

function dropped(failure: TransactionFailure, outcome: VmOutcome | null = null): Verdict {
  return { kind: "dropped", failure, outcome };
}

export class Executor {
  readonly #svm: Svm;
  readonly #texts = new Map<string, string>();

  constructor(svm: Svm) {
    this.#svm = svm;
  }

  execute(candidate: Candidate, block: BlockContext, undo: UndoLog): Verdict {
    const { transaction } = candidate;
    const nonceKey = block.isRecent(candidate.blockhash) ? null : advancedNonceKey(transaction);
    if (!block.isRecent(candidate.blockhash)) {
      const account = nonceKey && this.#svm.vmAccount(nonceKey);
      if (!allowsNonce(transaction, account, block.parentBlockhash)) {
        return dropped("BlockhashNotFound");
      }
    }
    if (block.wasExecuted(candidate.messageKey)) return dropped("AlreadyProcessed");
    const loaded = loadLookups(transaction, block.slot, (key) => this.#svm.vmAccount(key));
    if (typeof loaded === "string") return dropped(loaded);
    const keys = [...transaction.keys, ...loaded.writable, ...loaded.readonly];
    if (keys.length > lockedAccountsMax) return dropped("TooManyAccountLocks");
    const accountKeys = keys.map((key) => this.#textOf(key));
    if (new Set(accountKeys).size < keys.length) return dropped("AccountLoadedTwice");
    transaction.keys.forEach((key, index) => {
      if (isStaticWritable(transaction, index)) undo.remember(key);
    });
    for (const key of loaded.writable) undo.remember(key);
    const preBalances = keys.map((key) => this.#svm.balance(key));
    const outcome =
      this.#programFailure(transaction) ?? this.#svm.execute(transaction, block.parentBlockhash);
    const { err } = outcome;
    if (err !== null && this.#svm.balance(keys[0] ?? systemProgram) === preBalances[0]) {
      const failure = this.#chargeUnloaded(candidate, err);
      if (failure !== null) return dropped(failure, outcome);
    }
    if (err !== null && nonceKey) this.#advance(nonceKey, block.parentBlockhash);
    const landed = this.#landed(candidate, outcome, loaded);
    const postBalances = keys.map((key) => this.#svm.balance(key));
    return {
      kind: "landed",
      transaction: { ...landed, accountKeys, preBalances, postBalances },
    };
  }

  #landed(
    { transaction, signature, fee }: Candidate,
    outcome: VmOutcome,
    loaded: LoadedKeys,
  ): Omit<LandedTransaction, "accountKeys" | "preBalances" | "postBalances"> {
    return {
      signature,
      wire: transaction.wire,
      version: transaction.version,
      err: outcome.err,
      fee: fee.lamports,
      computeUnits: outcome.computeUnits,
      logs: outcome.logs,
      loadedAddresses: {
        writable: loaded.writable.map((key) => this.#textOf(key)),
        readonly: loaded.readonly.map((key) => this.#textOf(key)),
      },
      innerInstructions: outcome.innerInstructions,
      returnData: outcome.returnData,
    };
  }

  /**
   * The VM rejected the transaction before it charged a fee. A failure to load accounts still lands
   * and pays its fee: the result is then null. Otherwise the result says why nothing landed.
   */
  #chargeUnloaded(
    { transaction, fee }: Candidate,
    failure: TransactionFailure,
  ): TransactionFailure | null {
    if (typeof failure !== "string" || !loadFailures.has(failure)) return failure;
    const [payer] = transaction.keys;
    const account = payer ? this.#svm.vmAccount(payer) : null;
    if (!payer || !account) return "AccountNotFound";
    const isNonce = account.data.length === nonceAccountBytes;
    if (!sameKey(account.owner, systemProgram) || (account.data.length > 0 && !isNonce)) {
      return "InvalidAccountForFee";
    }
    const rentMinimum = this.#svm.minimumBalanceForRentExemption(account.data.length);
    const reserve = isNonce ? rentMinimum : 0n;
    if (account.lamports < fee.lamports + reserve) return "InsufficientFundsForFee";
    const left = account.lamports - fee.lamports;
    if (left > 0n && left < rentMinimum && account.lamports >= rentMinimum) {
      return { InsufficientFundsForRent: { account_index: 0 } };
    }
    this.#svm.setAccount(payer, { ...account, lamports: left });
    return null;
  }

  /**
   * Checked here, because litesvm has the same error for a missing program and for an account that
   * is not a program. It ends the process if a fork or a simulation has undone the program's
   * deployment.
   */
  #programFailure({ instructions, keys }: WireTransaction): VmOutcome | null {
    for (const { program } of instructions) {
      const handle = this.#svm.handle(keys[program] ?? systemProgram);
      if (handle?.executable()) continue;
      const err = handle ? "InvalidProgramForExecution" : "ProgramAccountNotFound";
      return { err, logs: [], computeUnits: 0n, innerInstructions: [], returnData: null };
    }
    return null;
  }

  #advance(nonceKey: Uint8Array, parentBlockhash: Uint8Array): void {
    const account = this.#svm.vmAccount(nonceKey);
    if (account) this.#svm.setAccount(nonceKey, advanced(account, parentBlockhash));
  }

  /** The same few thousand keys recur, and encoding a key costs more than reading its balance. */
  #textOf(key: Uint8Array): string {
    const name = Buffer.from(key).toString("latin1");
    let text = this.#texts.get(name);
    if (text === undefined) {
      text = encodeBase58(key);
      if (this.#texts.size >= textsMax) this.#texts.clear();
      this.#texts.set(name, text);
    }
    return text;
  }
}

const textsMax = 16_384;
