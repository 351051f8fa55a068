// One-way delays from trace packets of block engines, by source and region.
//
// relay-service.ts drains the packets once a second; /metrics shows the delays. The delay contains the
// difference of the two clocks. Nobody signs trace packets, so they only affect these statistics, and the
// number of regions of a source is bounded.

import type { Clock, Timer } from "../../core/clock.ts";
import { DurationHistogram, type HistogramValue } from "../../core/duration-histogram.ts";
import { MessageReader, ProtobufError } from "../../core/grpc/protobuf.ts";
import type { RelayTrace } from "../data-plane/traces.ts";

interface RegionDelay {
  readonly source: string;
  readonly region: string;
  /** Seconds; negative if this machine's clock is behind. */
  readonly lastSeconds: number;
  readonly histogram: HistogramValue;
}

const drainMs = 1000;
/** Per source. */
export const regionsMax = 32;
/** Larger differences are not delays, but a wrong clock or a forged packet. */
const delaySecondsMax = 3600;
const delayBounds = [
  0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 5.0,
] as const;

/** Delays of one source by region. */
type RegionDelays = Map<string, { lastSeconds: number; readonly histogram: DurationHistogram }>;

/** One-way delay of a packet and its region; null: another content than expected, or no delay. */
export function traceDelayOf({
  receivedNs,
  packet,
}: RelayTrace): { region: string; delayNs: number } | null {
  const decoded = decodeTrace(packet);
  if (!decoded) return null;
  const delayNs = Number(receivedNs - decoded.createdNs);
  return Math.abs(delayNs) > delaySecondsMax * 1e9 ? null : { region: decoded.region, delayNs };
}

/** Time of the packet's creation and its region; null: another content than expected. */
function decodeTrace(packet: Uint8Array): { region: string; createdNs: bigint } | null {
  try {
    const reader = new MessageReader(packet);
    const created = reader.message(2);
    if (!created) return null;
    const createdNs = BigInt.asIntN(64, created.uint(1)) * 1_000_000_000n + created.uint(2);
    return { region: reader.string(1), createdNs };
  } catch (error) {
    if (error instanceof ProtobufError) return null;
    throw error;
  }
}

export class TraceDelays {
  readonly #drain: () => readonly RelayTrace[];
  readonly #timer: Timer;
  /** Keys are the names of sources. */
  readonly #sources = new Map<string, RegionDelays>();

  constructor(drain: () => readonly RelayTrace[], clock: Clock) {
    this.#drain = drain;
    this.#timer = clock.every(drainMs, () => this.update());
  }

  update(): void {
    for (const trace of this.#drain()) this.#add(trace);
  }

  delays(): RegionDelay[] {
    return [...this.#sources].flatMap(([source, regions]) =>
      [...regions].map(([region, { lastSeconds, histogram }]) => ({
        source,
        region,
        lastSeconds,
        histogram: histogram.value(),
      })),
    );
  }

  /** Forgets the delays of all other sources. */
  keepSources(names: readonly string[]): void {
    for (const name of this.#sources.keys()) if (!names.includes(name)) this.#sources.delete(name);
  }

  close(): void {
    this.#timer.cancel();
  }

  #add(trace: RelayTrace): void {
    const found = traceDelayOf(trace);
    if (!found) return;
    const { source } = trace;
    const { region } = found;
    const seconds = found.delayNs / 1e9;
    const regions: RegionDelays = this.#sources.get(source) ?? new Map();
    this.#sources.set(source, regions);
    let delay = regions.get(region);
    if (!delay) {
      if (regions.size >= regionsMax) return;
      delay = { lastSeconds: seconds, histogram: new DurationHistogram(delayBounds) };
      regions.set(region, delay);
    }
    delay.lastSeconds = seconds;
    delay.histogram.add(seconds);
  }
}
