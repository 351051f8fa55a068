// A sandbox chain in a test: manual time, wallets with SOL, transactions built by web3.js.

import {
  AddressLookupTableAccount,
  AddressLookupTableProgram,
  Keypair,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { SandboxChain } from "../../../src/sandbox/chain/chain.ts";
import type { ChainOptions } from "../../../src/sandbox/chain/options.ts";
import type { EmittedShreds } from "../../../src/sandbox/chain/producer.ts";
import type { ChainEvent, TransactionFailure } from "../../../src/sandbox/chain/types.ts";

export const sol = 1_000_000_000n;
export const walletLamports = 100n * sol;

export function wallet(number: number): Keypair {
  return Keypair.fromSeed(new Uint8Array(32).fill(number));
}

export function addressOf(pair: Keypair): string {
  return pair.publicKey.toBase58();
}

export const alice = wallet(1);
export const bob = wallet(2);
export const carol = wallet(3);
export const dave = wallet(4);
export const erin = wallet(5);
/** Wallets that these chains fund. */
export const wallets: readonly Keypair[] = [alice, bob, carol, dave, erin];

/** A chain whose slots the test controls; all its events are recorded. */
export class ChainRun {
  readonly events: ChainEvent[] = [];
  readonly shreds: EmittedShreds[] = [];
  readonly dropped = new Map<string, TransactionFailure>();
  readonly slotNs: bigint;
  #chain: SandboxChain | undefined;
  timeNs = 0n;

  /** Without background traffic and votes by default. The first slot has begun. */
  static async open(options: ChainOptions = {}): Promise<ChainRun> {
    const run = new ChainRun(BigInt(options.slotMs ?? 400) * 1_000_000n);
    run.#chain = await SandboxChain.open({
      background: false,
      votes: false,
      funded: new Map(wallets.map((pair) => [addressOf(pair), walletLamports])),
      onShreds: (shreds) => run.shreds.push(shreds),
      onDropped: (signature, failure) => run.dropped.set(signature, failure),
      ...options,
    });
    run.#chain.subscribe((event) => run.events.push(event));
    run.#chain.advanceTo(0n);
    return run;
  }

  private constructor(slotNs: bigint) {
    this.slotNs = slotNs;
  }

  get chain(): SandboxChain {
    if (!this.#chain) throw new Error("expected an open chain");
    return this.#chain;
  }

  /** Lets `count` slots pass. */
  slots(count = 1): void {
    this.pass(this.slotNs * BigInt(count));
  }

  pass(durationNs: bigint): void {
    this.timeNs += durationNs;
    this.chain.advanceTo(this.timeNs);
  }

  get blockhash(): string {
    return this.chain.latestBlockhash("processed").blockhash;
  }

  balance(pair: Keypair): bigint {
    return this.chain.account(addressOf(pair))?.lamports ?? 0n;
  }

  eventsOf<K extends ChainEvent["kind"]>(kind: K): Extract<ChainEvent, { kind: K }>[] {
    return this.events.filter(
      (event): event is Extract<ChainEvent, { kind: K }> => event.kind === kind,
    );
  }

  legacy(
    instructions: readonly TransactionInstruction[],
    signers: readonly Keypair[],
    blockhash = this.blockhash,
  ): Uint8Array {
    const [payer] = signers;
    if (!payer) throw new Error("expected a payer");
    const transaction = new Transaction({
      feePayer: payer.publicKey,
      blockhash,
      lastValidBlockHeight: 0, // only for clients that wait
    });
    transaction.add(...instructions);
    transaction.sign(...signers);
    return Uint8Array.from(transaction.serialize());
  }

  transfer(from: Keypair, to: Keypair, lamports: bigint, blockhash = this.blockhash): Uint8Array {
    return this.legacy([transferOf(from, to, lamports)], [from], blockhash);
  }

  /** A lookup table of `entries`, ready for use; takes a few slots. */
  lookupTable(
    payer: Keypair,
    entries: readonly Keypair[],
  ): { signature: string; lookup: AddressLookupTableAccount } {
    this.slots();
    const [create, key] = AddressLookupTableProgram.createLookupTable({
      authority: payer.publicKey,
      payer: payer.publicKey,
      recentSlot: this.chain.slot("processed") - 1n,
    });
    const extend = AddressLookupTableProgram.extendLookupTable({
      payer: payer.publicKey,
      authority: payer.publicKey,
      lookupTable: key,
      addresses: entries.map(({ publicKey }) => publicKey),
    });
    const signature = this.chain.send(this.legacy([create, extend], [payer]));
    this.slots(2);
    const data = this.chain.account(key.toBase58())?.data ?? new Uint8Array(0);
    const state = AddressLookupTableAccount.deserialize(data);
    return { signature, lookup: new AddressLookupTableAccount({ key, state }) };
  }

  versioned(
    instructions: TransactionInstruction[],
    signers: readonly Keypair[],
    tables: Parameters<TransactionMessage["compileToV0Message"]>[0] = [],
  ): Uint8Array {
    const [payer] = signers;
    if (!payer) throw new Error("expected a payer");
    const message = new TransactionMessage({
      payerKey: payer.publicKey,
      recentBlockhash: this.blockhash,
      instructions,
    }).compileToV0Message(tables);
    const transaction = new VersionedTransaction(message);
    transaction.sign([...signers]);
    return transaction.serialize();
  }
}

export function transferOf(from: Keypair, to: Keypair, lamports: bigint): TransactionInstruction {
  return SystemProgram.transfer({
    fromPubkey: from.publicKey,
    toPubkey: to.publicKey,
    lamports,
  });
}
