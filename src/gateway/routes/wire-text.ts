// Transactions in base64, encoded once however many routes and attempts they leave by.

const texts = new WeakMap<Uint8Array, string>();

/** Of bytes that nobody changes. Kept as long as they are. */
export function base64Of(wire: Uint8Array): string {
  const known = texts.get(wire);
  if (known !== undefined) return known;
  const text = Buffer.from(wire.buffer, wire.byteOffset, wire.byteLength).toString("base64");
  texts.set(wire, text);
  return text;
}
