// Keep-alive: health calls at an interval, because the service closes idle connections: after 90 s, or 10 s
// with the engine uws.
//
// Called by client.ts. It does not keep a Node process alive.

export interface KeepAliveOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called for every failed health call. The calls continue. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
}

export interface KeepAlive {
  /** Idempotent. Settles when the call in progress has ended. */
  stop(): Promise<void>;
}

/** A Node timer keeps the process alive unless it is unreferenced. A browser timer is a number. */
function release(timer: unknown): void {
  const unref: unknown = Reflect.get(Object(timer), "unref");
  if (typeof unref === "function") Reflect.apply(unref, timer, []);
}

/**
 * The first call starts immediately; each further call starts `intervalMs` after the end of the
 * previous one.
 */
export function keepAlive(
  health: () => Promise<unknown>,
  intervalMs: number,
  { signal, onFailure = () => undefined }: KeepAliveOptions,
): KeepAlive {
  if (!(intervalMs >= 100))
    throw new TypeError(`intervalMs: expected 100 or more, got ${intervalMs}`);
  let isStopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let underWay: Promise<void> = Promise.resolve();
  const call = async (): Promise<void> => {
    try {
      await health();
    } catch (error) {
      if (!isStopped) onFailure(error);
    }
    if (isStopped) return;
    timer = setTimeout(begin, intervalMs);
    release(timer);
  };
  const begin = (): void => {
    underWay = call();
  };
  const end = (): void => {
    isStopped = true;
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
  };
  signal?.addEventListener("abort", end, { once: true });
  if (!signal?.aborted) begin();
  return {
    stop: () => {
      end();
      return underWay;
    },
  };
}
