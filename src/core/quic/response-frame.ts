// The response frame of bidirectional streams. Pure.
//
// Layout, as of Lunar Lander: version u8 = 1, flags u8 = 0, status u16 big-endian, length of the body u16
// big-endian, body in UTF-8.

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
