// The harness of registration tests: recorded tier accounting, signed tips, a registrar over a real
// database.

import {
  AddressLookupTableAccount,
  type Keypair,
  PublicKey,
  Transaction,
  type TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import { createLogger, type Logger } from "../../../src/core/log.ts";
import {
  SignatureVerifier,
  TransactionInspector,
} from "../../../src/gateway/transactions/transaction-checks.ts";
import { migrate } from "../../../src/platform/store/migrations.ts";
import { SqlRegistrationStore } from "../../../src/platform/store/tables/registration-store.ts";
import { SqlTierStore } from "../../../src/platform/store/tables/tier-store.ts";
import { decodeBase58, encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import {
  TipRegistrar,
  type TipRegistrarOptions,
} from "../../../src/shreds/registrations/registrar.ts";
import type {
  CountedTip,
  Registration,
  RegistrationEntry,
  TierAccounting,
} from "../../../src/shreds/registrations/registration-types.ts";
import type { Files } from "../../platform/store/files.ts";
import { closing } from "../../support/closing.ts";
import { addressOf, alice, bob, transferOf, wallet } from "../../support/transactions/chain.ts";

export const silent: Logger = createLogger({ level: "silent" });
export const shredWallet = wallet(110);
export const otherShredWallet = wallet(111);
export const shredAddresses: ReadonlySet<string> = new Set([
  addressOf(shredWallet),
  addressOf(otherShredWallet),
]);
export const codec = { decode: decodeBase58, encode: encodeBase58 };
export const presentSlot = 1_000_000n;

/** Records the calls of the tier accounting. */
export class TestAccounting implements TierAccounting {
  readonly epoch = 1n;
  /** Number of times that the store reported a later term. */
  givenUp = 0;
  ms = 1_767_225_600_000;
  readonly orders: bigint[] = [];
  readonly settled = new Map<bigint, CountedTip | null>();
  #next = 1n;

  nowMs(): number {
    return this.ms;
  }

  takeOrder(): bigint {
    const order = this.#next++;
    this.orders.push(order);
    return order;
  }

  settleOrder(order: bigint, counted: CountedTip | null): void {
    if (!this.orders.includes(order)) throw new Error(`order ${order} was never taken`);
    if (this.settled.has(order)) throw new Error(`order ${order} was settled before`);
    this.settled.set(order, counted);
  }

  giveUp(): void {
    this.givenUp++;
  }

  get tips(): CountedTip[] {
    return [...this.settled.values()].filter((counted) => counted !== null);
  }

  /** Order numbers that later tips would wait for. */
  get open(): bigint[] {
    return this.orders.filter((order) => !this.settled.has(order));
  }
}

export function shredInspector(): TransactionInspector {
  const tipAddresses = [shredWallet, otherShredWallet].map((pair) => pair.publicKey.toBytes());
  return new TransactionInspector({ tipAddresses, dontFrontPrefixes: [] });
}

export async function openStore(files: Files): Promise<SqlRegistrationStore> {
  const driver = await files.driver();
  await migrate(driver, "blob");
  await new SqlTierStore(driver).takeOver(); // epoch 1
  return new SqlRegistrationStore(driver, codec);
}

export interface Harness {
  readonly registrar: TipRegistrar;
  readonly store: SqlRegistrationStore;
  readonly accounting: TestAccounting;
}

/** Native checks, a real database, no node. */
export async function openHarness(
  files: Files,
  changes: (parts: TipRegistrarOptions) => Partial<TipRegistrarOptions> = () => ({}),
): Promise<Harness> {
  const store = await openStore(files);
  const accounting = new TestAccounting();
  const inspector = shredInspector();
  const parts: TipRegistrarOptions = {
    log: silent,
    reader: { inspect: (wire) => inspector.inspect(wire), decode: decodeBase58 },
    verifier: closing(SignatureVerifier.open({ threads: 1, queueMax: 1000 })),
    store,
    tiers: accounting,
    pending: new TestPendingRegistrations(accounting),
    present: () => ({ slot: presentSlot, slotNs: 400_000_000n }),
    addresses: () => shredAddresses,
  };
  return { registrar: new TipRegistrar({ ...parts, ...changes(parts) }), store, accounting };
}

type PendingOfRegistrar = TipRegistrarOptions["pending"];

/** Pending registrations that are only counted. */
export class TestPendingRegistrations implements PendingOfRegistrar {
  readonly accounting: TierAccounting | null;
  free = 1000;
  readonly added: Registration[] = [];
  readonly claims: string[] = [];

  constructor(accounting: TierAccounting | null = null) {
    this.accounting = accounting;
  }

  reserve(): boolean {
    if (this.free === 0) return false;
    this.free--;
    return true;
  }

  release(): void {
    this.free++;
  }

  add(registration: Registration): void {
    this.added.push(registration);
  }

  claimed(signature: string): void {
    this.claims.push(signature);
  }
}

export const blockhash = new PublicKey(new Uint8Array(32).fill(7)).toBase58();

export function signed(
  instructions: readonly TransactionInstruction[],
  signers: readonly Keypair[] = [alice],
  lifetime = blockhash,
): Uint8Array {
  const [payer = alice] = signers;
  const transaction = new Transaction({
    feePayer: payer.publicKey,
    blockhash: lifetime,
    lastValidBlockHeight: 0, // only for clients that wait
  });
  transaction.add(...instructions);
  transaction.sign(...signers);
  return Uint8Array.from(transaction.serialize());
}

/** `amount` makes transactions differ. */
export function tip(lamports = 10_000n, amount = 1n, from: Keypair = alice): Uint8Array {
  const paid = transferOf(from, shredWallet, lamports);
  return signed([transferOf(from, bob, amount), paid], [from]);
}

export function tipV0(lamports = 10_000n, lookedUp: readonly Keypair[] = []): Uint8Array {
  const table = new AddressLookupTableAccount({
    key: wallet(120).publicKey,
    state: {
      deactivationSlot: 2n ** 64n - 1n,
      lastExtendedSlot: 0,
      lastExtendedSlotStartIndex: 0,
      addresses: lookedUp.map(({ publicKey }) => publicKey),
    },
  });
  const message = new TransactionMessage({
    payerKey: alice.publicKey,
    recentBlockhash: blockhash,
    instructions: [transferOf(alice, shredWallet, lamports)],
  }).compileToV0Message(lookedUp.length > 0 ? [table] : []);
  const transaction = new VersionedTransaction(message);
  transaction.sign([alice]);
  return transaction.serialize();
}

export function entry(wire: Uint8Array, slot = presentSlot): RegistrationEntry {
  return { transaction: Buffer.from(wire).toString("base64"), slot };
}

export function signatureOf(wire: Uint8Array): string {
  return shredInspector().inspect(wire).signature;
}
