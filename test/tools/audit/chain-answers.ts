// Answers of getTransaction for transfers to a tip address, in the node's JSON.

import { base58 } from "@scure/base";

export const tipAddress = base58.encode(new Uint8Array(32).fill(7));
export const otherTipAddress = base58.encode(new Uint8Array(32).fill(9));
const payer = base58.encode(new Uint8Array(32).fill(8));
const system = "11111111111111111111111111111111";

export interface Payment {
  readonly transfer: bigint;
  readonly gain: bigint;
  readonly err?: unknown;
  readonly slot?: number;
  /** Amount that moves between the two tip addresses. */
  readonly moved?: bigint;
}

function transferData(lamports: bigint): string {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(2, 0);
  data.writeBigUInt64LE(lamports, 4);
  return base58.encode(data);
}

export function answerOf(
  signature: string,
  { transfer, gain, err = null, slot = 50, moved = 0n }: Payment,
) {
  return {
    slot,
    meta: {
      err,
      preBalances: [1000, 500, 1, Number(moved)],
      postBalances: [900, 500 + Number(gain + moved), 1, 0],
    },
    transaction: {
      signatures: [signature],
      message: {
        accountKeys: [payer, tipAddress, system, otherTipAddress],
        instructions: [
          { programIdIndex: 2, accounts: [0, 1], data: transferData(transfer) },
          // A transfer to another account.
          { programIdIndex: 2, accounts: [1, 0], data: transferData(5n) },
          { programIdIndex: 2, accounts: [3, 1], data: transferData(moved) },
        ],
      },
    },
  };
}
