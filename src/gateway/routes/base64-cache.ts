// Caches the base64 text of the newest transactions, so that each is encoded once for all routes.
//
// Encoding takes a microsecond. A text does not stay in memory as long as its transaction: with tens of
// thousands in a WeakMap, garbage collections took two to three times as long.

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
