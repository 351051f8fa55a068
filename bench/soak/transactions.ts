// Signed transactions of the load: each one is new, pays a tip, and comes from one wallet.

import {
  ComputeBudgetProgram,
  Keypair,
  PublicKey,
  SystemProgram,
  Transaction,
} from "@solana/web3.js";
import { parsePubkey, pubkeyBytes } from "../../src/core/primitives.ts";
import { buildTransaction, transferInstruction } from "../../src/core/transactions/build-legacy.ts";
import { SandboxKeyPair } from "../../src/sandbox/chain/keys.ts";
import { payerName, soakSeed } from "./cluster-messages.ts";

const payer = SandboxKeyPair.named(soakSeed, payerName);
/** Above the minimum of every route except the alternative partners'. */
const plainTip = 20_000;
const altTip = 200_000;
const unitLimit = 10_000;
const microLamportsPerUnit = 20_000_000;

interface NonceFields {
  readonly nonce: string;
  readonly nonceAccount: string;
  readonly nonceAuthority: string;
}

export class Transactions {
  /** Pays for the transactions that web3.js builds. */
  readonly wallet = Keypair.generate();
  readonly #tipAddresses: readonly string[];
  #count = 0;
  /** In base58; the caller keeps it current. */
  blockhash = "";

  constructor(tipAddresses: readonly string[]) {
    this.#tipAddresses = tipAddresses;
  }

  tip(lamports = plainTip): Uint8Array {
    const address = this.#tipAddresses[this.#count % this.#tipAddresses.length] ?? "";
    return this.transfer(address, lamports + this.#next());
  }

  transfer(address: string, lamports: number): Uint8Array {
    const to = pubkeyBytes(parsePubkey(address));
    const instruction = transferInstruction(payer.publicKey, to, BigInt(lamports));
    return buildTransaction([payer], [instruction], pubkeyBytes(parsePubkey(this.blockhash)));
  }

  /** Pays the alternative partners' minimum tip and priority fee. */
  altTip(): Uint8Array {
    const transaction = new Transaction({
      feePayer: this.wallet.publicKey,
      blockhash: this.blockhash,
      lastValidBlockHeight: 0,
    });
    transaction.add(
      ComputeBudgetProgram.setComputeUnitLimit({ units: unitLimit }),
      ComputeBudgetProgram.setComputeUnitPrice({ microLamports: microLamportsPerUnit }),
      this.#tipOf(altTip),
    );
    transaction.sign(this.wallet);
    return transaction.serialize();
  }

  /** Two transactions of one nonce, without the signature of its authority. */
  pair(nonce: NonceFields): [Uint8Array, Uint8Array] {
    const withTip = (lamports: number): Uint8Array => {
      const transaction = new Transaction();
      transaction.feePayer = this.wallet.publicKey;
      transaction.recentBlockhash = nonce.nonce;
      transaction.add(
        SystemProgram.nonceAdvance({
          noncePubkey: new PublicKey(nonce.nonceAccount),
          authorizedPubkey: new PublicKey(nonce.nonceAuthority),
        }),
        ComputeBudgetProgram.setComputeUnitPrice({ microLamports: lamports }),
        this.#tipOf(lamports),
      );
      transaction.partialSign(this.wallet);
      return transaction.serialize({ requireAllSignatures: false });
    };
    return [withTip(plainTip), withTip(altTip)];
  }

  #tipOf(lamports: number) {
    return SystemProgram.transfer({
      fromPubkey: this.wallet.publicKey,
      toPubkey: new PublicKey(this.#tipAddresses[0] ?? ""),
      lamports: lamports + this.#next(),
    });
  }

  /** Makes the amount, and so the signature, unique for a blockhash. */
  #next(): number {
    return this.#count++ % 10_000;
  }
}
