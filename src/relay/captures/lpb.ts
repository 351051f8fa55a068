// .lpb captures: repeated { u16 little-endian length, packet } to the end of the file.
//
// The format of the shred collections for tests and `replay`: only packets, without times.

import { ShredwayError } from "../../core/errors.ts";
import type { ByteReader } from "./byte-reader.ts";
import { type CapturedPacket, captureError } from "./capture.ts";

/**
 * Longest packet of an .lpb: above every shred (1232), and so small that the first two bytes of pcap
 * (0xa1b2 and variants), of pcapng (0x0a0d) and of any text are not a length.
 */
export const lpbPacketBytesMax = 2048;

/** The packets of an .lpb. Throws ShredwayError "capture_invalid" after the last complete one. */
export function* readLpb(reader: ByteReader): Generator<CapturedPacket> {
  for (;;) {
    const begin = reader.offset;
    const head = reader.takeUnlessEnd(2, "a packet length");
    if (!head) return;
    const length = (head[0] ?? 0) | ((head[1] ?? 0) << 8);
    if (length > lpbPacketBytesMax) {
      const message = `expected a packet length of at most ${lpbPacketBytesMax}, got ${length}`;
      throw captureError(reader.name, begin, message);
    }
    yield { packet: reader.take(length, "a packet").slice(), timestampNs: null };
  }
}

/** The bytes of an .lpb file. Throws ShredwayError "value_invalid" for an oversized packet. */
export function writeLpb(packets: Iterable<Uint8Array>): Uint8Array {
  const parts: Uint8Array[] = [];
  for (const packet of packets) {
    if (packet.length > lpbPacketBytesMax) {
      throw new ShredwayError(
        "value_invalid",
        `expected packets of at most ${lpbPacketBytesMax} bytes, got ${packet.length}`,
      );
    }
    parts.push(Uint8Array.of(packet.length & 0xff, packet.length >> 8), packet);
  }
  return Buffer.concat(parts);
}
