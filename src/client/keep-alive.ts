// Health calls that keep a connection warm: the service closes one that is silent for ten seconds.
//
// Called by client.ts. Does not keep a Node process alive by itself.

export interface KeepAliveOptions {
  readonly signal?: AbortSignal | undefined;
  /** Told of every health call that failed; the next one comes all the same. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
}

export interface KeepAlive {
  /** Idempotent; settles when the call under way has ended. */
  stop(): Promise<void>;
}

/** Node's timers hold the process until they are told not to; browsers' are numbers. */
function release(timer: unknown): void {
  const unref: unknown = Reflect.get(Object(timer), "unref");
  if (typeof unref === "function") Reflect.apply(unref, timer, []);
}

/** The first call leaves at once, each other one `intervalMs` after the one before has ended. */
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
