// Captures: what a capture file gives, whatever its format.
//
// Read by read-capture.ts and the format files beside this one; used by `replay`, tests and tools.
// Never on the relay's path.

import type { Endpoint } from "../../core/addresses/addresses.ts";
import { ShredwayError } from "../../core/errors.ts";

/** One UDP datagram of a capture. */
export interface CapturedPacket {
  /** The UDP payload; a copy that the reader does not touch again. */
  readonly packet: Uint8Array;
  /** Nanoseconds since 1970; null when the format knows none. */
  readonly timestampNs: bigint | null;
  /** Sender and receiver, where the format has them. */
  readonly source?: Endpoint;
  readonly destination?: Endpoint;
}

/** Why a record of a capture is no packet of ours. */
export const skipReasons = [
  "not_ip",
  "not_udp",
  "fragment",
  "cut_off",
  "malformed",
  "unknown_link_type",
] as const;
export type SkipReason = (typeof skipReasons)[number];

/** Records passed over, counted while reading. */
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

/** An error that says where in which file. `offset` is in bytes from its start. */
export function captureError(name: string, offset: number, message: string): ShredwayError {
  return new ShredwayError("capture_invalid", `${name}: at byte ${offset}: ${message}`, {
    details: { file: name, offset },
  });
}
