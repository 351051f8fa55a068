// The path and the body of a request as texts.

import { isUtf8 } from "node:buffer";

/** Without repeated slashes and the last one: "//relay/" is "/relay". */
export function plainPath(path: string): string {
  return path.replace(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
}

function bufferOf(body: Uint8Array): Buffer {
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

/** Whether the name of a method that submits may be in the body, which may also be invalid. */
export function maySubmit(body: Uint8Array): boolean {
  return bufferOf(body).includes('"send', 0, "latin1");
}

/**
 * Decodes UTF-8, without a byte order mark (RFC 8259, 8.1); invalid UTF-8 becomes a text that is not JSON
 * and is refused as such.
 */
export function textOf(body: Uint8Array): string {
  if (!isUtf8(body)) return "\ufffd";
  const text = bufferOf(body).toString();
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}
