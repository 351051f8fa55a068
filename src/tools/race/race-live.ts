// Race of live feeds: opens the ports, records every arrival, and shows the current result.

import { type Clock, systemClock } from "../../core/clock.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import { recognisedBytesMax } from "../../shreds/destinations/ownership-proof.ts";
import { addressesOf, type FeedOption, type LeaderSource } from "../listen/feed-options.ts";
import { endOf, every, type Terminal } from "../terminal/terminal.ts";
import { ChallengeCounts, refusedOf } from "./challenge-counts.ts";
import { FeedRecorder } from "./feed-recorder.ts";
import { type RacePlan, type RaceResult, showRace } from "./race-display.ts";
import type { FeedFacts, RaceFacts } from "./race-report.ts";
import { RaceSession } from "./race-session.ts";
import { type ShredArrival, SlotArrivals } from "./slot-arrivals.ts";
import { SlotCollector } from "./slot-collector.ts";
import { TraceLags } from "./trace-lags.ts";

const drainMs = 20;
const refreshMs = 1000;
/** Maximum time to wait for a silent feed before slots are judged without it. */
export const graceNs = 10e9;

export interface LiveRaceOptions {
  readonly plan: RacePlan;
  readonly leaders: LeaderSource;
  readonly terminal: Terminal;
  readonly bufferBytes: number;
  /** Whether to answer ownership challenges. */
  readonly proves: boolean;
}

export async function raceLive(
  feeds: readonly FeedOption[],
  options: LiveRaceOptions,
  clock: Clock = systemClock,
): Promise<RaceResult> {
  const { plan, leaders, terminal, bufferBytes, proves } = options;
  const recorder = FeedRecorder.open({
    feeds,
    listen: addressesOf(feeds),
    shredVersion: plan.shredVersion,
    receiveBufferBytes: bufferBytes,
    answerChallenges: proves,
    recordPackets: !proves, // to count challenges
    onNote: (text) => terminal.note(text),
    ...(leaders.schedule && { schedule: leaders.schedule }),
  });
  try {
    leaders.follow((schedule) => recorder.publishLeaders(schedule));
    const running = new RunningRace(feeds, recorder, { ...options, clock });
    announce(feeds, recorder, options);
    return await runLive(running, { plan, terminal, clock });
  } finally {
    recorder.close();
  }
}

interface LiveRace {
  /** Takes what has arrived. */
  drain(): void;
  result(): RaceResult;
  finish(): RaceResult;
}

/** Shows the race until its end. `failed`: it cannot go on; then throws its reason. */
export async function runLive(
  race: LiveRace,
  options: Pick<LiveRaceOptions, "plan" | "terminal"> & {
    readonly clock: Clock;
    readonly failed?: AbortSignal;
  },
): Promise<RaceResult> {
  const { plan, terminal, clock, failed } = options;
  const timer = clock.every(drainMs, () => race.drain());
  const stopped = failed ? AbortSignal.any([terminal.stopped, failed]) : terminal.stopped;
  await every(refreshMs, endOf(stopped, plan.seconds), () => {
    showRace(race.result(), { json: plan.json, terminal });
    return true;
  });
  timer.cancel();
  terminal.endBlock();
  failed?.throwIfAborted();
  return race.finish();
}

function announce(
  feeds: readonly FeedOption[],
  recorder: FeedRecorder,
  { plan, leaders, terminal, bufferBytes }: LiveRaceOptions,
): void {
  const print = (text: string) => (plan.json ? terminal.note(text) : terminal.line(text));
  print(`comparing ${feeds.map((feed) => `${feed.name} on ${sourceOf(feed)}`).join(", ")}`);
  if (!leaders.schedule)
    print(
      terminal.paint.note(
        "NOT VERIFIED: no leader schedule; a feed can win with forgeries (--leaders FILE, --rpc URL)",
      ),
    );
  // The kernel reports twice the requested size, because it includes its own bookkeeping.
  const granted = recorder.grantedReceiveBufferBytes / 2;
  if (granted < bufferBytes)
    print(
      `receive buffers: got ${Math.round(granted / 1024)} KiB, requested ${Math.round(bufferBytes / 1024)} KiB; net.core.rmem_max is too low, see shredway doctor`,
    );
}

