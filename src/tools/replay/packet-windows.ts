// Windows: splits a stream of packets into the units that replay permutes and sends. Pure.
//
// A window is limited in number and time, so that packets of a slow capture stay close to their
// time.

import type { TimedPacket } from "./packet-copies.ts";

export const windowPacketsMax = 1024;
export const windowNsMax = 200_000_000;

/** If the stream throws, yields the earlier packets as a window and then throws. */
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
