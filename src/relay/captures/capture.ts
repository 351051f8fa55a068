// Captures: the content of a capture file in any format.
//
// Read by read-capture.ts and the format files in this folder; used by `replay`, tests and tools. Not
// used on the relay's packet path.

import type { Endpoint } from "../../core/addresses/addresses.ts";
import { ShredwayError } from "../../core/errors.ts";

/** One UDP datagram of a capture. */
export interface CapturedPacket {
  /** The UDP payload; a copy that the reader does not change later. */
  readonly packet: Uint8Array;
  /** Nanoseconds since 1970; null if the format has no times. */
  readonly timestampNs: bigint | null;
  /** Sender and receiver, if the format has them. */
  readonly source?: Endpoint;
  readonly destination?: Endpoint;
}

/** The reason why a record of a capture is not a UDP datagram. */
export const skipReasons = [
  "not_ip",
  "not_udp",
  "fragment",
  "cut_off",
  "malformed",
  "unknown_link_type",
] as const;
export type SkipReason = (typeof skipReasons)[number];

/** Skipped records, counted while reading. */
export type SkipCounts = Record<SkipReason, number>;

export function newSkipCounts(): SkipCounts {
  return {
    not_ip: 0,
    not_udp: 0,
    fragment: 0,
    cut_off: 0,
    malformed: 0,
    unknown_link_type: 0,
  };
}

/** An error with the file and the offset, in bytes from its start. */
export function captureError(name: string, offset: number, message: string): ShredwayError {
  return new ShredwayError("capture_invalid", `${name}: at byte ${offset}: ${message}`, {
    details: { file: name, offset },
  });
}
