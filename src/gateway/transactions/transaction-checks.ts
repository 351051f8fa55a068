// Inspection and signature verification of transactions by the native addon.
//
// Called for each request on the event loop: an inspection takes about a microsecond; the addon's
// threads verify signatures. A refused transaction can never land.

import { ShredwayError } from "../../core/errors.ts";
import type { TransactionFacts, TransactionVersion } from "../../core/transactions/facts.ts";
import { transactionRefusalNames } from "../../relay/data-plane/names.ts";
import {
  describeNative,
  guarded,
  type NativeSignatureVerifier,
  type NativeTransactionInspector,
  native,
} from "../../relay/data-plane/native.ts";
import { dontFrontRanges } from "./dont-front.ts";

// ---- inspection -----------------------------------------------------------------------------

// The layout of native/addon/transaction_handles.h (struct InspectionRecord).
const recordBytes = 144;
const at = {
  tipLamports: 0,
  priorityFeeLamports: 8,
  got: 16,
  computeUnitLimit: 24,
  signature: 28,
  feePayer: 30,
  lifetime: 32,
  nonceAccount: 34,
  nonceAuthority: 36,
  faultOffset: 38,
  version: 40,
  hasFrontKey: 41,
  signatureTextLength: 42,
  signatureText: 48,
  computeUnitPrice: 136,
} as const;
const versions: readonly TransactionVersion[] = ["legacy", 0, 1];
const signatureBytes = 64;
const keyBytes = 32;

interface InspectorOptions {
  /** Public keys of 32 bytes. */
  readonly tipAddresses: readonly Uint8Array[];
  /** Prefixes of base58 addresses. */
  readonly dontFrontPrefixes: readonly string[];
}

export class TransactionInspector {
  readonly #native: NativeTransactionInspector;
  readonly #record = Buffer.alloc(recordBytes);
  readonly #view = new DataView(this.#record.buffer, this.#record.byteOffset, recordBytes);

  /**
   * Throws ShredwayError "value_invalid" for a wrong length, too many addresses, or an invalid
   * prefix.
   */
  constructor({ tipAddresses, dontFrontPrefixes }: InspectorOptions) {
    for (const { length } of tipAddresses) {
      if (length === keyBytes) continue;
      throw new ShredwayError(
        "value_invalid",
        `tip address: expected ${keyBytes} bytes, got ${length}`,
      );
    }
    const ranges = dontFrontRanges(dontFrontPrefixes);
    this.#native = guarded(
      "value_invalid",
      () => new (native().TransactionInspector)(Buffer.concat(tipAddresses), ranges),
    );
  }

  /**
   * Inspects bytes that must be exactly one transaction. They are referenced, not copied, and must
   * not change. Throws ShredwayError "transaction_version" or "transaction_invalid", with the
   * refusal's name and offset as details.
   */
  inspect(wire: Uint8Array): TransactionFacts {
    const refusal = this.#native.inspect(wire, this.#record);
    const view = this.#view;
    if (refusal !== 0) {
      const offset = view.getUint16(at.faultOffset, true);
      throw transactionRefusal(refusal, offset, view.getBigUint64(at.got, true));
    }
    const textEnd = at.signatureText + view.getUint8(at.signatureTextLength);
    return new InspectedTransaction(
      wire,
      this.#record.toString("latin1", at.signatureText, textEnd),
      view,
    );
  }
}

/** Open transactions stay in memory by the thousands, so it has offsets instead of a view of each part. */
class InspectedTransaction implements TransactionFacts {
  readonly wire: Uint8Array;
  readonly signature: string;
  readonly version: TransactionVersion;
  readonly nonce: TransactionFacts["nonce"];
  readonly tipLamports: bigint;
  readonly computeUnitLimit: number;
  readonly computeUnitPrice: bigint;
  readonly priorityFeeLamports: bigint;
  readonly hasFrontKey: boolean;
  readonly #signatureAt: number;
  readonly #feePayerAt: number;
  readonly #lifetimeAt: number;

  constructor(wire: Uint8Array, signature: string, record: DataView) {
    const nonceAccount = record.getUint16(at.nonceAccount, true);
    this.wire = wire;
    this.signature = signature;
    this.version = versions[record.getUint8(at.version)] ?? "legacy";
    this.nonce =
      nonceAccount === 0
        ? null
        : {
            account: part(wire, nonceAccount, keyBytes),
            authority: part(wire, record.getUint16(at.nonceAuthority, true), keyBytes),
          };
    this.tipLamports = record.getBigUint64(at.tipLamports, true);
    this.computeUnitLimit = record.getUint32(at.computeUnitLimit, true);
    this.computeUnitPrice = record.getBigUint64(at.computeUnitPrice, true);
    this.priorityFeeLamports = record.getBigUint64(at.priorityFeeLamports, true);
    this.hasFrontKey = record.getUint8(at.hasFrontKey) === 1;
    this.#signatureAt = record.getUint16(at.signature, true);
    this.#feePayerAt = record.getUint16(at.feePayer, true);
    this.#lifetimeAt = record.getUint16(at.lifetime, true);
  }

