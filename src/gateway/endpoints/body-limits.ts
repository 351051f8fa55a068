// How large a body may be, decided before it is parsed.
//
// Called by gateway.ts, first with the head of a request alone, then with a look for the names of
// methods in its text. The look may be fooled, but only towards limits that the key could have
// anyway, and never beyond the largest.

const singleBytesMax = 16 * 1024;
const bundleBytesMax = 48 * 1024;
/** Of every body. */
export const batchBytesMax = 256 * 1024;

const methodNames = /"method"\s*:\s*"([^"\\]{0,64})"/g;

/** 256 signatures have 23 kB. */
const listMethods: ReadonlySet<string> = new Set([
  "sendBundle",
  "getTransactionStatus",
  "getSignatureStatuses",
]);

/** Of a body with this method; `mayBatch`: the key has the scope. */
export function methodBytesMax(method: string, mayBatch: boolean): number {
  if (listMethods.has(method)) return bundleBytesMax;
  return method === "sendBatch" && mayBatch ? batchBytesMax : singleBytesMax;
}

/** Before anything of the body is known: only with a key it can be more than a single call. */
export function headBytesMax(isKeyed: boolean): number {
  return isKeyed ? batchBytesMax : singleBytesMax;
}

/** Of this text; an array has the sum of its calls. */
export function bodyBytesMax(text: string, mayBatch: boolean): number {
  if (text.length <= singleBytesMax / 3) return singleBytesMax; // no character has more bytes
  const isArray = /^\s*\[/.test(text);
  let sum = 0;
  let largest = singleBytesMax;
  for (const [, name = ""] of text.matchAll(methodNames)) {
    const bytesMax = methodBytesMax(name, mayBatch);
    sum += bytesMax;
    largest = Math.max(largest, bytesMax);
    if (sum >= batchBytesMax) break;
  }
  return isArray ? Math.min(Math.max(sum, singleBytesMax), batchBytesMax) : largest;
}
