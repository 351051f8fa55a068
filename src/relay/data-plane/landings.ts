// Landings: observations of watched transactions at the native boundary.
//
// The layout of native/relay/landings.h (struct Landing). Called only by relay.ts.

import { ShredwayError } from "../../core/errors.ts";

/** One observation of a watched transaction in the relay's own shreds. */
export interface Landing {
  /** 64 bytes. */
  readonly signature: Uint8Array;
  readonly slot: bigint;
  /** Receive time (CLOCK_REALTIME) of the shred that completed it. */
  readonly seenNs: bigint;
  /**
   * With `ordinal`, the order in the slot: first data shred of its batch, position in the batch.
   */
  readonly batchIndex: number;
  readonly ordinal: number;
  /** Data shred that contains its end. */
  readonly shredIndex: number;
  /** Observed before its signature was watched. */
  readonly remembered: boolean;
  /** An update-parent marker of the slot may still withdraw it. */
  readonly mayRestart: boolean;
}

/** The block of a slot begins again, which withdraws all observations in earlier batches of the slot. */
export interface SlotRestart {
  readonly slot: bigint;
  /** Receive time (CLOCK_REALTIME) of the shred that completed the marker. */
  readonly seenNs: bigint;
  /** First data shred of the marker's batch. */
  readonly batchIndex: number;
}

/** In the order in which the relay found them. */
export type LandingReport =
  | ({ readonly kind: "landing" } & Landing)
  | ({ readonly kind: "restart" } & SlotRestart);

const landingBytes = 96;
const landingsAtOnce = 128;
const signatureBytes = 64;
const beforeWatchFlag = 1;
const mayRestartFlag = 2;
const restartFlag = 4;

/** One array in the addon's format. Throws ShredwayError "watch_refused" for another length. */
export function joinSignatures(signatures: readonly Uint8Array[]): Uint8Array {
  for (const { length } of signatures) {
    if (length === signatureBytes) continue;
    throw new ShredwayError(
      "watch_refused",
      `signature: expected ${signatureBytes} bytes, got ${length}`,
    );
  }
  return Buffer.concat(signatures);
}

function decodeReport(bytes: Uint8Array, at: number): LandingReport {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, landingBytes);
  const flags = view.getUint32(28, true);
  const restart = {
    slot: view.getBigUint64(0, true),
    seenNs: view.getBigUint64(8, true),
    batchIndex: view.getUint32(16, true),
  };
  if ((flags & restartFlag) !== 0) return { kind: "restart", ...restart };
  return {
    kind: "landing",
    ...restart,
    ordinal: view.getUint32(20, true),
    shredIndex: view.getUint32(24, true),
    remembered: (flags & beforeWatchFlag) !== 0,
    mayRestart: (flags & mayRestartFlag) !== 0,
    signature: bytes.slice(at + 32, at + landingBytes),
  };
}

/** All pending reports; `drain` fills the array with complete ones and returns their number. */
export function readLandings(drain: (into: Uint8Array) => number): LandingReport[] {
  const bytes = new Uint8Array(landingsAtOnce * landingBytes);
  const landings: LandingReport[] = [];
  for (let count = landingsAtOnce; count === landingsAtOnce; ) {
    count = drain(bytes);
    for (let i = 0; i < count; i++) landings.push(decodeReport(bytes, i * landingBytes));
  }
  return landings;
}
