// pcapng captures of Wireshark, dumpcap and newer tcpdump.
//
// Sections of either byte order, interfaces with their own link type and clock resolution, and enhanced,
// simple and obsolete packet blocks. Other blocks are skipped. Format: draft-ietf-opsawg-pcapng.

import type { ByteReader } from "./byte-reader.ts";
import { type CapturedPacket, captureError, type SkipCounts } from "./capture.ts";
import { frameBytesMax, packetOf, viewOf } from "./pcap.ts";

export const pcapngMagic = 0x0a0d0d0a;
const byteOrderMagic = 0x1a2b3c4d;
const blockTypes = { interface: 1, packet: 2, simplePacket: 3, enhancedPacket: 6 } as const;
/** Longest block that is read at once: a frame, its options, its headers. */
const blockBytesMax = frameBytesMax + 65_536;
const interfacesMax = 4096;
const optionResolution = 9;
const optionOffset = 14;

interface Interface {
  readonly linkType: number;
  readonly frameBytesMax: number;
  /** A timestamp t is t * multiply / divide nanoseconds, plus the offset. */
  readonly multiply: bigint;
  readonly divide: bigint;
  readonly offsetNs: bigint;
}

interface Section {
  littleEndian: boolean;
  interfaces: Interface[];
}

interface Block {
  readonly type: number;
  /** Offset of the block in the file. */
  readonly offset: number;
  /** The content without the type and the two lengths. */
  readonly body: DataView;
}

/** Reads a section header block; its magic gives the byte order. */
function readSectionHeader(reader: ByteReader, section: Section): void {
  const begin = reader.offset;
  const head = viewOf(reader.take(12, "a section header"));
  section.littleEndian = head.getUint32(8, true) === byteOrderMagic;
  if (head.getUint32(8, section.littleEndian) !== byteOrderMagic) {
    const got = head.getUint32(8).toString(16);
    throw captureError(reader.name, begin + 8, `expected a byte-order magic, got 0x${got}`);
  }
  const length = head.getUint32(4, section.littleEndian);
  checkLength(reader, begin, { length, lengthMin: 28 });
  const major = viewOf(reader.take(4, "a section header")).getUint16(0, section.littleEndian);
  if (major !== 1) {
    throw captureError(reader.name, begin + 12, `expected pcapng version 1, got ${major}`);
  }
  reader.skip(length - 20, "a section header");
  readTrailer(reader, section, length);
  section.interfaces = [];
}

function checkLength(
  reader: ByteReader,
  begin: number,
  { length, lengthMin }: { length: number; lengthMin: number },
): void {
  if (length < lengthMin || length % 4 !== 0) {
    const expected = `a block length that is a multiple of 4 from ${lengthMin} on`;
    throw captureError(reader.name, begin + 4, `expected ${expected}, got ${length}`);
  }
}

function readTrailer(reader: ByteReader, section: Section, length: number): void {
  const at = reader.offset;
  const repeated = viewOf(reader.take(4, "a block")).getUint32(0, section.littleEndian);
  if (repeated !== length) {
    const message = `expected the block length ${length} again, got ${repeated}`;
    throw captureError(reader.name, at, message);
  }
}

/** The next supported block; undefined at the end of the file. */
function nextBlock(reader: ByteReader, section: Section): Block | undefined {
  const known: readonly number[] = Object.values(blockTypes);
  for (;;) {
    const offset = reader.offset;
    if (reader.peek(1).length === 0) return undefined;
    if (startsSection(reader)) {
      readSectionHeader(reader, section);
      continue;
    }
    const head = viewOf(reader.take(8, "a block"));
    const type = head.getUint32(0, section.littleEndian);
    const length = head.getUint32(4, section.littleEndian);
    checkLength(reader, offset, { length, lengthMin: 12 });
    if (!known.includes(type)) {
      reader.skip(length - 12, "a block");
      readTrailer(reader, section, length);
      continue;
    }
    if (length > blockBytesMax) {
      const message = `expected a block of at most ${blockBytesMax} bytes, got ${length}`;
      throw captureError(reader.name, offset + 4, message);
    }
    // Body and trailer in one read, because the body is valid only until the next read.
    const rest = viewOf(reader.take(length - 8, "a block"));
    const repeated = rest.getUint32(length - 12, section.littleEndian);
    if (repeated !== length) {
      const message = `expected the block length ${length} again, got ${repeated}`;
      throw captureError(reader.name, offset + length - 4, message);
    }
    return { type, offset, body: new DataView(rest.buffer, rest.byteOffset, length - 12) };
  }
}

/** The type of a section header is the same in both byte orders. */
function startsSection(reader: ByteReader): boolean {
  const bytes = reader.peek(4);
  return bytes.length === 4 && viewOf(bytes).getUint32(0) === pcapngMagic;
}

