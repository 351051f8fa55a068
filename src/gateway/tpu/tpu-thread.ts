// Controls the thread of the TPU route: starts, feeds, monitors and restarts it.
//
// Owned by routes/tpu-route.ts. All requests of one event-loop turn are sent in one message. If the
// thread ends, its transactions are reported as failed or dropped, and a new thread starts after a
// pause that grows with each failure. A thread that stops responding counts as ended, because
// native code cannot be interrupted. Nothing throws after the constructor.

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { QuicheCredentials } from "./quiche.ts";
import type {
  LeaderState,
  ThreadAnswer,
  ThreadOptions,
  ThreadRequest,
  ThreadSendRequest,
  TpuAddress,
  TpuEvent,
  TpuSendRequest,
  TpuSettings,
} from "./types.ts";

export interface TpuThreadOptions {
  readonly settings: TpuSettings;
  readonly credentials: QuicheCredentials;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  /** Receives the events of every request; see TpuEvent. */
  readonly report: (event: TpuEvent) => void;
  /** Starts the thread; tests replace it to end the thread. */
  readonly start?: ((options: ThreadOptions) => Worker) | undefined;
}

const restartMsMin = 100;
const restartMsMax = 10_000;
/** A thread that ran for so long resets the restart pause. */
const healthyNs = 30_000_000_000n;
const pingMs = 1000;
/**
 * Unanswered pings until the thread counts as ended. They are counted, because a block of this
 * thread is not a failure of the other.
 */
const unansweredMax = 5;
/** Time for the thread to end, and then the same for its termination. */
const closeMsMax = 1000;

export function startTpuWorker(options: ThreadOptions): Worker {
  const settings = { name: "tpu", workerData: options, execArgv: [] };
  if (import.meta.url.endsWith(".js")) {
    return new Worker(new URL("./tpu-worker.js", import.meta.url), settings);
  }
  // From source (tests, tsx): a thread does not inherit the TypeScript loader.
  const loader = JSON.stringify(createRequire(import.meta.url).resolve("tsx/cjs"));
  const file = JSON.stringify(fileURLToPath(new URL("./tpu-worker.ts", import.meta.url)));
  return new Worker(`require(${loader}); require(${file});`, { ...settings, eval: true });
}

/** Terminates the thread without waiting, because native code may never return. */
function abandon(worker: Worker): void {
  void worker.terminate();
  worker.unref();
}

export class TpuThread {
  readonly #options: TpuThreadOptions;
  #credentials: QuicheCredentials;
  #worker: Worker | null = null;
  #selected: readonly TpuAddress[] = [];
  #waiting: TpuSendRequest[] = [];
  /** Requests that the thread has, and whether they were sent. */
  readonly #requests = new Map<number, { isSent: boolean }>();
  #leaders: readonly LeaderState[] = [];
  #failures = 0;
  #restart: Timer | undefined;
  /** When the thread opened its sockets; monotonic. */
  #openedNs: bigint | null = null;
  #pings: Timer | undefined;
  /** Pings since its last response. */
  #unanswered = 0;
  #lastFailure = "";
  #isClosed = false;
  #closing: Promise<void> | undefined;
  #whenEnded: (() => void) | undefined;

  constructor(options: TpuThreadOptions) {
    this.#options = options;
    this.#credentials = options.credentials;
  }

  /** State of the leaders, up to 100 ms old; empty before the thread runs. */
  get leaders(): readonly LeaderState[] {
    return this.#leaders;
  }

