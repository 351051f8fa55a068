// The readable part of a long packet header (RFC 9000, 17.2). Pure.
//
// Called for first packets, before the QUIC library sees them: most of a flood ends here.

export interface LongHeader {
  readonly version: number;
  readonly isInitial: boolean;
  readonly dcid: Uint8Array;
  readonly scid: Uint8Array;
  /** Empty: none. Only of Initial packets of version 1. */
  readonly token: Uint8Array;
}

const version1 = 1;
const idsAt = 5;
/** The limit of version 1. Other versions may have ids of up to 255 bytes. */
const idBytesMax = 20;
const typeBits = 0x30;
const noToken = new Uint8Array(0);

/** The token of an Initial packet, whose length is a variable-length integer; null: cut. */
function tokenAt(packet: Uint8Array, at: number): Uint8Array | null {
  const first = packet[at];
  if (first === undefined) return null;
  const more = (1 << (first >> 6)) - 1;
  // A token of 2^30 bytes and more is longer than every packet.
  if (more > 3 || at + more >= packet.length) return null;
  let length = first & 0x3f;
  for (let i = 1; i <= more; i++) length = length * 256 + (packet[at + i] ?? 0);
  const begin = at + 1 + more;
  return begin + length <= packet.length ? packet.subarray(begin, begin + length) : null;
}

/** null: a short header, cut off, or with an id that is too long. */
export function readLongHeader(packet: Uint8Array): LongHeader | null {
  const [first = 0] = packet;
  if ((first & 0x80) === 0 || packet.length < idsAt + 2) return null;
  const version = Buffer.from(packet.buffer, packet.byteOffset, packet.length).readUInt32BE(1);
  const dcidLength = packet[idsAt] ?? 0;
  const dcidAt = idsAt + 1;
  const scidLength = packet[dcidAt + dcidLength];
  const scidAt = dcidAt + dcidLength + 1;
  if (scidLength === undefined || scidAt + scidLength > packet.length) return null;
  if (version === version1 && Math.max(dcidLength, scidLength) > idBytesMax) return null;
  const isInitial = version === version1 && (first & typeBits) === 0;
  const token = isInitial ? tokenAt(packet, scidAt + scidLength) : noToken;
  if (token === null) return null;
  return {
    version,
    isInitial,
    dcid: packet.subarray(dcidAt, dcidAt + dcidLength),
    scid: packet.subarray(scidAt, scidAt + scidLength),
    token,
  };
}
