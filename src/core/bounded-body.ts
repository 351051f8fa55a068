// The body of a fetch response, with a limit of bytes and of time.
//
// Called by the clients of nodes, lists and other services, so that a server decides neither how much memory is
// used nor how long. The signal of `fetch` alone does not end every body that stalls: in Node 20, 6 of 24 such
// requests hung for ever beside garbage collections (November 2026).

/** Rejects with the reason of `signal` when it aborts, whatever `work` does then. */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    const end = (): void => reject(signal.reason);
    stop = () => signal.removeEventListener("abort", end);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    stop();
  }
}

/**
 * The body as UTF-8. Rejects with an Error above `bytesMax` bytes, and with the reason of `signal` when it aborts.
 * It reads no more then, and the connection ends.
 */
export async function readBounded(
  response: Response,
  { bytesMax, signal }: { readonly bytesMax: number; readonly signal: AbortSignal },
): Promise<string> {
  const reader = response.body?.getReader();
  if (!reader) return "";
  const decoder = new TextDecoder();
  let text = "";
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await untilAborted(signal, reader.read());
      if (done) return text + decoder.decode();
      length += value.length;
      if (length > bytesMax) throw new Error(`expected at most ${bytesMax} bytes, got more`);
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    // A body that has failed cannot be cancelled.
    await reader.cancel(error).catch(() => undefined);
    throw error;
  }
}
