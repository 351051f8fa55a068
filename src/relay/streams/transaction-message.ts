// A transaction as Yellowstone's messages contain it: solana.storage.ConfirmedBlock.Transaction.
//
// Pure. Fields are written in reverse order (reverse-writer.ts).

import type { ReverseWriter } from "../../core/grpc/reverse-writer.ts";
import type { StreamMessage } from "../data-plane/relay-streams.ts";
import type { WireTransaction } from "./wire-transaction.ts";

/** Writes it as one field. */
export function writeTransaction(
  writer: ReverseWriter,
  field: number,
  transaction: WireTransaction,
): void {
  const end = writer.mark;
  writeMessage(writer, 2, transaction);
  for (const signature of transaction.signatures.toReversed()) writer.bytes(1, signature);
  writer.message(field, end);
}

/** Writes the first fields of what Yellowstone and Helius send about a transaction: 1 to 3. */
export function writeTransactionInfo(
  writer: ReverseWriter,
  { isVote }: Pick<StreamMessage, "isVote">,
  transaction: WireTransaction,
): void {
  writeTransaction(writer, 3, transaction);
  writer.uint(2, isVote ? 1 : 0);
  writer.bytes(1, transaction.signatures[0] ?? new Uint8Array());
}

function writeMessage(writer: ReverseWriter, field: number, transaction: WireTransaction): void {
  const { version, header, keys, lifetime, instructions, lookups } = transaction;
  const end = writer.mark;
  writeConfig(writer, 7, transaction);
  for (const { table, writable, readonly } of lookups.toReversed()) {
    const lookupEnd = writer.mark;
    writer.bytes(3, readonly);
    writer.bytes(2, writable);
    writer.bytes(1, table);
    writer.message(6, lookupEnd);
  }
  writer.uint(5, version === "legacy" ? 0 : 1);
  for (const { program, accounts, data } of instructions.toReversed()) {
    const instructionEnd = writer.mark;
    writer.bytes(3, data);
    writer.bytes(2, accounts);
    writer.uint(1, program);
    writer.message(4, instructionEnd);
  }
  writer.bytes(3, lifetime);
  for (const key of keys.toReversed()) writer.bytes(2, key);
  const headerEnd = writer.mark;
  writer.uint(3, header[2]);
  writer.uint(2, header[1]);
  writer.uint(1, header[0]);
  writer.message(1, headerEnd);
  writer.message(field, end);
}

function writeConfig(writer: ReverseWriter, field: number, { config }: WireTransaction): void {
  if (!config) return;
  const end = writer.mark;
  const { heapSize, loadedAccountsDataSizeLimit, computeUnitLimit, priorityFee } = config;
  if (heapSize !== undefined) writer.presentUint(4, heapSize);
  if (loadedAccountsDataSizeLimit !== undefined) writer.presentUint(3, loadedAccountsDataSizeLimit);
  if (computeUnitLimit !== undefined) writer.presentUint(2, computeUnitLimit);
  if (priorityFee !== undefined) writer.presentUint(1, priorityFee);
  writer.message(field, end);
}