export function sourceOf({ listen, source, group, port }: FeedOption): string {
  if (group) return `group ${group.address} on ${group.interface} to port ${port}`;
  return `${listen.join(" and ")}${source === undefined ? "" : ` from ${source}`}`;
}

class RunningRace {
  readonly #session: RaceSession<ShredArrival>;
  readonly #feeds: readonly FeedOption[];
  readonly #recorder: FeedRecorder;
  readonly #traces = new TraceLags();
  readonly #challenges: ChallengeCounts;
  readonly #options: LiveRaceOptions & { readonly clock: Clock };

  constructor(
    feeds: readonly FeedOption[],
    recorder: FeedRecorder,
    options: LiveRaceOptions & { readonly clock: Clock },
  ) {
    this.#feeds = feeds;
    this.#recorder = recorder;
    this.#options = options;
    this.#challenges = new ChallengeCounts(feeds);
    const { settleNs, table } = options.plan;
    this.#session = new RaceSession(
      {
        feeds: feeds.length,
        settleNs,
        graceNs,
        ...(table && { onScored: (slot) => slot instanceof SlotArrivals && table.add(slot) }),
      },
      (collector) => new SlotCollector(collector),
    );
  }

  drain(): void {
    const now = this.#now();
    this.#takePackets();
    this.#session.advance(now);
  }

  result(): RaceResult {
    this.drain();
    return { session: this.#session, facts: this.#facts() };
  }

  finish(): RaceResult {
    const now = this.#now();
    this.#takePackets();
    this.#session.finish(now);
    return { session: this.#session, facts: this.#facts() };
  }

  #takePackets(): void {
    this.#recorder.drain((arrival) => this.#session.note(arrival));
    for (const trace of this.#recorder.drainTraces()) this.#traces.add(trace);
    // Challenges explain a feed without shreds. Once every feed has some, this costs nothing more.
    if (this.#session.collector.counts.some(({ arrivals }) => arrivals === 0))
      this.#recorder.drainPackets((packet) => this.#challenges.note(packet), recognisedBytesMax);
  }

  #now(): number {
    return Number(this.#options.clock.nowNs() - this.#recorder.baseNs);
  }

  #facts(): RaceFacts {
    const snapshot = this.#recorder.snapshot();
    const drops = this.#recorder.kernelDrops();
    const unknownSenders = snapshot.verdicts.unknown_source;
    const { groupProblem } = this.#recorder;
    return {
      seconds: this.#now() / 1e9,
      verified: this.#options.leaders.schedule !== undefined,
      settleNs: this.#options.plan.settleNs,
      unit: "shred",
      resolutionNs: 1,
      lost: this.#recorder.losses().arrivals,
      feeds: this.#feeds.map((feed) => this.#feedFacts(feed, snapshot, drops)),
      notes: [
        ...(unknownSenders > 0n
          ? [`Received ${unknownSenders} packets from senders outside all feeds (unknown_source).`]
          : []),
        ...(groupProblem === null ? [] : [`Multicast: ${groupProblem}.`]),
      ],
    };
  }

  #feedFacts(feed: FeedOption, { sources }: RelaySnapshot, drops: readonly number[]): FeedFacts {
    const source = sources.find(({ name }) => name === feed.name);
    const dropped = this.#recorder.addresses.map((address, i) =>
      address.endsWith(`:${feed.port}`) ? (drops[i] ?? 0) : 0,
    );
    return {
      name: feed.name,
      from: sourceOf(feed),
      received: Number(source?.received ?? 0n),
      refused: refusedOf(source?.verdicts, this.#challenges.of(feed.name)),
      kernelDrops: dropped.reduce((total, count) => total + count, 0),
      traces: this.#traces.of(feed.name),
    };
  }
}
