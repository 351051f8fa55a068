// Which stream bytes that quiche accepted are in sent packets. Pure.
//
// quiche does not report it. It sends the streams of a connection in their order, repeated bytes
// before new ones, so a stream is sent when as many stream bytes were sent as were accepted up to its
// end, plus those that were lost and are repeated. Every packet counts with the most stream bytes
// that it can carry; a sum above everything that was to send is reduced to it.

/**
 * Flags, packet number, authentication tag, and the smallest head of a stream frame. The connection id
 * of the leader may have no bytes.
 */
const overheadBytes = 1 + 1 + 16 + 2;

export class Emissions {
  #accepted = 0;
  #repeated = 0;
  #emitted = 0;

  /** quiche accepted more bytes. Returns their end, for `isEmitted`. */
  accept(bytes: number): number {
    this.#accepted += bytes;
    return this.#accepted;
  }

  emit(packetBytes: number): void {
    this.#emitted += Math.max(0, packetBytes - overheadBytes);
  }

  /** `bytes`: all stream bytes that were lost with packets since the start. Call it after `emit`. */
  repeat(bytes: number): void {
    this.#repeated = bytes;
    this.#emitted = Math.min(this.#emitted, this.#accepted + bytes);
  }

  isEmitted(end: number): boolean {
    return this.#emitted >= end + this.#repeated;
  }

  /** The bytes up to `end` arrived, so they were sent, whatever the sums say. */
  arrive(end: number): void {
    this.#emitted = Math.max(this.#emitted, end + this.#repeated);
  }

  /** The last stream, of `bytes`, ends now: its unsent bytes are never sent. */
  discard(bytes: number): void {
    const unsent = this.#accepted + this.#repeated - this.#emitted;
    this.#accepted -= Math.max(0, Math.min(bytes, unsent));
  }
}
