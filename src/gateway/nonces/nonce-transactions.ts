// Builds the transactions that create and advance a managed nonce account: legacy, signed, as wire
// bytes.
//
// Pure. Called by nonce-account-creation.ts. Both use a recent blockhash, and landing twice is
// harmless: the second creation finds the account in use, the second advance finds the nonce
// advanced, and the chain reverts everything but the fee.

import { parsePubkey, pubkeyBytes } from "../../core/primitives.ts";
import { type SignedTransaction, signLegacy } from "../../core/transactions/sign-legacy.ts";
import { nonceAccountBytes } from "./nonce-account.ts";
import type { Signer } from "./types.ts";

export const lamportsPerSignature = 5000n;
/** Signatures of each of the two transactions. */
export const signaturesOfEach = 2n;

const systemProgram = new Uint8Array(32);
const recentBlockhashes = pubkeyBytes(parsePubkey("SysvarRecentB1ockHashes11111111111111111111"));
const rent = pubkeyBytes(parsePubkey("SysvarRent111111111111111111111111111111111"));

// Numbers of the System program's instructions.
const transfer = 2;
const advance = 4;
const initialise = 6;
const allocate = 8;

function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

function u64(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  return bytes;
}

interface NonceCreation {
  /** Pays. */
  readonly payer: Signer;
  readonly account: Signer;
  /** 32 bytes. */
  readonly authority: Uint8Array;
  /** Difference between the account's balance and the rent-exempt minimum. */
  readonly lamports: bigint;
  readonly blockhash: string;
}

/**
 * Uses Transfer, Allocate and InitializeNonceAccount. CreateAccount fails if the address already
 * holds lamports, so anyone could block it with a transfer of one lamport. Throws ShredwayError
 * "value_invalid" for an invalid blockhash.
 */
export function createNonce(creation: NonceCreation): SignedTransaction {
  const { payer, account, authority, lamports, blockhash } = creation;
  return signLegacy({
    signers: [payer, account],
    readonlySigned: 0,
    others: [recentBlockhashes, rent, systemProgram],
    readonlyUnsigned: 3,
    blockhash,
    instructions: [
      { accounts: [0, 1], data: Buffer.concat([u32(transfer), u64(lamports)]) },
      { accounts: [1], data: Buffer.concat([u32(allocate), u64(BigInt(nonceAccountBytes))]) },
      { accounts: [1, 2, 3], data: Buffer.concat([u32(initialise), authority]) },
    ],
  });
}

interface NonceAdvance {
  /** Pays. */
  readonly payer: Signer;
  /** 32 bytes. */
  readonly account: Uint8Array;
  readonly authority: Signer;
  readonly blockhash: string;
}

/** Throws ShredwayError "value_invalid" for an invalid blockhash. */
export function advanceNonce(parts: NonceAdvance): SignedTransaction {
  const { payer, account, authority, blockhash } = parts;
  return signLegacy({
    signers: [payer, authority],
    readonlySigned: 1,
    others: [account, recentBlockhashes, systemProgram],
    readonlyUnsigned: 2,
    blockhash,
    instructions: [{ accounts: [2, 3, 1], data: u32(advance) }],
  });
}
