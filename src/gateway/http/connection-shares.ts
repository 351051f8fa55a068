// ConnectionShares: which connection ends if a server has too many.
//
// The caller with the most connections loses the one that has been idle for longest. One machine therefore
// cannot keep all others out.

interface SharedConnection {
  /** Group of addresses, as `callerOf` returns it. */
  readonly caller: string;
  /** Monotonic time in milliseconds; null: it is used, for example by a WebSocket. */
  readonly idleSinceMs: number | null;
}

/** Connections of a caller that are compared at a time. The next time, others are. */
const comparedMax = 16;

export class ConnectionShares<Connection extends SharedConnection> {
  readonly #connections = new Map<string, Set<Connection>>();
  /** Callers by the number of their connections. The last set has the callers with the most. */
  readonly #callers: Set<string>[] = [new Set()];

  add(connection: Connection): void {
    const { caller } = connection;
    const own = this.#connections.get(caller) ?? new Set();
    this.#connections.set(caller, own);
    this.#callers[own.size]?.delete(caller);
    own.add(connection);
    const peers = this.#callers[own.size] ?? new Set();
    this.#callers[own.size] = peers.add(caller);
  }

  delete(connection: Connection): void {
    const { caller } = connection;
    const own = this.#connections.get(caller);
    if (!own?.delete(connection)) return;
    this.#callers[own.size + 1]?.delete(caller);
    if (own.size > 0) this.#callers[own.size]?.add(caller);
    else this.#connections.delete(caller);
    while (this.#callers.length > 1 && this.#callers.at(-1)?.size === 0) this.#callers.pop();
  }

  /**
   * The connection to end, after `newest` was added: an idle one of the caller with the most connections.
   * It is `newest` if no caller has more than one, or if none of the compared ones is idle.
   */
  surplus(newest: Connection): Connection {
    const most = this.#callers.length - 1;
    const callers = this.#callers[most] ?? new Set();
    const [caller = ""] = callers.has(newest.caller) ? [newest.caller] : firstOf(callers, 1);
    const own = this.#connections.get(caller);
    if (most <= 1 || !own) return newest;
    let longest = newest;
    let longestMs = Number.POSITIVE_INFINITY;
    for (const connection of firstOf(own, comparedMax)) {
      own.delete(connection);
      own.add(connection);
      const { idleSinceMs } = connection;
      if (connection === newest || idleSinceMs === null || idleSinceMs >= longestMs) continue;
      longest = connection;
      longestMs = idleSinceMs;
    }
    return longest;
  }
}

function firstOf<Value>(values: ReadonlySet<Value>, count: number): Value[] {
  const first: Value[] = [];
  for (const value of values) {
    if (first.length === count) break;
    first.push(value);
  }
  return first;
}
