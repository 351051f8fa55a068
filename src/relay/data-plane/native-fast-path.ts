// The fast path of the addon, as JavaScript sees it: native/addon/fast_path_handle.h and
// fast_path_handle_simulated.cc.
//
// Only types.

export interface NativeFastPathCounts {
  /** Requests and offers that were sent on at least one route. */
  readonly taken: number;
  /** Transactions that `sendNow` sent on at least one route. */
  readonly direct: number;
  /** Requests that do not repeat an accepted one. */
  readonly different: number;
  /** Transactions that the gateway has to refuse, or to look at. */
  readonly rejected: number;
  /** Requests that were claimed before their check had ended. */
  readonly late: number;
  readonly connections: number;
  readonly loans: number;
  /** Sent, and not claimed yet. */
  readonly unclaimed: number;
}

/** native/addon/fast_path_handle.h. Times: CLOCK_MONOTONIC in nanoseconds. */
export interface NativeFastPath {
  /** Addresses of 32 bytes each; ranges of 64, first and last key. */
  setRules(tipAddresses: Uint8Array, frontKeyRanges: Uint8Array, minimumTip: bigint): void;
  pause(): void;
  allow(key: number, calls: number): void;
  note(signature: string): void;
  /** Fills a record, as `claim`; returns the number of sends. */
  sendNow(transaction: Uint8Array, into: Uint8Array): number;
  /** Number of the connection; -1: not possible. */
  watch(descriptor: number): number;
  /** False: the request has another form. */
  learn(
    connection: number,
    head: Uint8Array,
    body: Uint8Array,
    isBase58: boolean,
    key: number,
    untilNs: bigint,
  ): boolean;
  forget(connection: number): void;
  forgetAll(): void;
  /** `received`: bytes that were read, modulo 2^32. */
  arm(connection: number, received: number): void;
  /**
   * Fills a record (src/gateway/fast-path/taken-record.ts) of the request that begins at this byte, modulo 2^32.
   * Returns the number of sends; 0: none, -1: none, and the request has another form, -2: the sends belong to a
   * different request.
   */
  claim(connection: number, begin: number, into: Uint8Array): number;
  isTaken(connection: number, begin: number): boolean;
  unwatch(connection: number): void;
  /** The descriptor for the QUIC process, which the caller closes; -1: not possible. */
  openOffers(): number;
  watchOffers(connection: number, key: number, untilNs: bigint): void;
  forgetOffers(connection: number): void;
  /**
   * Fills a record, as `claim`, for the offer with this number; returns the number of sends; 0: none, -1:
   * another transaction was sent under this number.
   */
  claimOffer(sequence: number, transaction: Uint8Array, into: Uint8Array): number;
  isOfferTaken(sequence: number): boolean;
  /** Closes the channel. Fills a record of an offer that was not claimed, one for each call; 0: none is left. */
  endOffers(into: Uint8Array): number;
  /** `texts`: head, before the id, before the transaction, after it. */
  setRoute(route: number, texts: readonly string[], minimumTip: bigint, bytesMax: number): void;
  /** Number of the loan; -1: not possible. */
  lend(route: number, descriptor: number, untilNs: bigint): number;
  lendAgain(loan: number, untilNs: bigint): void;
  /** False: it was used. */
  reclaim(loan: number): boolean;
  release(loan: number): void;
  counts(): NativeFastPathCounts;
  close(): void;
}

/** A fast path of a simulation, with connections in memory. Times: of the simulation. */
export interface NativeSimulatedFastPath extends NativeFastPath {
  /** Bytes have arrived at a connection. The first call opens it; `bytes` may be empty. */
  arrive(descriptor: number, bytes: Uint8Array): void;
  /** JavaScript has read so many of them. */
  markRead(descriptor: number, bytes: number): void;
  /** The connection has ended. */
  endStream(descriptor: number): void;
  /** Time of the calls of `sendNow` that follow. */
  setTime(nowNs: bigint): void;
  /** Looks at a request. False: no request waits, so that nothing is to be concluded. */
  look(nowNs: bigint): boolean;
  /** Sends the request that it looked at, or leaves it to JavaScript. */
  conclude(nowNs: bigint): void;
  /** The oldest write and its descriptor; undefined: none is left. */
  takeWritten(): readonly [number, Uint8Array] | undefined;
}
