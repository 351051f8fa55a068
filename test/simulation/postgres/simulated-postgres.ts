// The simulated PostgreSQL server of a run: the stand-in, with simulated times and failures.
//
// It survives the service's processes. What it has committed stays, also if nobody learns of it.

import type { SeededRandom } from "../../../src/core/seeded-random.ts";
import { loadPostgresClient } from "../../../src/platform/store/postgres/connection.ts";
import { PostgresEngine } from "../../support/postgres/stand-in/engine.ts";
import type { RunRequest } from "../../support/postgres/stand-in/messages.ts";
import {
  type StandInFailure,
  StandInServer,
  type StandInTrouble,
} from "../../support/postgres/stand-in/server.ts";
import {
  isCommit,
  type StandInSession,
  terminated,
} from "../../support/postgres/stand-in/session.ts";
import type { SimulatedDisk } from "../simulated-disk.ts";
import { ProcessClock, type WallTime } from "../simulated-time.ts";
import type { BreakPoint, PostgresAction } from "./postgres-scenario.ts";
import { PostgresStream } from "./postgres-stream.ts";

const oneWayNs = 60_000;
const oneWayRangeNs = 200_000;
/** A commit waits so long for the disk. */
const commitMs = 0.5;
/** Recovery after a crash of the server. */
const recoveryMs = 400;
/** It refuses sessions so long before it works again. */
const startingMs = 150;
/** Calls wait so long for the server. */
const bridgedMs = 5_000;
/** An armed break that finds no commit happens then. */
const armedMs = 2_000;

const starting: StandInFailure = {
  code: "57P03",
  message: "the database system is starting up",
};
const full: StandInTrouble = {
  kind: "refused",
  code: "53100",
  message: "could not extend file: No space left on device",
};

/** The text of the statement, and the command tag of its answer; "READ COMMITTED" begins every transaction. */
const commit = "COMMIT\0";
const writes = /^\s*(INSERT|UPDATE|DELETE|CREATE|ALTER)\b/i;

/** The database of every run; runs in one process follow each other. */
const place = "run";
/** Ends the names of connections, and is drawn from the system. */
const processId = / ?[0-9a-f]{16}$/;

type Break = Pick<Extract<PostgresAction, { kind: "connection breaks" }>, "point" | "noticedMs">;

interface SimulatedPostgresOptions {
  readonly wall: WallTime;
  readonly disk: SimulatedDisk;
  readonly random: SeededRandom;
  readonly note: (text: string) => void;
}

export class SimulatedPostgres {
  readonly url: string;
  readonly #options: SimulatedPostgresOptions;
  readonly #engine: PostgresEngine;
  readonly #server: StandInServer;
  /** Open connections. */
  readonly #streams = new Set<PostgresStream>();
  #stalledUntilNs = 0;
  #isDown = false;
  #isStarting = false;
  #armed: Break | null = null;
  #silentUntilMs = Number.NEGATIVE_INFINITY;
  /** When something happened that may refuse a start. */
  #disturbedMs = -1;

  /** Settles when engine and client library are loaded; then nothing of it waits in real time. */
  static async open(options: SimulatedPostgresOptions): Promise<SimulatedPostgres> {
    await loadPostgresClient();
    return new SimulatedPostgres(options, await PostgresEngine.open());
  }

