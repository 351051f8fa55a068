// Frames: finds the UDP datagram in a captured link-layer frame.
//
// Called by the pcap and pcapng readers for every record. Input is untrusted: it never reads beyond the
// frame and never throws. A skip reason names a frame without a complete UDP datagram. Link types:
// tcpdump.org/linktypes.html; IPv4 RFC 791, IPv6 RFC 8200, UDP RFC 768, VLAN tags IEEE 802.1Q.

import { type Endpoint, familyOf } from "../../core/addresses/addresses.ts";
import type { SkipReason } from "./capture.ts";

interface Datagram {
  /** A view of the frame. */
  readonly payload: Uint8Array;
  readonly source: Endpoint;
  readonly destination: Endpoint;
}

type FrameResult = Datagram | SkipReason;

export const linkTypes = {
  null: 0,
  ethernet: 1,
  raw12: 12,
  raw14: 14,
  raw: 101,
  cooked: 113,
  ipv4: 228,
  ipv6: 229,
  cooked2: 276,
} as const;

const etherTypeIpv4 = 0x0800;
const etherTypeIpv6 = 0x86dd;
const vlanEtherTypes: readonly number[] = [0x8100, 0x88a8, 0x9100];
const vlanTagsMax = 4;
const extensionHeadersMax = 8;
const protocolUdp = 17;
const fragmentHeader = 44;
const authenticationHeader = 51;
/** IPv6 headers that may precede UDP: hop-by-hop 0, routing 43, destination options 60. */
const extensionHeaders: readonly number[] = [0, 43, fragmentHeader, authenticationHeader, 60];

function u16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}

/** The payload after an Ethernet-style type field at `typeAt`, after VLAN tags. */
function afterType(frame: Uint8Array, typeAt: number, headerBytes: number): FrameResult {
  let type = u16(frame, typeAt);
  let begin = headerBytes;
  for (let tags = 0; vlanEtherTypes.includes(type) && tags < vlanTagsMax; tags++) {
    type = u16(frame, begin + 2);
    begin += 4;
  }
  if (begin > frame.length) return "cut_off";
  if (type === etherTypeIpv4) return fromIpv4(frame.subarray(begin));
  return type === etherTypeIpv6 ? fromIpv6(frame.subarray(begin)) : "not_ip";
}

function fromRawIp(bytes: Uint8Array): FrameResult {
  if (bytes.length === 0) return "cut_off";
  const version = (bytes[0] ?? 0) >> 4;
  if (version === 4) return fromIpv4(bytes);
  return version === 6 ? fromIpv6(bytes) : "not_ip";
}

/** The address family before a loopback frame, in the byte order of the capturing machine. */
function fromNull(frame: Uint8Array): FrameResult {
  if (frame.length < 4) return "cut_off";
  const family = (frame[0] ?? 0) + (frame[3] ?? 0); // one end contains it, the other is 0
  if (u16(frame, 1) !== 0 || (frame[0] !== 0 && frame[3] !== 0)) return "not_ip";
  if (family === 2) return fromIpv4(frame.subarray(4));
  // AF_INET6 of the BSDs, Darwin and Linux.
  return [10, 24, 28, 30].includes(family) ? fromIpv6(frame.subarray(4)) : "not_ip";
}

function mapIpv4(bytes: Uint8Array): Uint8Array {
  const mapped = new Uint8Array(16);
  mapped.fill(0xff, 10, 12);
  mapped.set(bytes, 12);
  return mapped;
}

function fromIpv4(bytes: Uint8Array): FrameResult {
  if (bytes.length < 20) return "cut_off";
  const headerBytes = ((bytes[0] ?? 0) & 0x0f) * 4;
  if ((bytes[0] ?? 0) >> 4 !== 4 || headerBytes < 20) return "malformed";
  // More fragments, or not the first one.
  if ((u16(bytes, 6) & 0x3fff) !== 0) return "fragment";
  if (bytes[9] !== protocolUdp) return "not_udp";
  // 0 if the sending card segments the packet; then it ends with the frame.
  const totalBytes = u16(bytes, 2) || bytes.length;
  if (totalBytes < headerBytes) return "malformed";
  return fromUdp(
    bytes.subarray(headerBytes, totalBytes),
    mapIpv4(bytes.subarray(12, 16)),
    mapIpv4(bytes.subarray(16, 20)),
  );
}

function fromIpv6(bytes: Uint8Array): FrameResult {
  if (bytes.length < 40) return "cut_off";
  if ((bytes[0] ?? 0) >> 4 !== 6) return "malformed";
  const payloadBytes = u16(bytes, 4);
  const whole = payloadBytes === 0 ? bytes : bytes.subarray(0, 40 + payloadBytes);
  let next = whole[6] ?? 0;
  let at = 40;
  for (let headers = 0; next !== protocolUdp; headers++) {
    if (headers === extensionHeadersMax) return "malformed";
    if (!extensionHeaders.includes(next)) return "not_udp";
    if (at + 8 > whole.length) return "cut_off";
    // Offset or "more" is set; a fragment header with neither contains a complete packet (RFC 6946).
    if (next === fragmentHeader && (u16(whole, at + 2) & 0xfff9) !== 0) return "fragment";
    const kind = next;
    next = whole[at] ?? 0;
    at += extensionBytes(kind, whole[at + 1] ?? 0);
  }
  if (at > whole.length) return "cut_off";
  return fromUdp(whole.subarray(at), whole.slice(8, 24), whole.slice(24, 40));
}

function extensionBytes(kind: number, length: number): number {
  if (kind === fragmentHeader) return 8;
  return kind === authenticationHeader ? (length + 2) * 4 : (length + 1) * 8;
}

function fromUdp(bytes: Uint8Array, from: Uint8Array, to: Uint8Array): FrameResult {
  if (bytes.length < 8) return "cut_off";
  const length = u16(bytes, 4);
  if (length < 8) return "malformed";
  if (length > bytes.length) return "cut_off";
  return {
    payload: bytes.subarray(8, length),
    source: { bytes: from, port: u16(bytes, 0), family: familyOf(from) },
    destination: { bytes: to, port: u16(bytes, 2), family: familyOf(to) },
  };
}

/** The UDP datagram in a frame of the given link type, or the reason for its absence. */
export function datagramOf(linkType: number, frame: Uint8Array): FrameResult {
  switch (linkType) {
    case linkTypes.ethernet:
      return afterType(frame, 12, 14);
    case linkTypes.cooked:
      return afterType(frame, 14, 16);
    case linkTypes.cooked2:
      return afterType(frame, 0, 20);
    case linkTypes.raw12:
    case linkTypes.raw14:
    case linkTypes.raw:
    case linkTypes.ipv4:
    case linkTypes.ipv6:
      return fromRawIp(frame);
    case linkTypes.null:
      return fromNull(frame);
    default:
      return "unknown_link_type";
  }
}
