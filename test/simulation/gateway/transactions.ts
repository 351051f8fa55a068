// The transactions of the simulated senders, and what is true about each of them.

import { createHash, verify } from "node:crypto";
import { base58 } from "@scure/base";
import { publicKeyOf } from "../../../src/core/key-pair.ts";
import { parseTransaction, type WireTransaction } from "../../../src/sandbox/chain/wire.ts";
import { Wallet } from "../tips.ts";
import type { ChainTransaction } from "./chain.ts";
import { hexOf, type NonceUse, nonceUseOf } from "./nonce-accounts.ts";
import { type NonceChoice, pricedTransfer } from "./nonce-transactions.ts";

/** The tip address of the simulated gateway. */
export const gatewayTipAddress = new Uint8Array(
  createHash("sha256").update("gateway tips").digest(),
);
/** The smallest tip that the simulated gateway accepts. */
export const minimumTip = 1_000;

const signatureAt = 1;
const signatureEnd = 65;

export interface TransactionChoice {
  /** 0: it pays no tip. */
  readonly tip: number;
  /** It lands with an error. */
  readonly fails: boolean;
  /** Its signature is wrong. */
  readonly isForged: boolean;
  /** Micro-lamports per compute unit; default 0. */
  readonly unitPrice?: number;
}

/** A signed transaction. Nothing here comes from the product. */
export class SentTransaction implements ChainTransaction {
  readonly signature: string;
  /** As it is submitted. */
  readonly wire: Buffer;
  readonly tip: number;
  readonly unitPrice: number;
  readonly fails: boolean;
  readonly isForged: boolean;
  readonly blockhash: string;
  readonly nonce: NonceUse | null;
  /** With all signatures. */
  parsed: WireTransaction;

  constructor(
    wallet: Wallet,
    choice: TransactionChoice,
    lifetime: Uint8Array,
    { number, nonce }: { readonly number: number; readonly nonce: NonceChoice | null },
  ) {
    const { tip, fails, isForged, unitPrice = 0 } = choice;
    // Split in a way that makes it unique, with transfers of nothing if there are too many.
    const rest = tip === 0 ? 0 : number % tip;
    const zeros = tip === 0 ? 0 : Math.floor(number / tip);
    const lamports = [tip - rest, rest, ...Array<number>(zeros).fill(0)];
    const to = tip === 0 ? createHash("sha256").update(`${number}`).digest() : gatewayTipAddress;
    this.wire =
      nonce || unitPrice > 0
        ? pricedTransfer({ payer: wallet, nonce, to, lamports, unitPrice, lifetime })
        : wallet.transfer({ to, lamports, blockhash: lifetime });
    if (isForged) this.wire[signatureAt + 8] = (this.wire[signatureAt + 8] ?? 0) ^ 1;
    this.parsed = parseTransaction(this.wire);
    this.signature = base58.encode(this.wire.subarray(signatureAt, signatureEnd));
    this.tip = tip;
    this.unitPrice = unitPrice;
    this.fails = fails;
    this.isForged = isForged;
    this.blockhash = hexOf(lifetime);
    this.nonce = nonceUseOf(this.parsed);
  }

  get isComplete(): boolean {
    return this.parsed.signatures.every((signature) => signature.some((byte) => byte !== 0));
  }

  /** The service added the signature of the nonce authority. Returns whether these are its bytes. */
  isCompletedBy(wire: Buffer): boolean {
    const { signatures, keys, message } = this.parsed;
    const authority = keys[1];
    const signature = wire.subarray(signatureEnd, signatureEnd + 64);
    const before = Buffer.from(wire).fill(0, signatureEnd, signatureEnd + 64);
    if (signatures.length !== 2 || !authority || !before.equals(this.wire)) return false;
    if (!verify(null, message, publicKeyOf(authority), signature)) return false;
    this.parsed = parseTransaction(wire);
    return true;
  }
}

/** Everything that customers have signed. */
export class Transactions {
  readonly #wallets = new Map<number, Wallet>();
  readonly #byWire = new Map<string, SentTransaction>();
  readonly #bySignature = new Map<string, SentTransaction>();
  #count = 0;

  walletOf(customer: number): Wallet {
    const wallet = this.#wallets.get(customer) ?? new Wallet(`sender ${customer}`);
    this.#wallets.set(customer, wallet);
    return wallet;
  }

  /** `lifetime`: a blockhash, or the value of `nonce`. */
  sign(
    customer: number,
    choice: TransactionChoice,
    lifetime: Uint8Array,
    nonce: NonceChoice | null = null,
  ): SentTransaction {
    const wallet = this.walletOf(customer);
    const signed = new SentTransaction(wallet, choice, lifetime, { number: ++this.#count, nonce });
    this.#byWire.set(signed.wire.toString("base64"), signed);
    this.#bySignature.set(signed.signature, signed);
    return signed;
  }

  /** undefined: no customer has signed these bytes, or a signature is missing. */
  ofBase64(text: string): SentTransaction | undefined {
    const known = this.#byWire.get(text);
    if (known) return known.isComplete ? known : undefined;
    const wire = Buffer.from(text, "base64");
    const signed = this.ofSignature(base58.encode(wire.subarray(signatureAt, signatureEnd)));
    if (!signed?.isCompletedBy(wire)) return undefined;
    this.#byWire.set(text, signed);
    return signed;
  }

  ofSignature(signature: string): SentTransaction | undefined {
    return this.#bySignature.get(signature);
  }
}
