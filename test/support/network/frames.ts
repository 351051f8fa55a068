// Handmade frames and capture files, field by field, for tests of the capture readers.

export function bytesOf(...parts: readonly (number | Uint8Array)[]): Uint8Array {
  return Buffer.concat(
    parts.map((part) => (typeof part === "number" ? Uint8Array.of(part) : part)),
  );
}

/** Big-endian u16. */
export function be16(value: number): Uint8Array {
  return Uint8Array.of(value >> 8, value & 0xff);
}

export function udp(payload: Uint8Array, length = payload.length + 8): Uint8Array {
  return bytesOf(be16(4000), be16(20_000), be16(length), be16(0), payload);
}

export interface Ipv4Fields {
  readonly protocol?: number;
  readonly fragment?: number;
  readonly options?: number;
  readonly totalBytes?: number;
}

export function ipv4(body: Uint8Array, fields: Ipv4Fields = {}): Uint8Array {
  const options = new Uint8Array((fields.options ?? 0) * 4);
  const header = Uint8Array.of(0x45 + (fields.options ?? 0), 0);
  const total = be16(fields.totalBytes ?? 20 + options.length + body.length);
  const rest = Uint8Array.of(64, fields.protocol ?? 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2);
  return bytesOf(header, total, be16(7), be16(fields.fragment ?? 0x4000), rest, options, body);
}

/** `next` is the first next-header number; extension headers precede `body`. */
export function ipv6(body: Uint8Array, next = 17): Uint8Array {
  const from = Uint8Array.from({ length: 16 }, (_, i) => (i === 0 ? 0x20 : i));
  const to = Uint8Array.from({ length: 16 }, (_, i) => (i === 0 ? 0x20 : i + 1));
  const head = Uint8Array.of(0x60, 0, 0, 0);
  return bytesOf(head, be16(body.length), next, 64, from, to, body);
}

const macs = new Uint8Array(12).fill(2);

export function ethernet(type: number, body: Uint8Array, tags: readonly number[] = []): Uint8Array {
  const tagBytes = tags.map((tag) => bytesOf(be16(tag), be16(5)));
  return bytesOf(macs, ...tagBytes, be16(type), body);
}

/** Linux cooked capture, version 1. */
export function cooked(type: number, body: Uint8Array): Uint8Array {
  return bytesOf(be16(0), be16(1), be16(6), new Uint8Array(8), be16(type), body);
}

/** Linux cooked capture, version 2. */
export function cooked2(type: number, body: Uint8Array): Uint8Array {
  return bytesOf(be16(type), new Uint8Array(18), body);
}

type Words = (view: DataView) => void;

/** `length` bytes that `fill` writes. */
export function words(length: number, fill: Words): Uint8Array {
  const bytes = new Uint8Array(length);
  fill(new DataView(bytes.buffer));
  return bytes;
}

export interface PcapForm {
  readonly littleEndian: boolean;
  readonly nanoseconds: boolean;
  readonly linkType: number;
}

export function pcapFile(form: PcapForm, frames: readonly Uint8Array[]): Uint8Array {
  const { littleEndian } = form;
  const header = words(24, (view) => {
    view.setUint32(0, form.nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, littleEndian);
    view.setUint16(4, 2, littleEndian);
    view.setUint16(6, 4, littleEndian);
    view.setUint32(16, 65_535, littleEndian);
    view.setUint32(20, form.linkType, littleEndian);
  });
  const records = frames.map((frame, i) =>
    bytesOf(
      words(16, (view) => {
        view.setUint32(0, 1000 + i, littleEndian);
        view.setUint32(4, 5, littleEndian);
        view.setUint32(8, frame.length, littleEndian);
        view.setUint32(12, frame.length, littleEndian);
      }),
      frame,
    ),
  );
  return bytesOf(header, ...records);
}

function padded(bytes: Uint8Array): Uint8Array {
  return bytesOf(bytes, new Uint8Array((4 - (bytes.length % 4)) % 4));
}

/** A pcapng block around `body`. */
export function block(littleEndian: boolean, type: number, body: Uint8Array): Uint8Array {
  const whole = padded(body);
  const length = words(4, (view) => view.setUint32(0, whole.length + 12, littleEndian));
  return bytesOf(
    words(4, (view) => view.setUint32(0, type, littleEndian)),
    length,
    whole,
    length,
  );
}

export function sectionHeader(
  littleEndian: boolean,
  options: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const body = words(16, (view) => {
    view.setUint32(0, 0x1a2b3c4d, littleEndian);
    view.setUint16(4, 1, littleEndian);
    view.setBigInt64(8, -1n, littleEndian);
  });
  return block(littleEndian, 0x0a0d0d0a, bytesOf(body, options));
}

export function interfaceBlock(
  littleEndian: boolean,
  linkType: number,
  options: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const body = words(8, (view) => {
    view.setUint16(0, linkType, littleEndian);
    view.setUint32(4, 65_535, littleEndian);
  });
  return block(littleEndian, 1, bytesOf(body, options));
}

export function option(littleEndian: boolean, code: number, value: Uint8Array): Uint8Array {
  const head = words(4, (view) => {
    view.setUint16(0, code, littleEndian);
    view.setUint16(2, value.length, littleEndian);
  });
  return bytesOf(head, padded(value));
}

export interface EnhancedFields {
  readonly littleEndian: boolean;
  readonly interface: number;
  readonly ticks: bigint;
}

export function enhancedPacket(fields: EnhancedFields, frame: Uint8Array): Uint8Array {
  const { littleEndian, ticks } = fields;
  const head = words(20, (view) => {
    view.setUint32(0, fields.interface, littleEndian);
    view.setUint32(4, Number(ticks >> 32n), littleEndian);
    view.setUint32(8, Number(ticks & 0xffff_ffffn), littleEndian);
    view.setUint32(12, frame.length, littleEndian);
    view.setUint32(16, frame.length, littleEndian);
  });
  return block(littleEndian, 6, bytesOf(head, frame));
}

export function simplePacket(littleEndian: boolean, frame: Uint8Array): Uint8Array {
  const head = words(4, (view) => view.setUint32(0, frame.length, littleEndian));
  return block(littleEndian, 3, bytesOf(head, frame));
}
