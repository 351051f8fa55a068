// The form of a transaction's signature, checked before a call that could only fail.
//
// Pure.

const base58 = /^[1-9A-HJ-NP-Za-km-z]+$/;
/** 64 bytes in base58. */
const lengthMin = 64;
const lengthMax = 88;

/** Returns the problem of a text that cannot be a signature; null: it may be one. */
export function signatureProblem(text: string): string | null {
  const expected = `expected ${lengthMin} to ${lengthMax} base58 characters, usually 87 or 88`;
  if (text.length < lengthMin || text.length > lengthMax) {
    return `This is not a signature of a transaction: it has ${text.length} characters; ${expected}.`;
  }
  if (base58.test(text)) return null;
  return `This is not a signature of a transaction: it contains other characters than base58; ${expected}.`;
}
