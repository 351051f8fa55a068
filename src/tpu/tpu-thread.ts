// The thread of the direct route as the routes see it: started, fed, heard, and started again.
//
// Owned by routes/tpu-route.ts. What the same turn offers goes over in one message. Whatever ends the
// thread ends only the transactions that it had: they are told as failed or dropped, and after a pause
// that grows with each failure another one is started. Never throws after the constructor.

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Clock, Timer } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { QuicheCredentials } from "./quiche.ts";
import type {
  LeaderState,
  ThreadAnswer,
  ThreadOptions,
  ThreadParcel,
  ThreadRequest,
  TpuAddress,
  TpuEvent,
  TpuParcel,
  TpuSettings,
} from "./types.ts";

export interface TpuThreadOptions {
  readonly settings: TpuSettings;
  readonly credentials: QuicheCredentials;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  /** Of every parcel, as TpuEvent says. */
  readonly tell: (event: TpuEvent) => void;
  /** Starts the thread; tests hold it to end it. */
  readonly start?: ((options: ThreadOptions) => Worker) | undefined;
}

const restartMsMin = 100;
const restartMsMax = 10_000;
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

export class TpuThread {
  readonly #options: TpuThreadOptions;
  #credentials: QuicheCredentials;
  #worker: Worker | null = null;
  #aim: readonly TpuAddress[] = [];
  #waiting: TpuParcel[] = [];
  /** With the thread: sent or not. */
  readonly #known = new Map<number, { isSent: boolean }>();
  #leaders: readonly LeaderState[] = [];
  #failures = 0;
  #restart: Timer | undefined;
  #lastFailure = "";
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
    return !this.#closing && !this.#restart;
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  /** Whom to be connected with, the nearest first. Starts the thread if need be. */
  aim(addresses: readonly TpuAddress[]): void {
    if (this.#closing) return;
    this.#aim = addresses;
    if (this.#worker) this.#post({ kind: "aim", addresses });
    else if (addresses.length > 0) this.#start();
  }

  send(parcel: TpuParcel): void {
    if (this.#closing) {
      this.#tellEnd("dropped", parcel.id, "route_closed");
      return;
    }
    this.#known.set(parcel.id, { isSent: false });
    this.#waiting.push(parcel);
    if (this.#waiting.length === 1) queueMicrotask(() => this.#flush());
  }

  identify(credentials: QuicheCredentials): void {
    this.#credentials = credentials;
    if (this.#worker) this.#post({ kind: "identify", credentials });
  }

  /** What waits is dropped, what is under way failed. Settles when the thread has ended. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#restart?.cancel();
    this.#restart = undefined;
    this.#flush();
    const worker = this.#worker;
    if (worker) {
      const ended = new Promise<void>((resolve) => {
        this.#whenEnded = resolve;
      });
      this.#post({ kind: "close" });
      // A thread that does not answer any more is ended all the same.
      const timer = this.#options.clock.after(closeMsMax, () => void worker.terminate());
      await ended;
      timer.cancel();
    }
    this.#endAll("route_closed");
  }

  #flush(): void {
    const parcels = this.#waiting;
    this.#waiting = [];
    if (parcels.length === 0) return;
    if (!this.#worker && !this.#restart) this.#start();
    if (!this.#worker) {
      for (const { id } of parcels) this.#tellEnd("dropped", id, "thread_down");
      return;
    }
    let length = 0;
    for (const { bytes } of parcels) length += bytes.length;
    const bytes = new Uint8Array(length);
    const heads: ThreadParcel[] = [];
    let at = 0;
    for (const { id, address, bytes: own, restMs } of parcels) {
      bytes.set(own, at);
      at += own.length;
      heads.push({ id, address, length: own.length, restMs });
    }
    this.#post({ kind: "parcels", parcels: heads, bytes }, [bytes.buffer]);
  }

  #post(request: ThreadRequest, transfers: readonly ArrayBuffer[] = []): void {
    this.#worker?.postMessage(request, transfers);
  }

  #start(): void {
    if (this.#worker || this.#restart || this.#closing) return;
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
    else if (answer.kind === "opened") this.#failures = 0;
  }

  #tell(event: TpuEvent): void {
    const known = this.#known.get(event.id);
    if (!known) return;
    if (event.kind === "sent") known.isSent = true;
    else this.#known.delete(event.id);
    this.#options.tell(event);
  }

  #tellEnd(kind: "dropped" | "failed", id: number, reason: string): void {
    this.#known.delete(id);
    this.#options.tell({ kind, id, reason, atNs: this.#options.clock.monotonicNs() });
  }

  #endAll(reason: string): void {
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
    this.#whenEnded?.();
    if (this.#closing) return;
    this.#note(`expected the thread of the connections to run, got its end: ${cause}`);
    const pauseMs = Math.min(restartMsMax, restartMsMin * 2 ** Math.min(this.#failures, 10));
    this.#failures++;
    this.#restart = this.#options.clock.after(pauseMs, () => {
      this.#restart = undefined;
      if (this.#aim.length > 0) this.#start();
    });
    this.#endAll("thread_lost");
  }
}
