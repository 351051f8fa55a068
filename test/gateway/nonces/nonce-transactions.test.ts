// The two transactions compared with web3.js, which parses them and verifies their signatures.

import { base58 } from "@scure/base";
import { Keypair, PublicKey, SystemInstruction, SystemProgram, Transaction } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { KeyPair } from "../../../src/core/key-pair.ts";
import { advanceNonce, createNonce } from "../../../src/gateway/nonces/nonce-transactions.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";

const payer = new KeyPair(new Uint8Array(32).fill(1));
const account = new KeyPair(new Uint8Array(32).fill(2));
const authority = new KeyPair(new Uint8Array(32).fill(3));
const blockhash = Keypair.generate().publicKey.toBase58();
const key = ({ publicKey }: KeyPair): PublicKey => new PublicKey(publicKey);

describe("transactions of nonce accounts", () => {
  it("create an account with lamports, size and authority", () => {
    const { wire, signature } = createNonce({
      payer,
      account,
      authority: authority.publicKey,
      lamports: 1_447_680n,
      blockhash,
    });
    parseTransaction(wire);
    const transaction = Transaction.from(wire);
    expect(transaction.verifySignatures()).toBe(true);
    expect(base58.encode(transaction.signature ?? new Uint8Array(0))).toBe(
      base58.encode(signature),
    );
    expect(transaction.recentBlockhash).toBe(blockhash);
    const [transfer, allocate, initialise] = transaction.instructions;
    if (!transfer || !allocate || !initialise) throw new Error("expected three instructions");
    expect(SystemInstruction.decodeTransfer(transfer)).toEqual({
      fromPubkey: key(payer),
      toPubkey: key(account),
      lamports: 1_447_680n,
    });
    expect(SystemInstruction.decodeAllocate(allocate)).toEqual({
      accountPubkey: key(account),
      space: 80,
    });
    expect(SystemInstruction.decodeNonceInitialize(initialise)).toEqual({
      noncePubkey: key(account),
      authorizedPubkey: key(authority),
    });
    const expected = SystemProgram.nonceInitialize({
      noncePubkey: key(account),
      authorizedPubkey: key(authority),
    });
    expect(initialise.keys.map(({ pubkey }) => pubkey)).toEqual(
      expected.keys.map(({ pubkey }) => pubkey),
    );
    expect(transaction.instructions.length).toBe(3);
  });

  it("advance an account with the same bytes as web3.js", () => {
    const { wire } = advanceNonce({ payer, account: account.publicKey, authority, blockhash });
    parseTransaction(wire);
    const transaction = Transaction.from(wire);
    expect(transaction.verifySignatures()).toBe(true);
    expect(transaction.feePayer).toEqual(key(payer));
    const [advance] = transaction.instructions;
    if (!advance) throw new Error("expected an instruction");
    expect(SystemInstruction.decodeNonceAdvance(advance)).toEqual({
      noncePubkey: key(account),
      authorizedPubkey: key(authority),
    });
    expect(transaction.instructions.length).toBe(1);
    const { keys, requiredSignatures, readonlySigned } = parseTransaction(wire);
    expect(keys[1]).toEqual(Buffer.from(authority.publicKey));
    expect([requiredSignatures, readonlySigned]).toEqual([2, 1]);
  });

  it("reject an invalid blockhash", () => {
    const parts = { payer, account: account.publicKey, authority };
    expect(() => advanceNonce({ ...parts, blockhash: "abc" })).toThrow("public key");
  });
});
