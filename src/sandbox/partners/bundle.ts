// Partners' checks of a bundle: its tip, and its don't-front markers.

import { createHash } from "node:crypto";
import { ShredwayError } from "../../core/errors.ts";
import { encodeBase58 } from "../../relay/data-plane/base58.ts";
import type { ChainApi } from "../chain/types.ts";
import { parseTransaction, type WireTransaction } from "../chain/wire.ts";

const dontFrontPrefixes = ["jitodontfront", "dontbund1e"];
const systemProgram = "11111111111111111111111111111111";
/** Instructions of the System program: number, index of the receiver, offset of the amount. */
const transfers: ReadonlyMap<number, { readonly to: number; readonly lamportsAt: number }> =
  new Map([
    [2, { to: 1, lamportsAt: 4 }],
    [11, { to: 2, lamportsAt: 4 }],
  ]);

function keyText({ keys }: WireTransaction, place: number | undefined): string {
  const key = place === undefined ? undefined : keys[place];
  return key ? encodeBase58(key) : "";
}

/** Lamports to `tipAddresses` (base58), by transfers between static keys. */
export function tipOf(transaction: WireTransaction, tipAddresses: ReadonlySet<string>): bigint {
  let lamports = 0n;
  for (const { program, accounts, data } of transaction.instructions) {
    if (keyText(transaction, program) !== systemProgram || data.length < 12) continue;
    const view = new DataView(data.buffer, data.byteOffset, data.length);
    const transfer = transfers.get(view.getUint32(0, true));
    if (!transfer || !tipAddresses.has(keyText(transaction, accounts[transfer.to]))) continue;
    lamports += view.getBigUint64(transfer.lamportsAt, true);
  }
  return lamports;
}

function hasFrontKey(transaction: WireTransaction): boolean {
  return transaction.keys.some((key) => {
    const text = encodeBase58(key);
    return dontFrontPrefixes.some((prefix) => text.startsWith(prefix));
  });
}

export interface Bundle {
  /** SHA-256 in hex of the signatures joined by ",". */
  readonly id: string;
  readonly signatures: readonly string[];
}

/** Throws ShredwayError "transaction_invalid", "tip_missing" or "bundle_invalid". */
export function checkBundle(
  wires: readonly Uint8Array[],
  tipAddresses: ReadonlySet<string>,
  minimumTipLamports: bigint,
): Bundle {
  const transactions = wires.map(parseTransaction);
  const tip = transactions.reduce((sum, one) => sum + tipOf(one, tipAddresses), 0n);
  if (tip < minimumTipLamports) {
    throw new ShredwayError(
      "tip_missing",
      `bundle: expected a tip of at least ${minimumTipLamports} lamports, got ${tip}`,
    );
  }
  const misplaced = transactions.findIndex((one, place) => place > 0 && hasFrontKey(one));
  if (misplaced > 0) {
    throw new ShredwayError(
      "bundle_invalid",
      `bundle: expected a don't-front marker in its first transaction only, got one in transaction ${misplaced}`,
    );
  }
  const signatures = transactions.map((one) =>
    encodeBase58(one.signatures[0] ?? new Uint8Array(64)),
  );
  return { id: createHash("sha256").update(signatures.join(",")).digest("hex"), signatures };
}

/**
 * Adds the bundle to the leader's queue. Throws ShredwayError like `sendBundle`, but "queue_full"
 * if a transaction is already in the queue.
 */
export function sendBundleTo(
  chain: ChainApi,
  wires: readonly Uint8Array[],
  tipLamports = 0n,
): void {
  try {
    chain.sendBundle(wires, tipLamports);
  } catch (thrown) {
    const isWaiting =
      thrown instanceof ShredwayError && thrown.message.includes("already in the queue");
    // The transaction was also sent by another route. That is not the bundle's error, and ends with
    // the next block.
    throw isWaiting ? new ShredwayError("queue_full", thrown.message) : thrown;
  }
}