  /** False while the thread waits for its restart. */
  get isUp(): boolean {
    return !this.#isClosed && !this.#restart;
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** Selects the leaders to connect with, nearest first. Starts the thread if needed. */
  selectLeaders(addresses: readonly TpuAddress[]): void {
    if (this.#isClosed) return;
    this.#selected = addresses;
    if (this.#worker) this.#post({ kind: "aim", addresses });
    else if (addresses.length > 0) this.#start();
  }

  send(request: TpuSendRequest): void {
    this.#requests.set(request.id, { isSent: false });
    if (this.#isClosed) {
      this.#reportEnd("dropped", request.id, "route_closed");
      return;
    }
    this.#waiting.push(request);
    if (this.#waiting.length === 1) queueMicrotask(() => this.#flush());
  }

  identify(credentials: QuicheCredentials): void {
    this.#credentials = credentials;
    if (this.#worker) this.#post({ kind: "identify", credentials });
  }

  /**
   * Drops queued transactions and fails those in flight. Settles when the thread has ended or was
   * abandoned.
   */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#restart?.cancel();
    this.#restart = undefined;
    const worker = this.#worker;
    if (worker) {
      this.#flush();
      const ended = new Promise<void>((resolve) => {
        this.#whenEnded = resolve;
      });
      this.#post({ kind: "close" });
      // A thread that does not respond is terminated, or abandoned.
      const { clock } = this.#options;
      const timers = [
        clock.after(closeMsMax, () => abandon(worker)),
        clock.after(2 * closeMsMax, () => this.#whenEnded?.()),
      ];
      await ended;
      for (const timer of timers) timer.cancel();
      this.#stopWatching();
      this.#worker = null;
    }
    this.#endAll("route_closed");
  }

  #flush(): void {
    const requests = this.#waiting;
    this.#waiting = [];
    if (requests.length === 0) return;
    if (!this.#worker && !this.#restart) this.#start();
    if (!this.#worker) {
      for (const { id } of requests) this.#reportEnd("dropped", id, "thread_down");
      return;
    }
    let length = 0;
    for (const { bytes } of requests) length += bytes.length;
    const bytes = new Uint8Array(length);
    const heads: ThreadSendRequest[] = [];
    let at = 0;
    for (const { id, address, bytes: own, restMs } of requests) {
      bytes.set(own, at);
      at += own.length;
      heads.push({ id, address, length: own.length, restMs });
    }
    this.#post({ kind: "send", requests: heads, bytes }, [bytes.buffer]);
  }

  #post(request: ThreadRequest, transfers: readonly ArrayBuffer[] = []): void {
    this.#worker?.postMessage(request, transfers);
  }

  #start(): void {
    if (this.#worker || this.#restart || this.#isClosed) return;
    const { settings, start = startTpuWorker } = this.#options;
    let worker: Worker;
    try {
      worker = start({ settings, credentials: this.#credentials });
    } catch (error) {
      this.#ended(messageOf(error));
      return;
    }
    this.#worker = worker;
    let cause = "";
    worker.on("message", (answer: ThreadAnswer) => {
      if (this.#worker !== worker) return;
      if (answer.kind === "refused") cause = answer.message;
      this.#handle(answer);
    });
    worker.on("error", (error: unknown) => {
      cause = messageOf(error);
    });
    worker.on("exit", (code) => {
      if (this.#worker === worker) this.#ended(cause || `exit code ${code}`);
    });
    this.#post({ kind: "aim", addresses: this.#selected });
  }

  #handle(answer: ThreadAnswer): void {
    if (answer.kind === "events") for (const event of answer.events) this.#report(event);
    else if (answer.kind === "leaders") this.#leaders = answer.leaders;
    else if (answer.kind === "trouble") this.#note(answer.message);
    else if (answer.kind === "pong") this.#unanswered = 0;
    else if (answer.kind === "opened") this.#watch();
  }

  #watch(): void {
    const { clock } = this.#options;
    this.#stopWatching();
    this.#openedNs = clock.monotonicNs();
    this.#pings = clock.every(pingMs, () => {
      const worker = this.#worker;
      if (this.#unanswered++ < unansweredMax || !worker) {
        this.#post({ kind: "ping" });
        return;
      }
      abandon(worker);
      this.#ended("stuck");
    });
  }

  #stopWatching(): void {
    this.#pings?.cancel();
    this.#pings = undefined;
    this.#unanswered = 0;
    this.#openedNs = null;
  }

  #report(event: TpuEvent): void {
    const known = this.#requests.get(event.id);
    if (!known) return;
    if (event.kind === "sent") known.isSent = true;
    else this.#requests.delete(event.id);
    this.#options.report(event);
  }

  #reportEnd(kind: "dropped" | "failed", id: number, reason: string): void {
    if (!this.#requests.delete(id)) return;
    this.#options.report({ kind, id, reason, atNs: this.#options.clock.monotonicNs() });
  }

  #endAll(reason: string): void {
    this.#waiting = [];
    for (const [id, { isSent }] of this.#requests) {
      this.#reportEnd(isSent ? "failed" : "dropped", id, reason);
    }
  }

  #note(message: string): void {
    this.#lastFailure = message;
    this.#options.log?.warn(`tpu: ${message}`);
  }

  #ended(cause: string): void {
    this.#worker = null;
    this.#leaders = [];
    const { clock } = this.#options;
    const isHealthy = this.#openedNs !== null && clock.monotonicNs() - this.#openedNs >= healthyNs;
    this.#stopWatching();
    this.#whenEnded?.();
    if (this.#isClosed) return;
    if (isHealthy) this.#failures = 0;
    this.#note(`the connection thread ended: ${cause}; it restarts automatically`);
    const pauseMs = Math.min(restartMsMax, restartMsMin * 2 ** Math.min(this.#failures, 10));
    this.#failures++;
    this.#restart = clock.after(pauseMs, () => {
      this.#restart = undefined;
      if (this.#selected.length > 0) this.#start();
    });
    this.#endAll("thread_lost");
  }
}
