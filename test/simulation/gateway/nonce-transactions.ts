// Transactions with a compute-unit price, byte by byte: an advance of a durable nonce comes first, then the
// price and transfers.

import { base58 } from "@scure/base";
import type { Wallet } from "../tips.ts";

const systemProgram = new Uint8Array(32);
const recentBlockhashes = base58.decode("SysvarRecentB1ockHashes11111111111111111111");
const computeBudget = base58.decode("ComputeBudget111111111111111111111111111111");
const advanceInstruction = 4;
const transferInstruction = 2;
const unitPriceInstruction = 3;
const signatureBytes = 64;

/** The nonce of a transaction; 32 bytes each. */
export interface NonceChoice {
  readonly account: Uint8Array;
  readonly authority: Uint8Array;
  /** Signs if the payer is not the authority; absent: the signature is missing. */
  readonly signer?: Wallet;
}

interface PricedTransfer {
  readonly payer: Wallet;
  readonly nonce: NonceChoice | null;
  /** 32 bytes. */
  readonly to: Uint8Array;
  /** One transfer for each. */
  readonly lamports: readonly number[];
  /** Micro-lamports per compute unit. */
  readonly unitPrice: number;
  /** The value of the nonce, or a blockhash. */
  readonly lifetime: Uint8Array;
}

function instruction(program: number, accounts: readonly number[], data: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([program, accounts.length, ...accounts, data.length]), data]);
}

function numbers(kind: number, amount?: number): Buffer {
  const data = Buffer.alloc(amount === undefined ? 4 : 12);
  data.writeUInt32LE(kind);
  if (amount !== undefined) data.writeBigUInt64LE(BigInt(amount), 4);
  return data;
}

function unitPriceData(microLamports: number): Buffer {
  const data = Buffer.alloc(9);
  data[0] = unitPriceInstruction;
  data.writeBigUInt64LE(BigInt(microLamports), 1);
  return data;
}

/** A legacy transaction. */
export function pricedTransfer(transfer: PricedTransfer): Buffer {
  const { payer, nonce, to, lamports, unitPrice, lifetime } = transfer;
  const isOwn = !nonce || Buffer.compare(payer.address, nonce.authority) === 0;
  const signers = isOwn ? [payer.address] : [payer.address, nonce.authority];
  const writable = nonce ? [nonce.account, to] : [to];
  const programs = [recentBlockhashes, systemProgram, computeBudget];
  const keys = [...signers, ...writable, ...programs];
  const at = (key: Uint8Array): number => keys.indexOf(key);
  const advance =
    nonce &&
    instruction(
      at(systemProgram),
      [at(nonce.account), at(recentBlockhashes), isOwn ? 0 : 1],
      numbers(advanceInstruction),
    );
  const instructions = [
    ...(advance ? [advance] : []),
    ...(unitPrice > 0 ? [instruction(at(computeBudget), [], unitPriceData(unitPrice))] : []),
    ...lamports.map((amount) =>
      instruction(at(systemProgram), [0, at(to)], numbers(transferInstruction, amount)),
    ),
  ];
  const message = Buffer.concat([
    Buffer.from([signers.length, isOwn ? 0 : 1, programs.length, keys.length]),
    ...keys,
    lifetime,
    Buffer.from([instructions.length]),
    ...instructions,
  ]);
  const second = nonce?.signer?.sign(message) ?? Buffer.alloc(signatureBytes);
  const signatures = [payer.sign(message), ...(isOwn ? [] : [second])];
  return Buffer.concat([Buffer.from([signers.length]), ...signatures, message]);
}
