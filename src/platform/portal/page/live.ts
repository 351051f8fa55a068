// The live feed: one WebSocket, what it brought last, and who is told of it.
//
// Opened by the shell for as long as a session lasts. Whatever comes, the page changes once a second:
// messages of a second are shown together in one beat, and not at all while nobody looks. A feed that
// breaks is opened again by itself, each time after the service said that the session still holds.

import type { LiveTopics } from "../types.ts";
import { ApiError, presentSession } from "./api.ts";
import { waitMs } from "./backoff.ts";
import { after, chance, steadyMs, takeServiceTime } from "./clock.ts";
import { RateHistory } from "./rate-history.ts";
import { ShapeError } from "./shape.ts";
import { liveMessage, type Topic, topicsOf } from "./wire-live.ts";

type Connection =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "waiting"; readonly untilMs: number; readonly failures: number };

/** Besides topics: the connection, and every beat. */
export type Subject = Topic | "connection" | "beat" | "fault";

const beatMs = 1000;
/** Messages of one second come in one go: they are shown together. */
const gatherMs = 20;
/** The service says its time every second. */
const silentMs = 30_000;
const closeSessionEnded = 4401;

export class Live {
  connection: Connection = { kind: "connecting" };
  /** A message that this page cannot read; null: none. */
  fault: string | null = null;
  readonly topics: Partial<LiveTopics> = {};
  readonly rates = new RateHistory();
  readonly #onEnded: () => void;
  readonly #listeners = new Map<Subject, Set<() => void>>();
  readonly #versions = new Map<Subject, number>();
  #pending: Partial<LiveTopics> = {};
  #socket: WebSocket | null = null;
  #failures = 0;
  #lastBeatMs = steadyMs();
  #lastMessageMs = steadyMs();
  #endBeat: () => void = () => {};
  #endWait: () => void = () => {};
  #isClosed = false;

  constructor(onEnded: () => void) {
    this.#onEnded = onEnded;
  }

  start(): void {
    document.addEventListener("visibilitychange", this.#look);
    window.addEventListener("online", this.retry);
    this.#armBeat(beatMs);
    this.#open();
  }

  close(): void {
    this.#isClosed = true;
    document.removeEventListener("visibilitychange", this.#look);
    window.removeEventListener("online", this.retry);
    this.#endBeat();
    this.#endWait();
    this.#socket?.close();
  }

  /** Returns how to end that. */
  subscribe(subject: Subject, listener: () => void): () => void {
    const listeners = this.#listeners.get(subject) ?? new Set();
    this.#listeners.set(subject, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /** How often it was told: whoever subscribes after reading sees whether something came in between. */
  versionOf(subject: Subject): number {
    return this.#versions.get(subject) ?? 0;
  }

  /** Waits no longer. */
  readonly retry = (): void => {
    if (this.connection.kind !== "waiting") return;
    this.#endWait();
    this.#become({ kind: "connecting" });
    void this.#checkAndOpen();
  };

  #open(): void {
    const { protocol, host } = location;
    const socket = new WebSocket(`${protocol === "https:" ? "wss" : "ws"}://${host}/portal/live`);
    this.#socket = socket;
    socket.addEventListener("message", ({ data }: MessageEvent<unknown>) => this.#take(data));
    socket.addEventListener("close", ({ code }) => {
      if (this.#isClosed || this.#socket !== socket) return;
      this.#socket = null;
      if (code === closeSessionEnded) this.#onEnded();
      else this.#wait();
    });
  }

  #wait(): void {
    this.#failures++;
    const ms = waitMs(this.#failures, chance());
    this.#become({ kind: "waiting", untilMs: steadyMs() + ms, failures: this.#failures });
    this.#endWait = after(ms, this.retry);
  }

  /** A WebSocket does not say why it was refused: a request does. */
  async #checkAndOpen(): Promise<void> {
    try {
      await presentSession();
      if (!this.#isClosed) this.#open();
    } catch (error) {
      if (this.#isClosed) return;
      if (error instanceof ApiError && error.status === 401) this.#onEnded();
      else this.#wait();
    }
  }

  #take(data: unknown): void {
    this.#lastMessageMs = steadyMs();
    if (this.connection.kind !== "live") {
      this.#failures = 0;
      this.#become({ kind: "live" });
    }
    let isNew = false;
    try {
      const brought = liveMessage(JSON.parse(String(data)));
      if (!brought) return;
      isNew = Object.keys(brought).some((topic) => !Object.hasOwn(this.topics, topic));
      this.#pending = { ...this.#pending, ...brought };
    } catch (error) {
      this.#complain(error);
    }
    if (isNew || this.#lastMessageMs - this.#lastBeatMs > beatMs * 0.9) this.#armBeat(gatherMs);
  }

  #complain(error: unknown): void {
    const detail = error instanceof ShapeError ? error.message : "unreadable message";
    if (this.fault === detail) return;
    this.fault = detail;
    this.#tell("fault");
  }

  #armBeat(ms: number): void {
    this.#endBeat();
    this.#endBeat = after(ms, () => {
      this.#beat();
      this.#armBeat(beatMs);
    });
  }

  #beat(): void {
    if (document.hidden) return;
    this.#lastBeatMs = steadyMs();
    const brought = this.#pending;
    this.#pending = {};
    Object.assign(this.topics, brought);
    if (brought.service) takeServiceTime(Date.parse(brought.service.time));
    if (brought.destinations) this.rates.add(brought.destinations);
    for (const topic of topicsOf(brought)) this.#tell(topic);
    this.#tell("beat");
    this.#askWhenSilent();
  }

  #askWhenSilent(): void {
    const isSilent = steadyMs() - this.#lastMessageMs > silentMs;
    if (!isSilent || this.connection.kind !== "live") return;
    this.#lastMessageMs = steadyMs();
    this.#socket?.close();
  }

  readonly #look = (): void => {
    if (document.hidden) return;
    // Timers of hidden pages stand still: what was silent meanwhile is no sign of anything.
    this.#lastMessageMs = steadyMs();
    this.#armBeat(0);
  };

  #become(connection: Connection): void {
    this.connection = connection;
    this.#tell("connection");
  }

  #tell(subject: Subject): void {
    this.#versions.set(subject, this.versionOf(subject) + 1);
    for (const listener of this.#listeners.get(subject) ?? []) listener();
  }
}
