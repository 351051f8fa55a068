// Fees of a transaction: 5,000 lamports per signature and the priority fee.
//
// Called by the executor (fees of landed transactions) and the queue (order). Compute unit limits
// follow the runtime: the requested limit, else 3,000 units per built-in and 200,000 per other
// instruction, at most 1.4 million (SIMD-0170). v1 states these values in its config (SIMD-0385).

import {
  builtinPrograms,
  computeBudgetProgram,
  sameKey,
  signatureVerifyPrograms,
} from "./addresses.ts";
import type { WireTransaction } from "./wire.ts";

const lamportsPerSignature = 5000n;
const computeUnitsMax = 1_400_000n;
const builtinUnits = 3000n;
const otherUnits = 200_000n;
const microPerLamport = 1_000_000n;

export interface Fee {
  /** Total fee in lamports. */
  readonly lamports: bigint;
  readonly computeUnitLimit: bigint;
  /** Micro-lamports per compute unit; determines the order of the queue. */
  readonly price: bigint;
}

interface Budget {
  readonly limit: bigint | undefined;
  readonly price: bigint;
}

function readBudget({ instructions, keys }: WireTransaction): Budget {
  let limit: bigint | undefined;
  let price = 0n;
  for (const { program, data } of instructions) {
    if (!sameKey(keys[program], computeBudgetProgram)) continue;
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    if (data[0] === 2 && data.length >= 5) limit = BigInt(view.getUint32(1, true));
    if (data[0] === 3 && data.length >= 9) price = view.getBigUint64(1, true);
  }
  return { limit, price };
}

function defaultLimit({ instructions, keys }: WireTransaction): bigint {
  return instructions.reduce((units, { program }) => {
    const isBuiltin = builtinPrograms.some((key) => sameKey(keys[program], key));
    return units + (isBuiltin ? builtinUnits : otherUnits);
  }, 0n);
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function signatureCount({ signatures, instructions, keys }: WireTransaction): bigint {
  return instructions.reduce((count, { program, data }) => {
    const isVerify = signatureVerifyPrograms.some((key) => sameKey(keys[program], key));
    return count + BigInt(isVerify ? (data[0] ?? 0) : 0);
  }, BigInt(signatures.length));
}

export function feeOf(transaction: WireTransaction): Fee {
  const base = lamportsPerSignature * signatureCount(transaction);
  if (transaction.version === 1) {
    const priority = transaction.config.priorityFeeLamports ?? 0n;
    const limit = smaller(BigInt(transaction.config.computeUnitLimit ?? 0), computeUnitsMax);
    const price = (priority * microPerLamport) / (limit === 0n ? 1n : limit);
    return { lamports: base + priority, computeUnitLimit: limit, price };
  }
  const { limit: requestedLimit, price } = readBudget(transaction);
  const limit = smaller(requestedLimit ?? defaultLimit(transaction), computeUnitsMax);
  const priority = (limit * price + microPerLamport - 1n) / microPerLamport;
  return { lamports: base + priority, computeUnitLimit: limit, price };
}
