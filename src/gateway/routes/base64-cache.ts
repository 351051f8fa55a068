// Caches the base64 text of the newest transactions, so that each is encoded once for all routes.
//
// A text takes a microsecond to make. It is not kept for the life of its transaction: with tens of thousands
// of open transactions, their texts and a WeakMap of them would lengthen every garbage collection.

const entriesMax = 32;
const wires: (Uint8Array | null)[] = Array.from({ length: entriesMax }, () => null);
const texts: string[] = Array.from({ length: entriesMax }, () => "");
let next = 0;

/** The bytes must not change. */
export function base64Of(wire: Uint8Array): string {
  const at = wires.indexOf(wire);
  const known = texts[at];
  if (known !== undefined) return known;
  const text = Buffer.from(wire.buffer, wire.byteOffset, wire.byteLength).toString("base64");
  wires[next] = wire;
  texts[next] = text;
  next = (next + 1) % entriesMax;
  return text;
}
