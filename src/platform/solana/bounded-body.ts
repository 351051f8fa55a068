// The body of an answer to fetch, as long as it is not too long.
//
// Called by what asks nodes and lists: nobody at the other end decides how much memory is taken.

/** As UTF-8. Rejects with an Error when there are more than `bytesMax` bytes; the rest is not read. */
export async function readBounded(response: Response, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Left by an exception, the loop cancels the rest of the body.
  for await (const chunk of response.body ?? []) {
    const bytes: Uint8Array = chunk;
    length += bytes.length;
    if (length > bytesMax) throw new Error(`expected at most ${bytesMax} bytes, got more`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}
