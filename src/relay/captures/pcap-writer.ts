// Writes pcap: packets with times and endpoints, as a file for tcpdump, tshark and Wireshark.
//
// Nanosecond pcap, little-endian, link type raw IP, so no header below IP is needed. For fixtures and
// tools.

import type { Endpoint } from "../../core/addresses/addresses.ts";
import { ShredwayError } from "../../core/errors.ts";
import { linkTypes } from "./frame.ts";
import { frameBytesMax, pcapMagicNanoseconds } from "./pcap.ts";

export interface PacketToWrite {
  readonly packet: Uint8Array;
  /** Nanoseconds since 1970, below 2^32 seconds. */
  readonly timestampNs: bigint;
  readonly source: Endpoint;
  /** Same address family as the source. */
  readonly destination: Endpoint;
}

const udpHeaderBytes = 8;
/** The largest UDP payload in an IPv4 packet of 65,535 bytes. */
const payloadBytesMax = 65_535 - 20 - udpHeaderBytes;
const timestampNsMax = 0xffff_ffffn * 1_000_000_000n + 999_999_999n;

/** The first 24 bytes of the file. */
export function encodePcapHeader(): Uint8Array {
  const bytes = new Uint8Array(24);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, pcapMagicNanoseconds, true);
  view.setUint16(4, 2, true);
  view.setUint16(6, 4, true);
  view.setUint32(16, frameBytesMax, true);
  view.setUint32(20, linkTypes.raw, true);
  return bytes;
}

/** Internet checksum (RFC 1071) of the parts; all except the last have an even length. */
function checksum(...parts: Uint8Array[]): number {
  let sum = 0;
  for (const part of parts) {
    for (let i = 0; i < part.length; i += 2) sum += ((part[i] ?? 0) << 8) | (part[i + 1] ?? 0);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

function encodeIpv4(ip: DataView, entry: PacketToWrite): void {
  ip.setUint16(0, 0x4500);
  ip.setUint16(2, ip.byteLength);
  ip.setUint16(6, 0x4000); // don't fragment
  ip.setUint16(8, 0x4011); // 64 hops, UDP
  const bytes = new Uint8Array(ip.buffer, ip.byteOffset, 20);
  bytes.set(entry.source.bytes.subarray(12), 12);
  bytes.set(entry.destination.bytes.subarray(12), 16);
  ip.setUint16(10, checksum(bytes));
}

function encodeIpv6(ip: DataView, entry: PacketToWrite): void {
  ip.setUint32(0, 0x6000_0000);
  ip.setUint16(4, ip.byteLength - 40);
  ip.setUint16(6, 0x1140); // UDP, 64 hops
  const bytes = new Uint8Array(ip.buffer, ip.byteOffset, 40);
  bytes.set(entry.source.bytes, 8);
  bytes.set(entry.destination.bytes, 24);
}

function encodeUdp(udp: Uint8Array, addresses: Uint8Array, entry: PacketToWrite): void {
  const view = new DataView(udp.buffer, udp.byteOffset, udp.byteLength);
  view.setUint16(0, entry.source.port);
  view.setUint16(2, entry.destination.port);
  view.setUint16(4, udp.length);
  udp.set(entry.packet, udpHeaderBytes);
  const pseudoHeader = Uint8Array.of(0, 17, udp.length >> 8, udp.length & 0xff);
  // 0 would mean "no checksum".
  view.setUint16(6, checksum(addresses, pseudoHeader, udp) || 0xffff);
}

function checkEntry(entry: PacketToWrite): void {
  const { packet, timestampNs, source, destination } = entry;
  let problem: string | undefined;
  if (packet.length > payloadBytesMax) {
    problem = `a packet of at most ${payloadBytesMax} bytes, got ${packet.length}`;
  } else if (timestampNs < 0n || timestampNs > timestampNsMax) {
    problem = `a time of 0 to ${timestampNsMax} ns, got ${timestampNs}`;
  } else if (source.family !== destination.family) {
    problem = `endpoints of one family, got ${source.family} and ${destination.family}`;
  }
  if (problem !== undefined) throw new ShredwayError("value_invalid", `expected ${problem}`);
}

/** One record. Throws ShredwayError "value_invalid" for a packet that the format cannot contain. */
export function encodePcapRecord(entry: PacketToWrite): Uint8Array {
  checkEntry(entry);
  const isIpv4 = entry.source.family === "ipv4";
  const ipHeaderBytes = isIpv4 ? 20 : 40;
  const frameBytes = ipHeaderBytes + udpHeaderBytes + entry.packet.length;
  const bytes = new Uint8Array(16 + frameBytes);
  const record = new DataView(bytes.buffer);
  record.setUint32(0, Number(entry.timestampNs / 1_000_000_000n), true);
  record.setUint32(4, Number(entry.timestampNs % 1_000_000_000n), true);
  record.setUint32(8, frameBytes, true);
  record.setUint32(12, frameBytes, true);
  const ip = new DataView(bytes.buffer, 16);
  if (isIpv4) encodeIpv4(ip, entry);
  else encodeIpv6(ip, entry);
  // The header of both families ends with the two addresses.
  const addresses = bytes.subarray(16 + (isIpv4 ? 12 : 8), 16 + ipHeaderBytes);
  encodeUdp(bytes.subarray(16 + ipHeaderBytes), addresses, entry);
  return bytes;
}

/** The bytes of a pcap file. Throws ShredwayError "value_invalid". */
export function writePcap(packets: Iterable<PacketToWrite>): Uint8Array {
  const parts = [encodePcapHeader()];
  for (const packet of packets) parts.push(encodePcapRecord(packet));
  return Buffer.concat(parts);
}
