// SandboxChain: a Solana-like cluster in this process, with a real virtual machine and real shreds.
//
// Opened by the sandbox and by tests; the RPC endpoint reads and submits through ChainApi. It has
// no timers: the owner calls `advanceTo` with the monotonic time, as often as it needs shreds. The
// same options and the same calls give the same bytes. Deliberate differences from a real cluster:
// fees are burned and no rewards are paid; the bank hash of a block, which votes contain, is its
// blockhash; stakes are a table, without stake accounts.

import { ShredwayError } from "../../core/errors.ts";
import { parsePubkey, pubkeyBytes, u64Max } from "../../core/primitives.ts";
import { lifetimeSlots } from "../../core/solana-constants.ts";
import {
  buildTransaction,
  transferInstruction,
  u32Bytes,
} from "../../core/transactions/build-legacy.ts";
import { encodeBase58 } from "../../relay/data-plane/base58.ts";
import type { LeaderSchedule } from "../../relay/leaders/schedule.ts";
import { computeBudgetProgram, slotHashesSysvar, sysvarOwner } from "./addresses.ts";
import { Background } from "./background.ts";
import { type Candidate, candidateOf, Executor } from "./executor.ts";
import { ChainFaults } from "./faults.ts";
import { createGenesis } from "./genesis.ts";
import { SandboxKeyPair, sha256, verifySignatures } from "./keys.ts";
import { SandboxLeaders } from "./leader-schedule.ts";
import { Ledger } from "./ledger.ts";
import { type ChainOptions, type CheckedOptions, checkOptions } from "./options.ts";
import { Producer } from "./producer.ts";
import { LeaderQueue } from "./queue.ts";
import { simulate } from "./simulation.ts";
import { Svm } from "./svm.ts";
import type {
  Account,
  Block,
  ChainApi,
  ChainEvent,
  Commitment,
  EpochInfo,
  ExecutedTransaction,
  SignatureStatus,
  SimulateOptions,
  Simulation,
  Validator,
} from "./types.ts";
import type { UndoLog } from "./undo.ts";
import { type ClusterValidator, makeValidators } from "./validators.ts";
import { Votes } from "./votes.ts";

const bundleTransactionsMax = 5;
const accountBytesMax = 10 * 1024 * 1024;

export class SandboxChain implements ChainApi {
  readonly genesisHash: string;
  readonly slotsPerEpoch: bigint;
  /** Injected faults. */
  readonly faults: ChainFaults;
  readonly #options: CheckedOptions;
  readonly #svm: Svm;
  readonly #executor: Executor;
  readonly #ledger: Ledger;
  readonly #queue: LeaderQueue;
  readonly #leaders: SandboxLeaders;
  readonly #validators: readonly ClusterValidator[];
  readonly #faucet: SandboxKeyPair;
  readonly #producer: Producer;
  readonly #listeners = new Set<(event: ChainEvent) => void>();
  readonly #listenerFailures: { readonly thrown: unknown }[] = [];
  #airdrops = 0;

  /**
   * Throws ShredwayError "value_invalid" for options out of range and "sandbox_missing" if the
   * virtual machine is not installed.
   */
  static async open(options: ChainOptions = {}): Promise<SandboxChain> {
    const checked = checkOptions(options);
    const svm = await Svm.open({
      slotsPerEpoch: BigInt(checked.slotsPerEpoch),
      slotHashesKey: slotHashesSysvar,
      sysvarOwner,
    });
    return new SandboxChain(checked, svm);
  }

