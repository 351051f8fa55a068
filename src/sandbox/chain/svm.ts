// The virtual machine: executes the bytes of one transaction on one set of accounts.
//
// The only file that uses litesvm, an optional dependency, which is loaded when a sandbox is
// opened. The callers apply a validator's rules around the execution (age of the blockhash,
// duplicates, signatures, durable nonces, landing); the VM's own checks of these are off. It must
// only get bytes that wire.ts accepted: on other bytes litesvm 1.4.1 ends the process.
//
// It uses litesvm's raw interface (dist/internal). The published one decodes and encodes every
// transaction again through @solana/kit (170 µs, compared with 5 µs to execute a transfer), and
// drops rentEpoch.

import type * as LiteSvmModule from "litesvm/dist/internal.js";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { encodeBase58 } from "../../relay/data-plane/base58.ts";
import { instructionErrors, transactionErrors } from "./failures.ts";
import type {
  Account,
  ExecutedTransaction,
  InnerInstructions,
  TransactionFailure,
} from "./types.ts";
import type { WireTransaction } from "./wire.ts";

/** The module in its CommonJS form. */
type Module = (typeof LiteSvmModule)["default"];
type Outcome = LiteSvmModule.TransactionMetadata | LiteSvmModule.FailedTransactionMetadata;

/** An account in the VM's own form; it can only be restored. */
export type AccountHandle = LiteSvmModule.Account;

export interface VmAccount {
  readonly lamports: bigint;
  readonly data: Uint8Array;
  /** Address of 32 bytes. */
  readonly owner: Uint8Array;
}

export interface VmOutcome {
  readonly err: TransactionFailure | null;
  readonly logs: readonly string[];
  readonly computeUnits: bigint;
  readonly innerInstructions: readonly InnerInstructions[];
  readonly returnData: ExecutedTransaction["returnData"];
}

/** The slot's data that programs can read. */
interface SlotSysvars {
  readonly slot: bigint;
  readonly epoch: bigint;
  readonly epochStartSeconds: bigint;
  readonly unixSeconds: bigint;
  /** Newest first, at most 512. */
  readonly slotHashes: readonly { readonly slot: bigint; readonly hash: Uint8Array }[];
}

const slotHashesMax = 512;
/** The rent epoch of rent-exempt accounts. */
const rentExemptEpoch = 0xffff_ffff_ffff_ffffn;
/** Log lines repeat on a busy chain, so their decoded texts are cached. */
const knownLinesMax = 4096;

async function loadModule(): Promise<Module> {
  try {
    const loaded = await import("litesvm/dist/internal.js");
    return loaded.default;
  } catch (cause) {
    throw new ShredwayError(
      "sandbox_missing",
      `sandbox chain: expected the optional package litesvm, got: ${messageOf(cause)}; install it with: npm install --include=optional (npm omits it from an installed package on Node 20: use Node 22.12 or newer)`,
      { cause },
    );
  }
}

export class Svm {
  readonly #module: Module;
  readonly #vm: LiteSvmModule.LiteSvm;
  readonly #slotHashesKey: Uint8Array;
  readonly #sysvarOwner: Uint8Array;
  readonly #knownLines = new Map<string, string>();

  /** Loads litesvm. Throws ShredwayError "sandbox_missing" if it is not installed. */
  static async open(options: {
    readonly slotsPerEpoch: bigint;
    /** Keys of SysvarS1otHashes and of the owner of sysvars. */
    readonly slotHashesKey: Uint8Array;
    readonly sysvarOwner: Uint8Array;
  }): Promise<Svm> {
    return new Svm(await loadModule(), options);
  }

