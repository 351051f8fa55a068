// Handmade shreds: every header field is given, signature and hashes are arbitrary. For tests of
// parsing and of captures; authentic shreds come from the native shredder.

export interface ShredFields {
  readonly variant: number;
  readonly slot: bigint;
  readonly index: number;
  readonly fecSetIndex: number;
  readonly version: number;
  /** Data: parent offset. Code: number of data shreds. */
  readonly at83: number;
  /** Data: flags in the low byte. Code: number of code shreds. */
  readonly at85: number;
  /** Data: size, at 86. Code: position, at 87. */
  readonly last: number;
}

export const goodDataFields: ShredFields = {
  variant: 0x96,
  slot: 1000n,
  index: 63,
  fecSetIndex: 32,
  version: 50_093,
  at83: 1,
  at85: 0x45,
  last: 188,
};
export const goodCodeFields: ShredFields = {
  ...goodDataFields,
  variant: 0x66,
  at83: 32,
  at85: 32,
  last: 31,
};

/**
 * A packet of `length` bytes; bytes outside the fields count upwards, so that views can be checked.
 */
export function makePacket(fields: ShredFields, length?: number): Uint8Array {
  const isData = (fields.variant & 0xc0) === 0x80;
  const packet = Uint8Array.from({ length: 1300 }, (_, i) => (i * 7 + (i >> 8)) & 0xff);
  const view = new DataView(packet.buffer);
  view.setUint8(64, fields.variant);
  view.setBigUint64(65, fields.slot, true);
  view.setUint32(73, fields.index, true);
  view.setUint16(77, fields.version, true);
  view.setUint32(79, fields.fecSetIndex, true);
  view.setUint16(83, fields.at83, true);
  if (isData) view.setUint8(85, fields.at85);
  else view.setUint16(85, fields.at85, true);
  view.setUint16(isData ? 86 : 87, fields.last, true);
  return packet.subarray(0, length ?? (isData ? 1203 : 1228));
}
