// Live feed: one WebSocket, the last value of each topic, and the subscribers.
//
// Opened by the shell for the length of a session. Messages of one second are shown together, so
// the page is redrawn at most once a second, and not while it is hidden. A broken connection is
// reopened automatically after a request has confirmed that the session is still valid, still the one that
// the page shows, and may have a further feed.

import type { LiveTopics, SessionView } from "../types.ts";
import { ApiError, presentSession } from "./api.ts";
import { waitMs } from "./backoff.ts";
import { after, chance, steadyMs, takeServiceTime } from "./clock.ts";
import { liveMessage, type Topic, topicsOf } from "./live-readers.ts";
import { RateHistory } from "./rate-history.ts";
import { ShapeError } from "./shape-readers.ts";

type Connection =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "waiting"; readonly untilMs: number; readonly failures: number };

/** Topics, the connection, every update of the page, and unreadable messages. */
export type Subject = Topic | "connection" | "update" | "fault";

const updateMs = 1000;
/** Messages that arrive within this time are shown together. */
const gatherMs = 20;
/** The service sends its time every second; after this silence the page reconnects. */
const silentMs = 30_000;
const closeSessionEnded = 4401;

interface LiveOptions {
  /** The service no longer knows the session. */
  readonly onEnded: () => void;
  /**
   * Receives the browser's session before each reconnection. False: another tab has signed in to another account,
   * so this feed must not open.
   */
  readonly onSession: (session: SessionView) => boolean;
}

export class Live {
  connection: Connection = { kind: "connecting" };
  /** Error of a message that this page cannot read; null without one. */
  fault: string | null = null;
  /** Why the service opens no feed for this page; null without a refusal. */
  refusal: string | null = null;
  readonly topics: Partial<LiveTopics> = {};
  readonly rates = new RateHistory();
  readonly #options: LiveOptions;
  readonly #listeners = new Map<Subject, Set<() => void>>();
  readonly #versions = new Map<Subject, number>();
  #pending: Partial<LiveTopics> = {};
  #socket: WebSocket | null = null;
  #failures = 0;
  #lastUpdateMs = steadyMs();
  #lastMessageMs = steadyMs();
  #cancelUpdate: () => void = () => {};
  #endWait: () => void = () => {};
  #isClosed = false;

  constructor(options: LiveOptions) {
    this.#options = options;
  }

  start(): void {
    document.addEventListener("visibilitychange", this.#onVisibilityChange);
    window.addEventListener("online", this.retry);
    this.#scheduleUpdate(updateMs);
    this.#open();
  }

  close(): void {
    this.#isClosed = true;
    document.removeEventListener("visibilitychange", this.#onVisibilityChange);
    window.removeEventListener("online", this.retry);
    this.#cancelUpdate();
    this.#endWait();
    this.#socket?.close();
  }

  /** Returns a function that ends the subscription. */
  subscribe(subject: Subject, listener: () => void): () => void {
    const listeners = this.#listeners.get(subject) ?? new Set();
    this.#listeners.set(subject, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  /**
   * Number of notifications; a subscriber compares it to detect changes before its subscription.
   */
  versionOf(subject: Subject): number {
    return this.#versions.get(subject) ?? 0;
  }

  /** Reconnects immediately. */
  readonly retry = (): void => {
    if (this.connection.kind !== "waiting") return;
    this.#endWait();
    this.#setConnection({ kind: "connecting" });
    void this.#checkAndOpen();
  };

  #open(): void {
    const { protocol, host } = location;
    const socket = new WebSocket(`${protocol === "https:" ? "wss" : "ws"}://${host}/portal/live`);
    this.#socket = socket;
    socket.addEventListener("message", ({ data }: MessageEvent<unknown>) => this.#receive(data));
    socket.addEventListener("close", ({ code }) => {
      if (this.#isClosed || this.#socket !== socket) return;
      this.#socket = null;
      if (code === closeSessionEnded) this.#options.onEnded();
      else this.#wait();
    });
  }

  #wait(): void {
    this.#failures++;
    const ms = waitMs(this.#failures, chance());
    this.#setConnection({ kind: "waiting", untilMs: steadyMs() + ms, failures: this.#failures });
    this.#endWait = after(ms, this.retry);
  }

  /** A refused WebSocket gives no reason, so a request asks for the session and for a refusal. */
  async #checkAndOpen(): Promise<void> {
    try {
      const session = await presentSession();
      if (this.#isClosed || !this.#options.onSession(session)) return;
      this.refusal = session.feedRefusal;
      if (this.refusal === null) this.#open();
      else this.#wait();
    } catch (error) {
      if (this.#isClosed) return;
      if (error instanceof ApiError && error.status === 401) this.#options.onEnded();
      else this.#wait();
    }
  }

  #receive(data: unknown): void {
    this.#lastMessageMs = steadyMs();
    if (this.connection.kind !== "live") {
      this.#failures = 0;
      this.refusal = null;
      this.#setConnection({ kind: "live" });
    }
    let isNew = false;
    try {
      const received = liveMessage(JSON.parse(String(data)));
      if (!received) return;
      isNew = Object.keys(received).some((topic) => !Object.hasOwn(this.topics, topic));
      this.#pending = { ...this.#pending, ...received };
    } catch (error) {
      this.#reportFault(error);
    }
    if (isNew || this.#lastMessageMs - this.#lastUpdateMs > updateMs * 0.9)
      this.#scheduleUpdate(gatherMs);
  }

  #reportFault(error: unknown): void {
    const detail = error instanceof ShapeError ? error.message : "unreadable message";
    if (this.fault === detail) return;
    this.fault = detail;
    this.#notify("fault");
  }

  #scheduleUpdate(ms: number): void {
    this.#cancelUpdate();
    this.#cancelUpdate = after(ms, () => {
      this.#update();
      this.#scheduleUpdate(updateMs);
    });
  }

  #update(): void {
    if (document.hidden) return;
    this.#lastUpdateMs = steadyMs();
    const received = this.#pending;
    this.#pending = {};
    Object.assign(this.topics, received);
    if (received.service) takeServiceTime(Date.parse(received.service.time));
    if (received.destinations) this.rates.add(received.destinations);
    for (const topic of topicsOf(received)) this.#notify(topic);
    this.#notify("update");
    this.#checkSilence();
  }

  #checkSilence(): void {
    const isSilent = steadyMs() - this.#lastMessageMs > silentMs;
    if (!isSilent || this.connection.kind !== "live") return;
    this.#lastMessageMs = steadyMs();
    this.#socket?.close();
  }

  readonly #onVisibilityChange = (): void => {
    if (document.hidden) return;
    // Timers of hidden pages are suspended, so the silence in the meantime means nothing.
    this.#lastMessageMs = steadyMs();
    this.retry();
    this.#scheduleUpdate(0);
  };

  #setConnection(connection: Connection): void {
    this.connection = connection;
    this.#notify("connection");
  }

  #notify(subject: Subject): void {
    this.#versions.set(subject, this.versionOf(subject) + 1);
    for (const listener of this.#listeners.get(subject) ?? []) listener();
  }
}
