// Reads the response frames of the QUIC ingress, independently of the code that writes them.

export interface Response {
  readonly version: number;
  readonly flags: number;
  readonly status: number;
  readonly body: string;
}

/** Throws unless `bytes` are exactly one frame. */
export function readResponse(bytes: Buffer): Response {
  const length = bytes.readUInt16BE(4);
  if (bytes.length !== 6 + length) {
    throw new Error(`expected a frame of ${6 + length} bytes, got ${bytes.length}`);
  }
  const [version = 0, flags = 0] = bytes;
  return { version, flags, status: bytes.readUInt16BE(2), body: bytes.toString("utf8", 6) };
}
