// The record in which the addon returns a taken request: native/addon/fast_path_handle.h (TakenRecord).

import { type FastSend, TakenRequest } from "../submission/taken-request.ts";

const headBytes = 104;
const sendBytes = 24;
const sendsMax = 16;
const signatureAt = 16;
/** As kTransactionV1BytesMax in native/transaction/wire.h. */
const transactionBytesMax = 4096;

const wireLengthAt = headBytes + sendsMax * sendBytes;
const wireAt = wireLengthAt + 8;

export const takenRecordBytes = wireAt + transactionBytesMax;

/** `wire`: the transaction, if the caller has it. */
export function readTakenRecord(record: Uint8Array, wire?: Uint8Array): TakenRequest {
  const view = new DataView(record.buffer, record.byteOffset, takenRecordBytes);
  const length = view.getUint32(8, true);
  const signature = Buffer.from(record.buffer, record.byteOffset + signatureAt, length);
  const sends: FastSend[] = [];
  const sendsEnd = headBytes + view.getUint32(12, true) * sendBytes;
  for (let at = headBytes; at < sendsEnd; at += sendBytes) {
    sends.push({
      route: view.getUint32(at, true),
      loan: view.getUint32(at + 4, true),
      id: view.getUint32(at + 8, true),
      sentNs: view.getBigUint64(at + 16, true),
    });
  }
  const wireEnd = wireAt + view.getUint32(wireLengthAt, true);
  return new TakenRequest({
    signature: signature.toString("latin1"),
    takenNs: view.getBigUint64(0, true),
    wire: wire ?? Buffer.from(record.subarray(wireAt, wireEnd)),
    sends,
  });
}
