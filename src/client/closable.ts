// Iterators that their consumer can close at any time.
//
// Called by status-watch.ts and tip-stream.ts. `return` of an async generator waits for a pending `next`,
// which here may last until the service sends something.

/** `begin` gets a signal that is aborted with `signal`, and when the consumer closes the iterator. */
export function closable<T>(
  signal: AbortSignal | undefined,
  begin: (signal: AbortSignal) => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const controller = new AbortController();
  let isClosed = false;
  const abort = (): void => controller.abort(signal?.reason);
  const inner = begin(controller.signal);
  const settle = async (work: Promise<IteratorResult<T>>): Promise<IteratorResult<T>> => {
    let isOver = true;
    try {
      const result = await work;
      isOver = result.done === true;
      return result;
    } catch (error) {
      if (isClosed) return { done: true, value: undefined };
      throw error;
    } finally {
      if (isOver) signal?.removeEventListener("abort", abort);
    }
  };
  return {
    next: () => {
      // Not earlier, because nobody may read from the iterator or close it.
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort, { once: true });
      return settle(inner.next());
    },
    return: (value) => {
      isClosed = true;
      controller.abort();
      return settle(inner.return(value));
    },
    throw: (error) => settle(inner.throw(error)),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
