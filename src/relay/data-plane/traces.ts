// Trace packets of block engines as the addon returns them (native/relay/trace_ring.h). Pure.

import type { SourceRow } from "./snapshot.ts";

/** Receive time, source, length, packet. */
const traceBytes = 128;
const tracesMax = 64;

export interface RelayTrace {
  /** Name of the source. */
  readonly source: string;
  /** Kernel receive time, wall clock. */
  readonly receivedNs: bigint;
  readonly packet: Uint8Array;
}

/**
 * The waiting packets. `drain` fills a buffer and returns the number of packets. It is called at most
 * `passesMax` times, because a flood may refill the rings meanwhile.
 */
export function drainTraces(
  drain: (into: Uint8Array) => number,
  sources: readonly Pick<SourceRow, "id" | "name">[],
  passesMax: number,
): RelayTrace[] {
  const bytes = new Uint8Array(tracesMax * traceBytes);
  const view = new DataView(bytes.buffer);
  const nameById = new Map(sources.map(({ id, name }) => [id, name]));
  const traces: RelayTrace[] = [];
  for (let pass = 0, count = tracesMax; pass < passesMax && count === tracesMax; pass++) {
    count = drain(bytes);
    for (let at = 0; at < count * traceBytes; at += traceBytes) {
      const source = nameById.get(view.getUint16(at + 8, true));
      if (source === undefined) continue; // removed meanwhile
      const begin = at + 12;
      const packet = bytes.slice(begin, begin + view.getUint16(at + 10, true));
      traces.push({ source, receivedNs: view.getBigUint64(at, true), packet });
    }
  }
  return traces;
}