  private constructor(options: CheckedOptions, svm: Svm) {
    const { seed } = options;
    this.#options = options;
    this.#svm = svm;
    this.#executor = new Executor(svm);
    this.slotsPerEpoch = BigInt(options.slotsPerEpoch);
    this.#validators = makeValidators(seed, options.validators);
    this.#leaders = new SandboxLeaders(
      seed,
      this.#validators.map(({ identity, identityKeys, stakeLamports }) => ({
        identity,
        publicKey: identityKeys.publicKey,
        stakeLamports,
      })),
      this.slotsPerEpoch,
    );
    this.#faucet = SandboxKeyPair.named(seed, "faucet");
    this.#queue = new LeaderQueue(options.queueMax);
    this.faults = new ChainFaults(seed);
    const background = options.background && this.#makeBackground(options.background);
    const genesisHash = sha256(`shredway sandbox genesis ${seed} ${options.firstSlot}`);
    this.genesisHash = encodeBase58(genesisHash);
    createGenesis(svm, {
      faucet: this.#faucet,
      validators: this.#validators,
      wallets: background?.wallets ?? [],
      funded: Array.from(options.funded, ([address, lamports]) => ({
        key: pubkeyBytes(parsePubkey(address)),
        lamports,
      })),
      genesisHash,
    });
    this.#ledger = this.#makeLedger(genesisHash);
    this.#producer = this.#makeProducer(background);
  }

  /**
   * Runs everything that is due until `timeNs` (Clock.monotonicNs). The first call begins the first
   * slot. A time before an earlier one does nothing. An exception of a listener is thrown at the
   * end.
   */
  advanceTo(timeNs: bigint): void {
    this.#producer.advanceTo(timeNs);
    const [failure] = this.#listenerFailures.splice(0);
    if (failure) throw failure.thrown;
  }

  /** The current slot by time, even if it has no block. */
  get currentSlot(): bigint {
    return this.#producer.currentSlot;
  }

  get faucetAddress(): string {
    return this.#faucet.address;
  }

  /** Number of transactions in the leader's queue. */
  get queued(): number {
    return this.#queue.count;
  }

  /** Leaders of the slots in the current epoch and the next one. */
  relaySchedule(): LeaderSchedule {
    return this.#leaders.forRelay(this.currentSlot);
  }

  slot(commitment: Commitment): bigint {
    return this.#ledger.slot(commitment);
  }

  blockHeight(commitment: Commitment): bigint {
    return this.#ledger.height(commitment);
  }

  transactionCount(): bigint {
    return this.#ledger.transactionCount;
  }

  latestBlockhash(commitment: Commitment): { blockhash: string; lastValidBlockHeight: bigint } {
    const { blockhash, blockHeight } = this.#ledger.blockAt(commitment);
    return { blockhash, lastValidBlockHeight: blockHeight + lifetimeSlots };
  }

  isBlockhashValid(blockhash: string): boolean {
    return this.#ledger.isRecent(blockhash);
  }

  epochInfo(commitment: Commitment): EpochInfo {
    const absoluteSlot = this.slot(commitment);
    return {
      epoch: this.#leaders.epochOf(absoluteSlot),
      slotIndex: absoluteSlot % this.slotsPerEpoch,
      slotsInEpoch: this.slotsPerEpoch,
      absoluteSlot,
      blockHeight: this.blockHeight(commitment),
      transactionCount: this.transactionCount(),
    };
  }

  leaderSchedule(slot: bigint): ReadonlyMap<string, readonly number[]> | null {
    return this.#isScheduled(slot)
      ? this.#leaders.slotsByIdentity(this.#leaders.epochOf(slot))
      : null;
  }

  leaderOf(slot: bigint): string | null {
    if (!this.#isScheduled(slot)) return null;
    return this.#validators[this.#leaders.numberOf(slot)]?.identity ?? null;
  }

  validators(): readonly Validator[] {
    return this.#validators.map(({ name, identity, voteAccount, stakeLamports, isAltPartner }) => ({
      name,
      identity,
      voteAccount,
      stakeLamports,
      isAltPartner,
    }));
  }

  /** Throws ShredwayError "value_invalid" if `address` is not a public key. */
  account(address: string, commitment: Commitment = "processed"): Account | null {
    const key = pubkeyBytes(parsePubkey(address));
    return this.#accountBefore(key, this.#ledger.undoLogsAfter(commitment));
  }

  programAccounts(
    program: string,
    commitment: Commitment = "processed",
  ): ReadonlyMap<string, Account> {
    const accounts = this.#svm.programAccounts(pubkeyBytes(parsePubkey(program)));
    const logs = this.#ledger.undoLogsAfter(commitment);
    for (const key of logs.flatMap((log) => log.keys())) {
      const account = this.#accountBefore(key, logs);
      if (account?.owner === program) accounts.set(encodeBase58(key), account);
      else accounts.delete(encodeBase58(key));
    }
    return accounts;
  }

  minimumBalanceForRentExemption(bytes: number): bigint {
    if (!Number.isSafeInteger(bytes) || bytes < 0 || bytes > accountBytesMax) {
      throw new ShredwayError(
        "value_invalid",
        `account size: expected 0 to ${accountBytesMax} bytes, got ${bytes}`,
      );
    }
    return this.#svm.minimumBalanceForRentExemption(bytes);
  }

  block(slot: bigint): Block | null | undefined {
    return this.#ledger.block(slot);
  }

  firstKeptSlot(): bigint {
    return this.#ledger.firstKeptSlot();
  }

  transaction(signature: string): { block: Block; transaction: ExecutedTransaction } | null {
    return this.#ledger.transaction(signature);
  }

  status(signature: string): SignatureStatus | null {
    return this.#ledger.status(signature);
  }

  signaturesFor(address: string): readonly { signature: string; slot: bigint }[] {
    return this.#ledger.signaturesFor(address);
  }

  simulate(wire: Uint8Array, options: SimulateOptions): Simulation {
    return simulate(wire, options, {
      svm: this.#svm,
      executor: this.#executor,
      ledger: this.#ledger,
    });
  }

  /** Throws "transaction_invalid", "transaction_version", "signature_invalid", "queue_full". */
  send(wire: Uint8Array, tipLamports = 0n): string {
    const candidate = candidateOf(wire);
    verifySignatures(candidate.transaction);
    return this.#enqueue([candidate], false, tipLamports)[0] ?? "";
  }

  /** Throws like `send`, and "value_invalid" unless there are 1 to 5 different transactions. */
  sendBundle(wires: readonly Uint8Array[], tipLamports = 0n): readonly string[] {
    if (wires.length === 0 || wires.length > bundleTransactionsMax) {
      throw new ShredwayError(
        "value_invalid",
        `bundle: expected 1 to ${bundleTransactionsMax} transactions, got ${wires.length}`,
      );
    }
    const candidates = wires.map(candidateOf);
    if (new Set(candidates.map(({ messageKey }) => messageKey)).size < candidates.length) {
      throw new ShredwayError("value_invalid", "bundle: expected every transaction once");
    }
    for (const { transaction } of candidates) verifySignatures(transaction);
    return this.#enqueue(candidates, true, tipLamports);
  }

  airdrop(address: string, lamports: bigint): string {
    const to = pubkeyBytes(parsePubkey(address));
    if (lamports < 0n || lamports > u64Max) {
      throw new ShredwayError(
        "value_invalid",
        `lamports: expected 0 to ${u64Max}, got ${lamports}`,
      );
    }
    // The compute unit limit counts up, so that equal airdrops are different transactions.
    const units = 10_000 + (this.#airdrops++ % 1_000_000);
    const wire = buildTransaction(
      [this.#faucet],
      [
        {
          program: computeBudgetProgram,
          accounts: [],
          data: Buffer.concat([Uint8Array.of(2), u32Bytes(units)]),
        },
        transferInstruction(this.#faucet.publicKey, to, lamports),
      ],
      this.#ledger.tipEnd.blockhash,
    );
    return this.#enqueue([candidateOf(wire)], false, 0n)[0] ?? "";
  }

  /** Listeners are called inside `advanceTo`; they may read and submit. */
  subscribe(listener: (event: ChainEvent) => void): () => void {
    const own = (event: ChainEvent): void => listener(event);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  #enqueue(
    candidates: readonly Candidate[],
    isBundle: boolean,
    tipLamports: bigint,
  ): readonly string[] {
    const signatures = candidates.map(({ signature }) => signature);
    // Sending a waiting transaction again has no effect. (A bundle with a waiting transaction is
    // rejected.)
    const waiting = signatures.filter((signature) => this.#queue.has(signature));
    if (waiting.length > 0) {
      if (!isBundle) return signatures;
      throw new ShredwayError(
        "value_invalid",
        `bundle: expected new transactions, got ${waiting[0]}, which is already in the queue`,
      );
    }
    const delayNs = BigInt(Math.round(this.faults.delayMs * 1e6));
    const notBeforeNs = this.#producer.timeNs + delayNs;
    this.#queue.add({ candidates, isBundle, notBeforeNs, tipLamports });
    return signatures;
  }

  /**
   * The account before the changes that `logs` can undo, oldest first; the current account if no
   * log contains it.
   */
  #accountBefore(key: Uint8Array, logs: readonly UndoLog[]): Account | null {
    for (const log of logs) {
      const handle = log.before(key);
      if (handle !== undefined) return handle && this.#svm.accountOf(handle);
    }
    return this.#svm.account(key);
  }

  #isScheduled(slot: bigint): boolean {
    const epoch = this.#leaders.epochOf(slot);
    return slot >= 0n && epoch <= this.#leaders.epochOf(this.currentSlot) + 1n;
  }

  #emit(event: ChainEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (thrown) {
        // This may be in the middle of a block: the chain must return to a consistent state.
        this.#listenerFailures.push({ thrown });
      }
    }
  }

  #makeBackground(choice: NonNullable<CheckedOptions["background"]>): Background {
    return new Background(this.#options.seed, {
      ...choice,
      tipAddresses: choice.tipAddresses.map((address) => pubkeyBytes(parsePubkey(address))),
    });
  }

  #makeLedger(genesisHash: Uint8Array): Ledger {
    const { firstSlot, genesisSeconds } = this.#options;
    const slot = firstSlot - 1n;
    const root: Block = {
      slot,
      parentSlot: slot === 0n ? 0n : slot - 1n,
      blockhash: this.genesisHash,
      previousBlockhash: encodeBase58(new Uint8Array(32)),
      blockHeight: 0n,
      blockTime: genesisSeconds,
      leader: this.#validators[this.#leaders.numberOf(slot)]?.identity ?? "",
      transactions: [],
    };
    const end = { slot, blockhash: genesisHash, lastRoot: new Uint8Array(32) };
    return new Ledger(root, end, this.#options);
  }

  #makeProducer(background: Background | null): Producer {
    const options = this.#options;
    return new Producer(
      {
        ...options,
        slotNs: BigInt(options.slotMs) * 1_000_000n,
        onShreds: options.onShreds ?? null,
        onDropped: options.onDropped ?? null,
      },
      {
        svm: this.#svm,
        executor: this.#executor,
        ledger: this.#ledger,
        queue: this.#queue,
        leaders: this.#leaders,
        validators: this.#validators,
        faults: this.faults,
        background,
        votes: options.votes ? new Votes(this.#validators) : null,
        emit: (event) => this.#emit(event),
      },
    );
  }
}