  private constructor(options: SimulatedPostgresOptions, engine: PostgresEngine) {
    this.#options = options;
    this.#engine = engine;
    engine.nowMs = () => options.wall.nowMs();
    engine.createPlace(place);
    this.url = `postgres://shredway@postgres.test:5432/${place}`;
    this.#server = new StandInServer({
      engine,
      clock: new ProcessClock(options.wall),
      conditions: {
        refusal: () => (this.#isStarting ? starting : null),
        delayMs: (request, session) => this.#delayMs(request, session),
        trouble: (request) => this.#trouble(request),
        ended: () => this.#goDown(recoveryMs),
      },
    });
  }

  /** A connection of a process. */
  connect(): PostgresStream {
    const { time } = this.#options.wall;
    return new PostgresStream(time, {
      arrivalNs: () => this.#arrivalNs(),
      accept: (stream) => this.#accept(stream),
      maySend: (stream, bytes) => this.#maySend(stream, bytes),
    });
  }

  handle(event: PostgresAction): void {
    this.#disturbedMs = this.#options.wall.time.nowMs;
    switch (event.kind) {
      case "connection breaks":
        this.#arm(event);
        return;
      case "postgres restarts":
        if (this.#isDown) return;
        this.#server.end(event.isOrderly ? terminated : null);
        this.#goDown(event.downMs);
        return;
      case "postgres stalls": {
        const { nowNs } = this.#options.wall.time;
        this.#expectSilence(event.forMs);
        this.#stalledUntilNs = Math.max(this.#stalledUntilNs, nowNs + event.forMs * 1e6);
        this.#disturbedMs = this.#stalledUntilNs / 1e6;
      }
    }
  }

  /** Whether a start that began then may fail. */
  wasDisturbedSince(ms: number): boolean {
    return this.#isDown || this.#isStarting || this.#disturbedMs >= ms;
  }

  /** The run is over. */
  end(): void {
    for (const stream of this.#streams) stream.kill();
    this.#server.end(null);
    this.#engine.removePlace(place);
    this.#engine.nowMs = null;
  }

  /** The service bridges some seconds without a server. Calls may fail if silences follow each other. */
  #expectSilence(forMs: number): void {
    const { nowMs } = this.#options.wall.time;
    if (nowMs < this.#silentUntilMs + bridgedMs) this.#options.disk.interrupt(forMs);
    this.#silentUntilMs = Math.max(this.#silentUntilMs, nowMs + forMs);
  }

  #arm(armed: Break): void {
    const { time } = this.#options.wall;
    this.#armed = armed;
    if (armed.point === "now") this.#break();
    else
      time.at(time.nowNs + armedMs * 1e6, () => {
        if (this.#armed === armed) this.#break();
      });
  }

  /** Some connections break, at least one. */
  #break(): void {
    const { random } = this.#options;
    const streams = random.shuffled([...this.#streams]);
    const [first, ...others] = streams;
    const armed = this.#armed;
    for (const stream of first ? [first, ...others.filter(() => random.happens(0.4))] : []) {
      this.#armed = armed;
      this.#cut(stream);
    }
    this.#armed = null;
  }

  #cut(stream: PostgresStream): void {
    const armed = this.#armed;
    if (!armed) return;
    this.#armed = null;
    this.#disturbedMs = this.#options.wall.time.nowMs;
    const name = stream.session?.name.replace(processId, "");
    this.#options.note(`the connection "${name}" breaks: ${armed.point}`);
    stream.cut(armed.noticedMs);
  }

  #goDown(downMs: number): void {
    const { wall, note } = this.#options;
    const { time } = wall;
    note("postgres is down");
    this.#expectSilence(downMs + startingMs);
    this.#isDown = true;
    time.at(time.nowNs + downMs * 1e6, () => {
      this.#isDown = false;
      this.#isStarting = true;
    });
    time.at(time.nowNs + (downMs + startingMs) * 1e6, () => {
      this.#isStarting = false;
      this.#disturbedMs = time.nowMs;
      note("postgres runs");
    });
  }

  #arrivalNs(): number {
    const { wall, random } = this.#options;
    const delayNs = oneWayNs + random.below(oneWayRangeNs);
    return Math.max(wall.time.nowNs, this.#stalledUntilNs) + delayNs;
  }

  #accept(stream: PostgresStream): StandInSession | null {
    if (this.#isDown) return null;
    this.#streams.add(stream);
    return this.#server.accept({
      send: (bytes) => {
        if (this.#isArmedFor("commit is done") && bytes.includes(commit)) this.#cut(stream);
        else stream.answer(bytes);
      },
      close: () => {
        this.#streams.delete(stream);
        stream.answerEnd();
      },
    });
  }

  #maySend(stream: PostgresStream, bytes: Buffer): boolean {
    if (!this.#isArmedFor("commit is sent") || !bytes.includes(commit)) return true;
    this.#cut(stream);
    return false;
  }

  #isArmedFor(point: BreakPoint): boolean {
    return this.#armed?.point === point;
  }

  #delayMs({ sql }: RunRequest, session: StandInSession): number {
    if (!isCommit(sql)) return 0;
    if (this.#isArmedFor("commit is under way"))
      for (const stream of this.#streams) if (stream.session === session) this.#cut(stream);
    return session.isSynchronous ? commitMs + this.#options.disk.delayNs / 1e6 : 0;
  }

  #trouble({ sql }: RunRequest): StandInTrouble | null {
    const isEnd = isCommit(sql);
    if (!isEnd && !writes.test(sql)) return null;
    const { disk, random } = this.#options;
    const failure = disk.drawFailure();
    if (isEnd) {
      // The server ends if it cannot write its log. A commit that was not synchronized may be found again.
      if (failure === null || failure === "pages") return null;
      return { kind: "ends", isKept: failure === "sync" && random.happens(0.5) };
    }
    return failure === "full" || failure === "pages" ? full : null;
  }
}