  private constructor(
    module: Module,
    options: {
      readonly slotsPerEpoch: bigint;
      readonly slotHashesKey: Uint8Array;
      readonly sysvarOwner: Uint8Array;
    },
  ) {
    this.#module = module;
    this.#vm = new module.LiteSvm();
    this.#vm.setSigverify(false);
    this.#vm.setBlockhashCheck(false);
    this.#vm.setTransactionHistory(0n);
    this.#vm.setEpochSchedule(
      new module.EpochSchedule(options.slotsPerEpoch, options.slotsPerEpoch, false, 0n, 0n),
    );
    this.#slotHashesKey = options.slotHashesKey;
    this.#sysvarOwner = options.sysvarOwner;
  }

  beginSlot({ slot, epoch, epochStartSeconds, unixSeconds, slotHashes }: SlotSysvars): void {
    const { Clock } = this.#module;
    this.#vm.setClock(new Clock(slot, epochStartSeconds, epoch, epoch + 1n, unixSeconds));
    // Written as account bytes: 512 entries as objects, each hash in base58, take twice the time.
    const data = new Uint8Array(8 + slotHashesMax * 40);
    const view = new DataView(data.buffer);
    view.setBigUint64(0, BigInt(Math.min(slotHashes.length, slotHashesMax)), true);
    slotHashes.slice(0, slotHashesMax).forEach((entry, i) => {
      view.setBigUint64(8 + 40 * i, entry.slot, true);
      data.set(entry.hash, 16 + 40 * i);
    });
    this.setAccount(this.#slotHashesKey, { lamports: 1n, data, owner: this.#sysvarOwner });
  }

  /** 0 if the account does not exist. */
  balance(key: Uint8Array): bigint {
    return this.#vm.getBalance(key) ?? 0n;
  }

  vmAccount(key: Uint8Array): VmAccount | null {
    const handle = this.handle(key);
    return handle && { lamports: handle.lamports(), data: handle.data(), owner: handle.owner() };
  }

  account(key: Uint8Array): Account | null {
    const handle = this.handle(key);
    return handle && this.accountOf(handle);
  }

  handle(key: Uint8Array): AccountHandle | null {
    const handle = this.#vm.getAccount(key);
    return handle === null || handle.lamports() === 0n ? null : handle;
  }

  /** Restores an earlier result of `handle`; null: the account did not exist. */
  restore(key: Uint8Array, handle: AccountHandle | null): void {
    this.#vm.setAccount(
      key,
      handle ?? new this.#module.Account(0n, new Uint8Array(0), new Uint8Array(32), false, 0n),
    );
  }

  setAccount(key: Uint8Array, { lamports, data, owner }: VmAccount): void {
    this.#vm.setAccount(
      key,
      new this.#module.Account(lamports, data, owner, false, rentExemptEpoch),
    );
  }

  /** Maps addresses in base58 to accounts. */
  programAccounts(program: Uint8Array): Map<string, Account> {
    return new Map(
      this.#vm
        .getProgramAccounts(program)
        .map((found): [string, Account] => [
          encodeBase58(found.address),
          this.accountOf(found.account()),
        ])
        .filter(([, { lamports }]) => lamports > 0n)
        .toSorted(([a], [b]) => (a < b ? -1 : 1)), // the VM's order is undefined
    );
  }

  minimumBalanceForRentExemption(bytes: number): bigint {
    return this.#vm.minimumBalanceForRentExemption(BigInt(bytes));
  }

  /**
   * Executes and keeps the effects. The programs' newest blockhash (from which the values of
   * durable nonces derive) is the transaction's own, so it is replaced by `blockhash`.
   */
  execute(transaction: WireTransaction, blockhash: Uint8Array): VmOutcome {
    const bytes = Uint8Array.from(transaction.wire);
    bytes.set(blockhash, transaction.blockhashAt);
    return this.#outcomeOf(this.#vm.sendVersionedTransaction(bytes));
  }

  accountOf(handle: AccountHandle): Account {
    return {
      lamports: handle.lamports(),
      data: handle.data(),
      owner: encodeBase58(handle.owner()),
      executable: handle.executable(),
      rentEpoch: handle.rentEpoch(),
    };
  }

  #outcomeOf(outcome: Outcome): VmOutcome {
    const isFailure = outcome instanceof this.#module.FailedTransactionMetadata;
    const meta = isFailure ? outcome.meta() : outcome;
    const returnData = meta.returnData();
    const data = returnData.data();
    return {
      err: isFailure ? this.#failureOf(outcome) : null,
      logs: meta.logs().map((line) => this.#shared(line)),
      computeUnits: meta.computeUnitsConsumed(),
      innerInstructions: innerInstructionsOf(meta),
      returnData:
        data.length === 0 ? null : { programId: encodeBase58(returnData.programId()), data },
    };
  }

  #failureOf(failed: LiteSvmModule.FailedTransactionMetadata): TransactionFailure {
    const error = failed.err();
    if (typeof error === "number") return transactionErrors[error] ?? "SanitizeFailure";
    const { InstructionErrorCustom, InstructionErrorBorshIo } = this.#module;
    if (error instanceof this.#module.TransactionErrorInstructionError) {
      const inner = error.err();
      if (inner instanceof InstructionErrorCustom) {
        return { InstructionError: [error.index, { Custom: inner.code }] };
      }
      const name =
        inner instanceof InstructionErrorBorshIo
          ? "BorshIoError"
          : (instructionErrors[inner] ?? "GenericError");
      return { InstructionError: [error.index, name] };
    }
    if (error instanceof this.#module.TransactionErrorDuplicateInstruction) {
      return { DuplicateInstruction: error.index };
    }
    const name =
      error instanceof this.#module.TransactionErrorInsufficientFundsForRent
        ? "InsufficientFundsForRent"
        : "ProgramExecutionTemporarilyRestricted";
    return { [name]: { account_index: error.accountIndex } };
  }

  #shared(line: string): string {
    const known = this.#knownLines.get(line);
    if (known !== undefined) return known;
    if (this.#knownLines.size >= knownLinesMax) this.#knownLines.clear();
    this.#knownLines.set(line, line);
    return line;
  }
}

function innerInstructionsOf(meta: LiteSvmModule.TransactionMetadata): InnerInstructions[] {
  return meta.innerInstructions().flatMap((calls, index): InnerInstructions[] => {
    if (calls.length === 0) return [];
    const instructions = calls.map((call) => {
      const instruction = call.instruction();
      return {
        programIdIndex: instruction.programIdIndex(),
        accounts: [...instruction.accounts()],
        data: instruction.data(),
        stackHeight: call.stackHeight(),
      };
    });
    return [{ index, instructions }];
  });
}
