// Zstandard frames without compression (RFC 8878), for the account encoding "base64+zstd".
//
// Called by encode-account.ts. Every decompressor reads raw blocks, and Node 20 has no compressor.

const magic = [0x28, 0xb5, 0x2f, 0xfd] as const;
/** A content size of four bytes; the window is as large as the content. */
const descriptor = 0xa0;
const blockBytesMax = 128 * 1024;

export function zstdFrame(data: Uint8Array): Uint8Array {
  const blocks = Math.max(1, Math.ceil(data.length / blockBytesMax));
  const header = new Uint8Array([...magic, descriptor, 0, 0, 0, 0]);
  new DataView(header.buffer).setUint32(5, data.length, true);
  const parts: Uint8Array[] = [header];
  for (let block = 0; block < blocks; block++) {
    const content = data.subarray(block * blockBytesMax, (block + 1) * blockBytesMax);
    const isLast = block === blocks - 1;
    const head = (content.length << 3) | (isLast ? 1 : 0); // bits 1 and 2, the type, are 0: raw
    parts.push(Uint8Array.of(head, head >> 8, head >> 16), content);
  }
  return Buffer.concat(parts);
}
