// Cuts a stream of packets into windows: what is permuted, and handed on, at once. Pure.
//
// Bounded by number and by time, so that a slow capture is not permuted over minutes.

import type { TimedPacket } from "./copies.ts";

export const windowPacketsMax = 1024;
export const windowNsMax = 200_000_000;

/** When the stream throws, what came before is still given as a window; then the error follows. */
export function* windowsOf(packets: Iterable<TimedPacket>): Generator<readonly TimedPacket[]> {
  let window: TimedPacket[] = [];
  let failure: { readonly error: unknown } | undefined;
  try {
    for (const packet of packets) {
      const first = window[0];
      const full = window.length >= windowPacketsMax;
      if (first && (full || packet.timeNs - first.timeNs > windowNsMax)) {
        yield window;
        window = [];
      }
      window.push(packet);
    }
  } catch (error) {
    failure = { error };
  }
  if (window.length > 0) yield window;
  if (failure) throw failure.error;
}
