// Race of recorded feeds: merges captures by their own times and judges them like a live race.
//
// Exact and deterministic. The race ends at the time of the first capture's last packet, because one feed
// could not win later.

import { systemClock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import { type OpenCapture, openCapture } from "../../relay/captures/read-capture.ts";
import { parseShred, type Shred } from "../../relay/data-plane/parse-shred.ts";
import { isChallenge } from "../../shreds/destinations/ownership-proof.ts";
import type { LeaderSource } from "../listen/feed-options.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { challengeReason } from "./challenge-counts.ts";
import { LeaderCheck } from "./leader-check.ts";
import type { RacePlan, RaceResult } from "./race-display.ts";
import type { FeedFacts } from "./race-report.ts";
import { RaceSession } from "./race-session.ts";
import { blankArrival, type ShredArrival, SlotArrivals } from "./slot-arrivals.ts";
import { SlotCollector } from "./slot-collector.ts";

export interface CaptureFeed {
  readonly name: string;
  readonly file: string;
}

interface CaptureRaceOptions {
  readonly plan: RacePlan;
  readonly leaders: LeaderSource;
  readonly terminal: Terminal;
}

/** Number of packets between two checks for Ctrl-C. */
const packetsPerSlice = 8192;
const graceNs = 10e9;

/** Reads a capture one packet ahead. */
class Reader {
  readonly feed: CaptureFeed;
  received = 0;
  refused: Record<string, number> = {};
  /** Time of the next packet; undefined at the end of the capture. */
  nextNs: bigint | undefined;
  packet: Uint8Array = new Uint8Array();
  isMicroseconds = true;
  readonly #capture: OpenCapture;

  constructor(feed: CaptureFeed) {
    this.feed = feed;
    this.#capture = openCapture(feed.file);
    this.advance();
    if (this.nextNs === undefined) {
      this.close();
      throw new ShredwayError(
        "capture_invalid",
        `no UDP packets in ${feed.file}; expected a capture of UDP packets`,
      );
    }
  }

  advance(): void {
    const next = this.#capture.packets.next();
    this.nextNs = undefined;
    if (next.done === true) return;
    const { packet, timestampNs } = next.value;
    if (timestampNs === null) {
      this.close();
      const message = `${this.feed.file} has no packet times; expected a capture with times (pcap, pcapng)`;
      throw new ShredwayError("capture_invalid", message);
    }
    if (timestampNs % 1000n !== 0n) this.isMicroseconds = false;
    this.nextNs = timestampNs;
    this.packet = packet;
  }

  refuse(reason: string): void {
    this.refused[reason] = (this.refused[reason] ?? 0) + 1;
  }

  close(): void {
    this.#capture.close();
  }
}

export async function raceCaptures(
  feeds: readonly CaptureFeed[],
  options: CaptureRaceOptions,
): Promise<RaceResult> {
  const readers: Reader[] = [];
  try {
    for (const feed of feeds) readers.push(new Reader(feed));
    return await merge(readers, options);
  } finally {
    for (const reader of readers) reader.close();
  }
}

async function merge(readers: readonly Reader[], options: CaptureRaceOptions): Promise<RaceResult> {
  const { plan, leaders, terminal } = options;
  const baseNs = readers.reduce(
    (least, { nextNs = 0n }) => (nextNs < least ? nextNs : least),
    readers[0]?.nextNs ?? 0n,
  );
  const { table } = plan;
  const session = new RaceSession(
    {
      feeds: readers.length,
      settleNs: plan.settleNs,
      graceNs,
      ...(table && { onScored: (slot) => slot instanceof SlotArrivals && table.add(slot) }),
    },
    (collector) => new SlotCollector(collector),
  );
  const scorer = new SlotScorer(session, plan, leaders);
  let nowNs = 0;
  let endNs: bigint | undefined;
  for (let count = 0; !terminal.stopped.aborted; count++) {
    const number = earliest(readers);
    const reader = readers[number];
    const packetNs = reader?.nextNs;
    if (!reader || packetNs === undefined || (endNs !== undefined && packetNs > endNs)) break;
    nowNs = Number(packetNs - baseNs);
    scorer.note(number, reader, nowNs);
    session.advance(nowNs);
    reader.advance();
    // Packets of the other captures at the same time still count.
    if (reader.nextNs === undefined) endNs ??= packetNs;
    if (count % packetsPerSlice === packetsPerSlice - 1) {
      terminal.progress(`${Math.round(nowNs / 1e9)} s of the captures`);
      await systemClock.sleep(0);
    }
  }
  terminal.clearProgress();
  session.finish(nowNs);
  return { session, facts: factsOf(readers, nowNs, options) };
}

/** Returns the number of the reader with the earliest next packet. */
function earliest(readers: readonly Reader[]): number {
  let best = -1;
  let bestNs: bigint | undefined;
  for (const [number, { nextNs }] of readers.entries()) {
    if (nextNs === undefined || (bestNs !== undefined && nextNs >= bestNs)) continue;
    best = number;
    bestNs = nextNs;
  }
  return best;
}

function factsOf(
  readers: readonly Reader[],
  nowNs: number,
  { plan, leaders }: CaptureRaceOptions,
): RaceResult["facts"] {
  const continuing = readers
    .filter(({ nextNs }) => nextNs !== undefined)
    .map(({ feed }) => feed.name);
  const ended = readers.find(({ nextNs }) => nextNs === undefined)?.feed.name;
  return {
    seconds: nowNs / 1e9,
    verified: leaders.schedule !== undefined,
    settleNs: plan.settleNs,
    unit: "shred",
    resolutionNs: readers.some(({ isMicroseconds }) => isMicroseconds) ? 1000 : 1,
    lost: 0,
    feeds: readers.map(feedFacts),
    notes:
      ended !== undefined && continuing.length > 0
        ? [`The capture of ${ended} ends first; ${continuing.join(", ")} continued.`]
        : [],
  };
}

function feedFacts({ feed, received, refused }: Reader): FeedFacts {
  const { name, file } = feed;
  return { name, from: file, received, refused, kernelDrops: null, traces: [] };
}

/** Converts packets to arrivals; refusals have the relay's names. */
class SlotScorer {
  readonly #session: RaceSession<ShredArrival>;
  readonly #version: number;
  readonly #check: LeaderCheck | undefined;
  readonly #arrival = blankArrival();

  constructor(
    session: RaceSession<ShredArrival>,
    { shredVersion }: RacePlan,
    { schedule }: LeaderSource,
  ) {
    this.#session = session;
    this.#version = shredVersion;
    this.#check = schedule && new LeaderCheck(schedule);
  }

  note(feed: number, reader: Reader, timeNs: number): void {
    reader.received++;
    const parsed = parseShred(reader.packet);
    if (!parsed.ok) {
      reader.refuse(isChallenge(reader.packet) ? challengeReason : parsed.reason);
      return;
    }
    const { shred } = parsed;
    const refusal = this.#refusalOf(shred);
    if (refusal !== undefined) {
      reader.refuse(refusal);
      return;
    }
    const arrival = this.#arrival;
    arrival.feed = feed;
    arrival.timeNs = timeNs;
    arrival.slot = Number(shred.slot);
    arrival.fecSetIndex = shred.fecSetIndex;
    arrival.index = shred.index;
    arrival.isCode = shred.type === "code";
    arrival.lastInSlot = shred.type === "data" && shred.lastInSlot;
    const [a = 0, b = 0, c = 0, d = 0] = shred.signature;
    arrival.signature = (a | (b << 8) | (c << 16) | (d << 24)) >>> 0;
    this.#session.note(arrival);
  }

  #refusalOf(shred: Shred): string | undefined {
    if (this.#version !== 0 && shred.version !== this.#version) return "wrong_version";
    return this.#check?.refusalOf(shred);
  }
}