  get signatureBytes(): Uint8Array {
    return part(this.wire, this.#signatureAt, signatureBytes);
  }

  get feePayer(): Uint8Array {
    return part(this.wire, this.#feePayerAt, keyBytes);
  }

  get lifetime(): Uint8Array {
    return part(this.wire, this.#lifetimeAt, keyBytes);
  }
}

/** The error of a refusal, by its number (names.ts). */
export function transactionRefusal(number: number, offset: number, got: bigint): ShredwayError {
  const { transactionExpected, transactionGot } = describeNative();
  const refusal = transactionRefusalNames[number] ?? "count_invalid";
  const received = (transactionGot[number] ?? "").replace("#", String(got));
  const message = `transaction: expected ${transactionExpected[number]}, got ${received} (offset ${offset})`;
  const options = { details: { refusal, offset } };
  return refusal === "version_unknown"
    ? new ShredwayError("transaction_version", message, options)
    : new ShredwayError("transaction_invalid", message, options);
}

/** A view without a copy; a Buffer would cost more to create. */
function part(wire: Uint8Array, offset: number, length: number): Uint8Array {
  return new Uint8Array(wire.buffer, wire.byteOffset + offset, length);
}

// ---- signatures -----------------------------------------------------------------------------

// The layout of native/verify/signature_verifier.h (struct VerifyResult).
const resultBytes = 8;
const resultsAtOnce = 256;
const outcomeValid = 1;

interface VerifierOptions {
  readonly threads: number;
  /** Maximum number of transactions that wait for a result. */
  readonly queueMax: number;
}

interface Waiting {
  resolve(isValid: boolean): void;
  reject(error: ShredwayError): void;
}

export class SignatureVerifier {
  readonly #native: NativeSignatureVerifier;
  /** The place of each is its ticket. Unlike a map, an array keeps no ended request in memory. */
  readonly #waiting: (Waiting | undefined)[] = [];
  readonly #freeTickets: number[] = [];
  readonly #results = new Uint8Array(resultsAtOnce * resultBytes);
  readonly #view = new DataView(this.#results.buffer);
  #isClosed = false;

  private constructor({ threads, queueMax }: VerifierOptions) {
    this.#native = guarded("system", () => new (native().SignatureVerifier)(threads, queueMax));
    guarded("system", () => this.#native.onResults(() => this.#drain()));
  }

  /**
   * Throws ShredwayError "system" if the threads cannot be started. Does not keep the process
   * alive.
   */
  static open(options: VerifierOptions): SignatureVerifier {
    return new SignatureVerifier(options);
  }

  /**
   * Whether every signature is valid; false for bytes that are not a transaction. The bytes are
   * copied. Returns null if the queue is full. Rejects with ShredwayError "http_closing" if the
   * verifier is closed first.
   */
  verify(wire: Uint8Array): Promise<boolean> | null {
    if (this.#isClosed) return Promise.reject(closedError());
    const ticket = this.#freeTickets.pop() ?? this.#waiting.length;
    if (!this.#native.submit(ticket, wire)) {
      this.#release(ticket);
      return null;
    }
    return new Promise((resolve, reject) => {
      this.#waiting[ticket] = { resolve, reject };
    });
  }

  /** The same at once, on the calling thread. Throws ShredwayError "http_closing" if it is closed. */
  verifyNow(wire: Uint8Array): boolean {
    if (this.#isClosed) throw closedError();
    return this.#native.verifyNow(wire);
  }

  /** Number of transactions that wait for a result. */
  get pending(): number {
    return this.#waiting.length - this.#freeTickets.length;
  }

  /** Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#native.close();
    for (const waiting of this.#waiting.splice(0)) waiting?.reject(closedError());
    this.#freeTickets.length = 0;
  }

  #release(ticket: number): void {
    this.#waiting[ticket] = undefined;
    this.#freeTickets.push(ticket);
  }

  #drain(): void {
    if (this.#isClosed) return;
    for (let count = resultsAtOnce; count === resultsAtOnce; ) {
      count = this.#native.drain(this.#results);
      for (let i = 0; i < count; i++) {
        const ticket = this.#view.getUint32(i * resultBytes, true);
        const isValid = this.#view.getUint32(i * resultBytes + 4, true) === outcomeValid;
        this.#waiting[ticket]?.resolve(isValid);
        this.#release(ticket);
      }
    }
  }
}

function closedError(): ShredwayError {
  return new ShredwayError(
    "http_closing",
    "signatures: the server closed before they were verified; send the request again",
  );
}
