// Caches the base64 text of transactions, so that each is encoded once for all routes and attempts.

const texts = new WeakMap<Uint8Array, string>();

/** The bytes must not change. The text is cached as long as the bytes exist. */
export function base64Of(wire: Uint8Array): string {
  const known = texts.get(wire);
  if (known !== undefined) return known;
  const text = Buffer.from(wire.buffer, wire.byteOffset, wire.byteLength).toString("base64");
  texts.set(wire, text);
  return text;
}
