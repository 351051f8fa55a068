// The response frame of bidirectional streams and of binary WebSockets, and its statuses. Pure.
//
// Layout, as of Lunar Lander: version u8 = 1, flags u8 = 0, status u16 big-endian, length of the body u16
// big-endian, body in UTF-8.

import type { Reason } from "../errors.ts";

const version = 1;
const headBytes = 6;
const bodyBytesMax = 1024;

/** A longer body is cut between two characters. */
export function responseFrame(status: number, body: string): Buffer {
  let text = Buffer.from(body);
  if (text.length > bodyBytesMax) {
    let end = bodyBytesMax;
    while (end > 0 && ((text[end] ?? 0) & 0xc0) === 0x80) end--;
    text = text.subarray(0, end);
  }
  const frame = Buffer.alloc(headBytes + text.length);
  frame.writeUInt8(version, 0);
  frame.writeUInt16BE(status, 2);
  frame.writeUInt16BE(text.length, 4);
  frame.set(text, headBytes);
  return frame;
}

interface ResponseFrame {
  readonly status: number;
  readonly body: string;
}

/** null: the bytes are not exactly one frame of this version. */
export function readResponseFrame(bytes: Uint8Array): ResponseFrame | null {
  const frame = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (frame.length < headBytes || frame[0] !== version) return null;
  if (frame.length !== headBytes + frame.readUInt16BE(4)) return null;
  return { status: frame.readUInt16BE(2), body: frame.toString("utf8", headBytes) };
}

/** Status of an accepted submission. */
export const acceptedStatus = 200;

/** All other reasons are 400. */
const statuses: Partial<Readonly<Record<Reason, number>>> = {
  unauthorized: 403,
  scope_missing: 403,
  rate_limited: 429,
  overloaded: 503,
  no_route: 503,
  store_failed: 503,
  http_closing: 503,
  internal: 503,
};

/** `reason` null: the submission was accepted. */
export function frameStatusOf(reason: Reason | null): number {
  return reason === null ? acceptedStatus : (statuses[reason] ?? 400);
}
