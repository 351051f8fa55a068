// Limits of bodies: size, determined before a body is parsed; number of calls; depth.
//
// gateway.ts applies them first to the request head, then to the body's text, in which it searches
// for method names. A crafted text can only raise the limit to what the key may use anyway, never
// beyond the largest limit.

const singleBytesMax = 16 * 1024;
const bundleBytesMax = 48 * 1024;
/** Upper bound for every body. */
export const batchBytesMax = 256 * 1024;

/** Maximum calls of one array. */
export const callsMax = 25;
/** Maximum nesting depth of a body. */
export const depthMax = 8;

const methodNames = /"method"\s*:\s*"([^"\\]{0,64})"/g;

/** Methods with lists; 256 signatures take 23 kB. */
const listMethods: ReadonlySet<string> = new Set([
  "sendBundle",
  "getTransactionStatus",
  "getSignatureStatuses",
]);

/** Its filter may contain some thousand accounts. */
const filterMethod = "startTransactionPush";

/** Limit of a body with this method; `mayBatch`: the key has the scope "batch". */
export function methodBytesMax(method: string, mayBatch: boolean): number {
  if (listMethods.has(method)) return bundleBytesMax;
  if (method === filterMethod) return batchBytesMax;
  return method === "sendBatch" && mayBatch ? batchBytesMax : singleBytesMax;
}

/** Limit before the body is read; only requests with a key may exceed a single call. */
export function headBytesMax(isKeyed: boolean): number {
  return isKeyed ? batchBytesMax : singleBytesMax;
}

/** Limit for this text; an array has the sum of its calls' limits. */
export function bodyBytesMax(text: string, mayBatch: boolean): number {
  if (text.length <= singleBytesMax / 3) return singleBytesMax; // a UTF-16 unit takes at most 3 bytes
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
