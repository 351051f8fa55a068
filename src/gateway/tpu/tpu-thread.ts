// The thread of the direct route as the routes see it: started, fed, heard, and started again.
//
// Owned by routes/tpu-route.ts. What the same turn offers goes over in one message. Whatever ends the
// thread ends only the transactions that it had: they are told as failed or dropped, and after a pause
// that grows with each failure another one is started. A thread that does not answer any more counts as
// ended: what is stuck in native code nobody can stop, and nobody waits for it. Never throws after the
// constructor.

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
  /** Of every request, as TpuEvent says. */
  readonly tell: (event: TpuEvent) => void;
  /** Starts the thread; tests hold it to end it. */
  readonly start?: ((options: ThreadOptions) => Worker) | undefined;
}

const restartMsMin = 100;
const restartMsMax = 10_000;
/** A thread that stood so long did not fail because it was started. */
const soundNs = 30_000_000_000n;
const pingMs = 1000;
/** Counted, not measured: a standstill of this thread is no silence of the other one. */
const unansweredMax = 5;
/** To end by itself, and again as long to be ended. */
const closeMsMax = 1000;

export function startTpuWorker(options: ThreadOptions): Worker {
  const settings = { name: "tpu", workerData: options, execArgv: [] };
  if (import.meta.url.endsWith(".js")) {
    return new Worker(new URL("./tpu-worker.js", import.meta.url), settings);
  }
  // From source (tests, tsx): a thread has no loader of TypeScript of its own.
  const loader = JSON.stringify(createRequire(import.meta.url).resolve("tsx/cjs"));
  const file = JSON.stringify(fileURLToPath(new URL("./tpu-worker.ts", import.meta.url)));
  return new Worker(`require(${loader}); require(${file});`, { ...settings, eval: true });
}

/** Ends it without waiting: where it is stuck in native code that never happens. */
function leave(worker: Worker): void {
  void worker.terminate();
  worker.unref();
}

export class TpuThread {
  readonly #options: TpuThreadOptions;
  #credentials: QuicheCredentials;
  #worker: Worker | null = null;
  #aim: readonly TpuAddress[] = [];
  #waiting: TpuSendRequest[] = [];
  /** With the thread: sent or not. */
  readonly #known = new Map<number, { isSent: boolean }>();
  #leaders: readonly LeaderState[] = [];
  #failures = 0;
  #restart: Timer | undefined;
  /** Since its sockets are there; monotonic. */
  #openedNs: bigint | null = null;
  #pings: Timer | undefined;
  /** Pings since its last answer. */
  #unanswered = 0;
  #lastFailure = "";
  #isClosed = false;
  #closing: Promise<void> | undefined;
  #whenEnded: (() => void) | undefined;

  constructor(options: TpuThreadOptions) {
    this.#options = options;
    this.#credentials = options.credentials;
  }

  /** A moment old; empty before the thread is there. */
  get leaders(): readonly LeaderState[] {
    return this.#leaders;
  }

  /** False while the thread is down for a moment. */
  get isUp(): boolean {
    return !this.#isClosed && !this.#restart;
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** Whom to be connected with, the nearest first. Starts the thread if need be. */
  aim(addresses: readonly TpuAddress[]): void {
    if (this.#isClosed) return;
    this.#aim = addresses;
    if (this.#worker) this.#post({ kind: "aim", addresses });
    else if (addresses.length > 0) this.#start();
  }

  send(request: TpuSendRequest): void {
    this.#known.set(request.id, { isSent: false });
    if (this.#isClosed) {
      this.#tellEnd("dropped", request.id, "route_closed");
      return;
    }
    this.#waiting.push(request);
    if (this.#waiting.length === 1) queueMicrotask(() => this.#flush());
  }

  identify(credentials: QuicheCredentials): void {
    this.#credentials = credentials;
    if (this.#worker) this.#post({ kind: "identify", credentials });
  }

  /** What waits is dropped, what is under way failed. Settles when the thread has ended, or does not. */
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
      // A thread that does not answer any more is ended all the same, or left behind.
      const { clock } = this.#options;
      const timers = [
        clock.after(closeMsMax, () => leave(worker)),
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
      for (const { id } of requests) this.#tellEnd("dropped", id, "thread_down");
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
      this.#hear(answer);
    });
    worker.on("error", (error: unknown) => {
      cause = messageOf(error);
    });
    worker.on("exit", (code) => {
      if (this.#worker === worker) this.#ended(cause || `exit code ${code}`);
    });
    this.#post({ kind: "aim", addresses: this.#aim });
  }

  #hear(answer: ThreadAnswer): void {
    if (answer.kind === "events") for (const event of answer.events) this.#tell(event);
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
      leave(worker);
      this.#ended("stuck");
    });
  }

  #stopWatching(): void {
    this.#pings?.cancel();
    this.#pings = undefined;
    this.#unanswered = 0;
    this.#openedNs = null;
  }

  #tell(event: TpuEvent): void {
    const known = this.#known.get(event.id);
    if (!known) return;
    if (event.kind === "sent") known.isSent = true;
    else this.#known.delete(event.id);
    this.#options.tell(event);
  }

  #tellEnd(kind: "dropped" | "failed", id: number, reason: string): void {
    if (!this.#known.delete(id)) return;
    this.#options.tell({ kind, id, reason, atNs: this.#options.clock.monotonicNs() });
  }

  #endAll(reason: string): void {
    this.#waiting = [];
    for (const [id, { isSent }] of this.#known) {
      this.#tellEnd(isSent ? "failed" : "dropped", id, reason);
    }
  }

  #note(message: string): void {
    this.#lastFailure = message;
    this.#options.log?.warn(`direct route: ${message}`);
  }

  #ended(cause: string): void {
    this.#worker = null;
    this.#leaders = [];
    const { clock } = this.#options;
    const isSound = this.#openedNs !== null && clock.monotonicNs() - this.#openedNs >= soundNs;
    this.#stopWatching();
    this.#whenEnded?.();
    if (this.#isClosed) return;
    if (isSound) this.#failures = 0;
    this.#note(`expected the thread of the connections to run, got its end: ${cause}`);
    const pauseMs = Math.min(restartMsMax, restartMsMin * 2 ** Math.min(this.#failures, 10));
    this.#failures++;
    this.#restart = clock.after(pauseMs, () => {
      this.#restart = undefined;
      if (this.#aim.length > 0) this.#start();
    });
    this.#endAll("thread_lost");
  }
}
