// Race of streams, with each other and with feeds of shreds: compares transactions.
//
// The native deshredder decodes each feed, in a relay of its own, so that no feed helps another one. A time is that
// at which this program has the transaction, for feeds and streams alike.

import { encodeBase58 } from "../../core/base58.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { LeaderSchedule } from "../../relay/leaders/schedule.ts";
import type { FeedOption } from "../listen/feed-options.ts";
import { endText, StreamSession } from "../stream/stream-session.ts";
import type { StreamTarget } from "../stream/stream-target.ts";
import { refusedOf } from "./challenge-counts.ts";
import { FeedRecorder } from "./feed-recorder.ts";
import type { RaceResult } from "./race-display.ts";
import { graceNs, type LiveRaceOptions, runLive, sourceOf } from "./race-live.ts";
import type { FeedFacts } from "./race-report.ts";
import { RaceSession } from "./race-session.ts";
import { type TransactionArrival, TransactionCollector } from "./transaction-collector.ts";

/** The clocks of programs on one machine agree, but an event loop reads several messages at once. */
const resolutionNs = 1000;

export interface RaceStream {
  readonly name: string;
  readonly target: StreamTarget;
}

/** A participant: a feed of shreds, or a stream. */
interface Participant {
  facts(): FeedFacts;
  readonly notes: readonly string[];
  /** Transactions that were received but not recorded. */
  readonly lost: number;
  close(): void;
}

/** Where a participant reports its transactions. */
type Report = (slot: bigint, signature: string) => void;

/** Throws ShredwayError, among others if the first connection to a stream fails. */
export async function raceStreams(
  feeds: readonly FeedOption[],
  streams: readonly RaceStream[],
  options: LiveRaceOptions,
  clock: Clock = systemClock,
): Promise<RaceResult> {
  const { plan, terminal } = options;
  const names = [...feeds, ...streams].map(({ name }) => name);
  const print = (text: string) => (plan.json ? terminal.note(text) : terminal.line(text));
  print(`comparing the transactions of ${names.join(", ")}`);
  const failed = new AbortController();
  const race = new StreamRace(names.length, options, clock);
  try {
    const decoded = feeds.map((feed) =>
      race.join((report) => new DecodedFeed(feed, options, report)),
    );
    options.leaders.follow((schedule) => {
      for (const feed of decoded) feed.publishLeaders(schedule);
    });
    for (const stream of streams) {
      race.join((report) => new RunningStream(stream, { options, clock, report, failed }));
    }
    return await runLive(race, { plan, terminal, clock, failed: failed.signal });
  } finally {
    race.close();
  }
}

class StreamRace {
  readonly #session: RaceSession<TransactionArrival>;
  readonly #participants: Participant[] = [];
  readonly #options: LiveRaceOptions;
  readonly #clock: Clock;
  readonly #beganNs: bigint;

  constructor(feeds: number, options: LiveRaceOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#beganNs = clock.monotonicNs();
    const { settleNs } = options.plan;
    this.#session = new RaceSession<TransactionArrival>(
      { feeds, settleNs, graceNs },
      (collector) => new TransactionCollector(collector),
    );
  }

  join<T extends Participant>(open: (report: Report) => T): T {
    const feed = this.#participants.length;
    const report: Report = (slot, signature) =>
      this.#session.note({ feed, slot: Number(slot), signature, timeNs: this.#now() });
    const participant = open(report);
    this.#participants.push(participant);
    return participant;
  }

  drain(): void {
    this.#session.advance(this.#now());
  }

  result(): RaceResult {
    this.drain();
    return this.#result();
  }

  finish(): RaceResult {
    this.#session.finish(this.#now());
    return this.#result();
  }

  close(): void {
    for (const participant of this.#participants) participant.close();
  }

  #now(): number {
    return Number(this.#clock.monotonicNs() - this.#beganNs);
  }

  #result(): RaceResult {
    const { settleNs } = this.#options.plan;
    const facts = {
      unit: "transaction" as const,
      seconds: this.#now() / 1e9,
      // Nothing in a stream is signed by the leader.
      verified: false,
      settleNs,
      resolutionNs,
      lost: this.#participants.reduce((sum, { lost }) => sum + lost, 0),
      feeds: this.#participants.map((one) => one.facts()),
      notes: this.#participants.flatMap(({ notes }) => notes),
    };
    return { session: this.#session, facts };
  }
}

class DecodedFeed implements Participant {
  readonly #feed: FeedOption;
  readonly #recorder: FeedRecorder;

  constructor(
    feed: FeedOption,
    { plan, leaders, terminal, bufferBytes, proves }: LiveRaceOptions,
    report: Report,
  ) {
    this.#feed = feed;
    this.#recorder = FeedRecorder.open({
      feeds: [feed],
      listen: feed.listen,
      shredVersion: plan.shredVersion,
      receiveBufferBytes: bufferBytes,
      answerChallenges: proves,
      onNote: (text) => terminal.note(text),
      onTransaction: (slot, signature) => report(slot, encodeBase58(signature)),
      ...(leaders.schedule && { schedule: leaders.schedule }),
    });
  }

  publishLeaders(schedule: LeaderSchedule): void {
    this.#recorder.publishLeaders(schedule);
  }

  get notes(): readonly string[] {
    const { groupProblem } = this.#recorder;
    return groupProblem === null ? [] : [`Multicast: ${groupProblem}.`];
  }

  get lost(): number {
    return this.#recorder.transactionsLost;
  }

  facts(): FeedFacts {
    const [source] = this.#recorder.snapshot().sources;
    return {
      name: this.#feed.name,
      from: sourceOf(this.#feed),
      received: Number(source?.received ?? 0n),
      refused: refusedOf(source?.verdicts),
      kernelDrops: this.#recorder.kernelDrops().reduce((total, count) => total + count, 0),
      traces: [],
    };
  }

  close(): void {
    this.#recorder.close();
  }
}

interface RunningStreamOptions {
  readonly options: LiveRaceOptions;
  readonly clock: Clock;
  readonly report: Report;
  readonly failed: AbortController;
}

class RunningStream implements Participant {
  readonly lost = 0;
  readonly #stream: RaceStream;
  readonly #session: StreamSession;
  #received = 0;
  #end = "";

  constructor(stream: RaceStream, { options, clock, report, failed }: RunningStreamOptions) {
    this.#stream = stream;
    const { name, target } = stream;
    this.#session = new StreamSession({
      target,
      clock,
      random: Math.random,
      onEvent: (event) => {
        if (event.kind !== "transaction") return;
        this.#received++;
        report(event.slot, event.signature);
      },
      onNote: (text) => options.terminal.note(`${name}: ${text}`),
      onEnd: (end) => {
        this.#end = endText(end);
        if (this.#received > 0) return;
        failed.abort(new ShredwayError("stream_failed", `--stream ${name}: ${this.#end}`));
      },
    });
  }

  get notes(): readonly string[] {
    const { name } = this.#stream;
    const { count, totalMs } = this.#session.interruptions;
    return [
      ...(count > 0
        ? [`${name} lost its connection ${count} times, for ${(totalMs / 1000).toFixed(1)} s.`]
        : []),
      ...(this.#end === "" ? [] : [`${name} ended: ${this.#end}.`]),
    ];
  }

  facts(): FeedFacts {
    const { name, target } = this.#stream;
    const { unreadable } = this.#session;
    return {
      name,
      from: `${target.dialect} at ${target.url}`,
      received: this.#received,
      refused: unreadable === 0 ? {} : { unreadable },
      kernelDrops: null,
      traces: [],
    };
  }

  close(): void {
    this.#session.close();
  }
}
