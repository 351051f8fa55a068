// The co-signing check of the native addon: inspects every use of the authority's key.
//
// The nonce service calls it before its keys sign, on the event loop; it takes about a microsecond.
// native/transaction/co_signing.h explains what is refused and why nothing else can be signed.

import { ShredwayError } from "../../core/errors.ts";
import { coSigningRefusalNames } from "../../relay/data-plane/names.ts";
import { describeNative, guarded, native } from "../../relay/data-plane/native.ts";
import type { CoSigningCheck, NonceAdvancePosition } from "../nonces/co-signing.ts";
import { transactionRefusal } from "./transaction-checks.ts";

// The layout of native/addon/transaction_handles.h (struct CoSigningRecord).
const recordBytes = 56;
const at = {
  got: 0,
  signature: 8,
  messageBegin: 10,
  messageEnd: 12,
  faultOffset: 14,
  transactionRefusal: 16,
  lifetime: 24,
} as const;

const record = new Uint8Array(recordBytes);
const view = new DataView(record.buffer);

function refused(number: number): ShredwayError {
  const offset = view.getUint16(at.faultOffset, true);
  const got = view.getBigUint64(at.got, true);
  const ofTransaction = view.getUint8(at.transactionRefusal);
  if (ofTransaction !== 0) return transactionRefusal(ofTransaction, offset, got);
  const { coSigningExpected, coSigningGot } = describeNative();
  const refusal = coSigningRefusalNames[number] ?? "transaction_refused";
  const received = (coSigningGot[number] ?? "").replace("#", String(got));
  return new ShredwayError(
    "co_signing_refused",
    `co-signing: expected ${coSigningExpected[number]}, got ${received} (offset ${offset})`,
    { details: { refusal, offset } },
  );
}

/** Stateless; one instance is enough. */
export class NativeCoSigningCheck implements CoSigningCheck {
  place(wire: Uint8Array, nonceAccount: Uint8Array, authority: Uint8Array): NonceAdvancePosition {
    const number = guarded("value_invalid", () =>
      native().findCoSigningPlace(wire, nonceAccount, authority, record),
    );
    if (number !== 0) throw refused(number);
    return {
      signatureAt: view.getUint16(at.signature, true),
      messageBegin: view.getUint16(at.messageBegin, true),
      messageEnd: view.getUint16(at.messageEnd, true),
      lifetime: record.slice(at.lifetime),
    };
  }
}
