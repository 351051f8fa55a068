// pcap captures of tcpdump: microsecond and nanosecond files of either byte order.
//
// Format: draft-ietf-opsawg-pcap. Reading returns the UDP datagrams; pcap-writer.ts writes.

import type { ByteReader } from "./byte-reader.ts";
import { type CapturedPacket, captureError, type SkipCounts } from "./capture.ts";
import { datagramOf } from "./frame.ts";

const pcapMagicMicroseconds = 0xa1b2c3d4;
export const pcapMagicNanoseconds = 0xa1b23c4d;
/** Longest frame that capture programs store. */
export const frameBytesMax = 262_144;

/** A view of bytes from `ByteReader.take`. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function isPcapMagic(magic: number): boolean {
  return magic === pcapMagicMicroseconds || magic === pcapMagicNanoseconds;
}

/** Counts a frame, or returns its datagram. Shared with pcapng. */
export function packetOf(
  linkType: number,
  frame: Uint8Array,
  timestampNs: bigint | null,
  skipped: SkipCounts,
): CapturedPacket | undefined {
  const result = datagramOf(linkType, frame);
  if (typeof result === "string") {
    skipped[result]++;
    return undefined;
  }
  const { payload, source, destination } = result;
  return { packet: payload.slice(), timestampNs, source, destination };
}

function readHeader(reader: ByteReader) {
  const view = viewOf(reader.take(24, "the pcap file header"));
  const littleEndian = isPcapMagic(view.getUint32(0, true));
  const magic = view.getUint32(0, littleEndian);
  if (!isPcapMagic(magic)) {
    throw captureError(reader.name, 0, `expected a pcap magic, got 0x${magic.toString(16)}`);
  }
  const major = view.getUint16(4, littleEndian);
  if (major !== 2) throw captureError(reader.name, 4, `expected pcap version 2, got ${major}`);
  return {
    littleEndian,
    fractionNs: magic === pcapMagicNanoseconds ? 1n : 1000n,
    // The upper bits describe frame check sequences, which the UDP length cuts off.
    linkType: view.getUint32(20, littleEndian) & 0x0fff_ffff,
  };
}

/**
 * The UDP datagrams of a pcap file; other records are counted in `skipped`. Throws ShredwayError
 * "capture_invalid" where the file is damaged, after the packets before that offset.
 */
export function* readPcap(reader: ByteReader, skipped: SkipCounts): Generator<CapturedPacket> {
  const { littleEndian, fractionNs, linkType } = readHeader(reader);
  for (;;) {
    const begin = reader.offset;
    const head = reader.takeUnlessEnd(16, "a record header");
    if (!head) return;
    const view = viewOf(head);
    const seconds = view.getUint32(0, littleEndian);
    const fraction = view.getUint32(4, littleEndian);
    const length = view.getUint32(8, littleEndian);
    if (length > frameBytesMax) {
      const message = `expected a frame of at most ${frameBytesMax} bytes, got ${length}`;
      throw captureError(reader.name, begin + 8, message);
    }
    const frame = reader.take(length, "a frame");
    const timestampNs = BigInt(seconds) * 1_000_000_000n + BigInt(fraction) * fractionNs;
    const packet = packetOf(linkType, frame, timestampNs, skipped);
    if (packet) yield packet;
  }
}