/** The relevant options of a block; unknown, invalid or missing ones leave the defaults. */
function* readOptions(body: DataView, begin: number, littleEndian: boolean) {
  for (let at = begin; at + 4 <= body.byteLength; ) {
    const code = body.getUint16(at, littleEndian);
    const length = body.getUint16(at + 2, littleEndian);
    if (code === 0 || at + 4 + length > body.byteLength) return;
    yield { code, at: at + 4, length };
    at += 4 + Math.ceil(length / 4) * 4;
  }
}

function readInterface({ body }: Block, section: Section): Interface {
  const { littleEndian } = section;
  let divide = 1_000_000n; // microseconds by default
  let offsetNs = 0n;
  for (const { code, at, length } of readOptions(body, 8, littleEndian)) {
    if (code === optionResolution && length === 1) {
      const resolution = body.getUint8(at);
      const exponent = BigInt(resolution & 0x7f);
      divide = resolution & 0x80 ? 2n ** exponent : 10n ** exponent;
    } else if (code === optionOffset && length === 8) {
      offsetNs = body.getBigInt64(at, littleEndian) * 1_000_000_000n;
    }
  }
  return {
    linkType: body.getUint16(0, littleEndian),
    frameBytesMax: body.getUint32(4, littleEndian) || frameBytesMax,
    multiply: 1_000_000_000n,
    divide,
    offsetNs,
  };
}

interface Frame {
  readonly bytes: Uint8Array;
  readonly timestampNs: bigint | null;
  readonly linkType: number;
}

function interfaceOf(block: Block, section: Section, number: number, name: string): Interface {
  const found = section.interfaces[number];
  if (!found) {
    const count = section.interfaces.length;
    const message = `expected one of ${count} described interfaces, got interface ${number}`;
    throw captureError(name, block.offset + 8, message);
  }
  return found;
}

function frameBytes(block: Block, begin: number, length: number, name: string): Uint8Array {
  const { body } = block;
  if (begin + length > body.byteLength) {
    const message = `expected a frame within the block of ${body.byteLength} bytes, got ${length}`;
    throw captureError(name, block.offset, message);
  }
  return new Uint8Array(body.buffer, body.byteOffset + begin, length);
}

/**
 * The frame in an enhanced or obsolete packet block, which differ in the position of the interface id.
 */
function timedFrame(block: Block, section: Section, name: string): Frame {
  const { body, type } = block;
  const { littleEndian } = section;
  const number =
    type === blockTypes.packet ? body.getUint16(0, littleEndian) : body.getUint32(0, littleEndian);
  const { linkType, multiply, divide, offsetNs } = interfaceOf(block, section, number, name);
  const high = body.getUint32(4, littleEndian);
  const ticks = (BigInt(high) << 32n) | BigInt(body.getUint32(8, littleEndian));
  const bytes = frameBytes(block, 20, body.getUint32(12, littleEndian), name);
  return { bytes, linkType, timestampNs: (ticks * multiply) / divide + offsetNs };
}

function simpleFrame(block: Block, section: Section, name: string): Frame {
  const { linkType, frameBytesMax: stored } = interfaceOf(block, section, 0, name);
  const original = block.body.getUint32(0, section.littleEndian);
  const length = Math.min(original, stored, block.body.byteLength - 4);
  return { bytes: frameBytes(block, 4, length, name), linkType, timestampNs: null };
}

const bodyBytesMin: Readonly<Record<number, number>> = {
  [blockTypes.interface]: 8,
  [blockTypes.packet]: 20,
  [blockTypes.simplePacket]: 4,
  [blockTypes.enhancedPacket]: 20,
};

/**
 * The UDP datagrams of a pcapng file; other records are counted in `skipped`. Throws ShredwayError
 * "capture_invalid" where the file is damaged, after the packets before that offset.
 */
export function* readPcapng(reader: ByteReader, skipped: SkipCounts): Generator<CapturedPacket> {
  const section: Section = { littleEndian: true, interfaces: [] };
  readSectionHeader(reader, section);
  for (;;) {
    const block = nextBlock(reader, section);
    if (!block) return;
    const least = bodyBytesMin[block.type] ?? 0;
    if (block.body.byteLength < least) {
      const message = `expected a block of at least ${least + 12} bytes, got ${block.body.byteLength + 12}`;
      throw captureError(reader.name, block.offset + 4, message);
    }
    if (block.type === blockTypes.interface) {
      if (section.interfaces.length === interfacesMax) {
        const message = `expected at most ${interfacesMax} interfaces in a section, got more`;
        throw captureError(reader.name, block.offset, message);
      }
      section.interfaces.push(readInterface(block, section));
      continue;
    }
    const read = block.type === blockTypes.simplePacket ? simpleFrame : timedFrame;
    const { bytes, linkType, timestampNs } = read(block, section, reader.name);
    const packet = packetOf(linkType, bytes, timestampNs, skipped);
    if (packet) yield packet;
  }
}
