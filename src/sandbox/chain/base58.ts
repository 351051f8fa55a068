// Base58 text of keys, hashes and signatures: how the RPC writes them.
//
// Called by everything in this folder that names an account or a transaction. Only encodes; texts
// from outside are decoded by core/primitives.ts, which bounds their length. Limbs of four digits
// keep a signature at a few microseconds; the product of a limb and three bytes stays below 2^53.

const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const limbBase = 58 ** 4;

/** Multiplies the limbs by 2^`bits` and adds `value`. */
function shiftIn(limbs: number[], bits: number, value: number): void {
  let carry = value;
  const factor = 2 ** bits;
  for (let i = 0; i < limbs.length; i++) {
    const sum = (limbs[i] ?? 0) * factor + carry;
    carry = Math.floor(sum / limbBase);
    limbs[i] = sum - carry * limbBase;
  }
  while (carry > 0) {
    const rest = Math.floor(carry / limbBase);
    limbs.push(carry - rest * limbBase);
    carry = rest;
  }
}

function limbText(limb: number): string {
  let text = "";
  let left = limb;
  for (let i = 0; i < 4; i++) {
    text = (alphabet[left % 58] ?? "") + text;
    left = Math.floor(left / 58);
  }
  return text;
}

/** `bytes` in base58, leading zero bytes as "1". Costs the square of the length. */
export function encodeBase58(bytes: Uint8Array): string {
  let zeros = 0;
  while (bytes[zeros] === 0) zeros++;
  const limbs: number[] = [];
  let at = zeros;
  for (; (bytes.length - at) % 3 !== 0; at++) shiftIn(limbs, 8, bytes[at] ?? 0);
  for (; at < bytes.length; at += 3) {
    const value = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    shiftIn(limbs, 24, value);
  }
  const digits = limbs.toReversed().map(limbText).join("");
  return "1".repeat(zeros) + digits.replace(/^1+/, "");
}
