// The transactions of the simulated senders, and what is true about each of them.

import { createHash } from "node:crypto";
import { base58 } from "@scure/base";
import { parseTransaction, type WireTransaction } from "../../../src/sandbox/chain/wire.ts";
import { Wallet } from "../tips.ts";

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
}

/** A signed transaction. Nothing here comes from the product. */
export class SentTransaction {
  readonly signature: string;
  readonly wire: Buffer;
  readonly parsed: WireTransaction;
  readonly tip: number;
  readonly fails: boolean;
  readonly isForged: boolean;
  /** In hex. */
  readonly blockhash: string;

  constructor(wallet: Wallet, choice: TransactionChoice, blockhash: Uint8Array, number: number) {
    const { tip, fails, isForged } = choice;
    // Split in a way that makes it unique, with transfers of nothing if there are too many.
    const rest = tip === 0 ? 0 : number % tip;
    const zeros = tip === 0 ? 0 : Math.floor(number / tip);
    const lamports = [tip - rest, rest, ...Array<number>(zeros).fill(0)];
    const to = tip === 0 ? createHash("sha256").update(`${number}`).digest() : gatewayTipAddress;
    this.wire = wallet.transfer({ to, lamports, blockhash });
    if (isForged) this.wire[signatureAt + 8] = (this.wire[signatureAt + 8] ?? 0) ^ 1;
    this.parsed = parseTransaction(this.wire);
    this.signature = base58.encode(this.wire.subarray(signatureAt, signatureEnd));
    this.tip = tip;
    this.fails = fails;
    this.isForged = isForged;
    this.blockhash = Buffer.from(blockhash).toString("hex");
  }
}

/** Everything that customers have signed. */
export class Transactions {
  readonly #wallets = new Map<number, Wallet>();
  readonly #byWire = new Map<string, SentTransaction>();
  readonly #bySignature = new Map<string, SentTransaction>();
  #count = 0;

  sign(customer: number, choice: TransactionChoice, blockhash: Uint8Array): SentTransaction {
    const wallet = this.#wallets.get(customer) ?? new Wallet(`sender ${customer}`);
    this.#wallets.set(customer, wallet);
    const signed = new SentTransaction(wallet, choice, blockhash, ++this.#count);
    this.#byWire.set(signed.wire.toString("base64"), signed);
    this.#bySignature.set(signed.signature, signed);
    return signed;
  }

  /** undefined: no customer has signed these bytes. */
  ofBase64(text: string): SentTransaction | undefined {
    return this.#byWire.get(text);
  }

  ofSignature(signature: string): SentTransaction | undefined {
    return this.#bySignature.get(signature);
  }
}
