// Ed25519 verification by the formulas of RFC 8032, 5.1, with big integers: independent of OpenSSL.

import { createHash } from "node:crypto";

interface Point {
  readonly x: bigint;
  readonly y: bigint;
}

const p = 2n ** 255n - 19n;
const order = 2n ** 252n + 27742317777372353535851937790883648493n;

function mod(value: bigint, modulus = p): bigint {
  const rest = value % modulus;
  return rest < 0n ? rest + modulus : rest;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let b = mod(base), e = exponent; e > 0n; e >>= 1n, b = mod(b * b)) {
    if (e & 1n) result = mod(result * b);
  }
  return result;
}

const inverse = (value: bigint): bigint => power(value, p - 2n);
const d = mod(-121665n * inverse(121666n));

function little(bytes: Uint8Array): bigint {
  return bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

function decode(bytes: Uint8Array): Point | null {
  const encoded = little(bytes);
  const y = encoded & (2n ** 255n - 1n);
  if (bytes.length !== 32 || y >= p) return null;
  const square = mod((y * y - 1n) * inverse(d * y * y + 1n));
  let x = power(square, (p + 3n) / 8n);
  if (mod(x * x) !== square) x = mod(x * power(2n, (p - 1n) / 4n));
  if (mod(x * x) !== square) return null;
  return { x: (x & 1n) === encoded >> 255n ? x : mod(-x), y };
}

function add(a: Point, b: Point): Point {
  const product = mod(d * a.x * b.x * a.y * b.y);
  return {
    x: mod((a.x * b.y + b.x * a.y) * inverse(1n + product)),
    y: mod((a.y * b.y + a.x * b.x) * inverse(1n - product)),
  };
}

function multiply(point: Point, factor: bigint): Point {
  let result: Point = { x: 0n, y: 1n };
  for (let sum = point, rest = factor; rest > 0n; rest >>= 1n, sum = add(sum, sum)) {
    if (rest & 1n) result = add(result, sum);
  }
  return result;
}

/** The base point: y = 4/5, x even. */
const base = ((): Point => {
  const y = mod(4n * inverse(5n));
  const bytes = Uint8Array.from({ length: 32 }, (_, i) => Number((y >> BigInt(8 * i)) & 255n));
  const point = decode(bytes);
  if (!point) throw new Error("expected the base point of edwards25519");
  return point;
})();

export function verifyByReference(
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  const key = decode(publicKey);
  const commitment = decode(signature.subarray(0, 32));
  const s = little(signature.subarray(32));
  if (signature.length !== 64 || !key || !commitment || s >= order) return false;
  const hash = createHash("sha512");
  const k = little(
    hash.update(signature.subarray(0, 32)).update(publicKey).update(message).digest(),
  );
  const left = multiply(base, s);
  const right = add(commitment, multiply(key, mod(k, order)));
  return left.x === right.x && left.y === right.y;
}
