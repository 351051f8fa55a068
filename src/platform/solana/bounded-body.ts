// The body of a fetch response with a size limit.
//
// Called by the clients of nodes and lists, so that a server cannot decide how much memory is used.

/** The body as UTF-8. Rejects with an Error above `bytesMax` bytes, and reads no more. */
export async function readBounded(response: Response, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // An exception that leaves the loop cancels the rest of the body.
  for await (const chunk of response.body ?? []) {
    const bytes: Uint8Array = chunk;
    length += bytes.length;
    if (length > bytesMax) throw new Error(`expected at most ${bytesMax} bytes, got more`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}
