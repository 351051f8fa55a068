// Supervises a confined process that speaks QUIC: starts, feeds, monitors and restarts it.
//
// Owned by quic-process.ts and by the QUIC ingress. A process that stops responding, uses too much memory
// or sends an invalid message is killed. Another one starts at once, or after a pause that grows with each
// failure in a row. Nothing throws after the constructor.

import { Duplex, type Readable } from "node:stream";
import { backOffMs } from "../../core/back-off.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { FrameReader } from "./frames.ts";
import { residentBytes } from "./process-memory.ts";
import { channelDescriptor, residentBytesMax } from "./start-quic-process.ts";
import type { ProcessEnd, ProcessState, SupervisionAnswer } from "./types.ts";

/** The part of a ChildProcess that supervision uses. */
export interface SupervisedChild {
  readonly pid?: number | undefined;
  readonly exitCode: number | null;
  readonly signalCode: string | null;
  readonly stderr: Readable | null;
  /** One of them is the channel. */
  readonly stdio: readonly unknown[];
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "close", listener: () => void): unknown;
  kill(signal: "SIGKILL"): unknown;
  unref(): void;
}

interface ConfinedProcessOptions<Answer extends { readonly kind: string }> {
  /** Component, for the log. */
  readonly component: string;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  readonly start: () => SupervisedChild;
  /** For tests. */
  readonly residentBytesMax?: number | undefined;
  readonly answerBytesMax: number;
  /** Throws for anything that the process never writes. */
  readonly decode: (kind: number, body: Buffer) => Answer | SupervisionAnswer;
  readonly ping: () => Uint8Array;
  /** The request to end. */
  readonly farewell: () => Uint8Array;
  /** Whether a process that ended is replaced. */
  readonly isWanted: () => boolean;
  /** A process started: sends the first requests. */
  readonly started: () => void;
  /** A process opened its sockets. */
  readonly opened?: () => void;
  readonly handle: (answer: Answer) => void;
  /** A process ended unexpectedly, or did not start. The next one starts afterwards. */
  readonly ended: (reason: ProcessEnd) => void;
}

const restartMs = { firstMs: 100, maxMs: 5000 } as const;
/** A process that ran for so long resets the restart pause. */
const healthyNs = 10_000_000_000n;
const checkMs = 250;
/**
 * Unanswered pings until the process counts as hanging: two seconds. They are counted, because a
 * block of this process is not a failure of the other.
 */
const unansweredMax = 8;
/** The same for a process that has not opened its sockets yet: 30 s. */
const startChecksMax = 120;
/** Time for the process to end, and then the same after a kill. */
const closeMsMax = 1000;
const lastWordsMax = 500;

/** One run of the process. */
interface Running {
  readonly child: SupervisedChild;
  readonly channel: Duplex;
  /** When it opened its sockets; monotonic. */
  openedNs: bigint | null;
  /** Pings since its last response. */
  unanswered: number;
  memoryBytes: number | null;
  /** Why this process killed it, or its own words. */
  end: { readonly reason: ProcessEnd; readonly detail: string } | null;
  lastWords: string;
}

function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]+/g, " ").trim();
}

function isSupervision(answer: { readonly kind: string }): answer is SupervisionAnswer {
  const { kind } = answer;
  return kind === "opened" || kind === "pong" || kind === "refused" || kind === "trouble";
}

export class ConfinedProcess<Answer extends { readonly kind: string }> {
  readonly #options: ConfinedProcessOptions<Answer>;
  #running: Running | null = null;
  #failures = 0;
  readonly #ends: Record<ProcessEnd, number> = {
    exited: 0,
    unresponsive: 0,
    memory_limit: 0,
    invalid_message: 0,
    not_started: 0,
  };
  #restart: Timer | undefined;
  #checks: Timer | undefined;
  #lastFailure = "";
  #isClosed = false;
  #whenEnded: (() => void) | undefined;
  #whenOpened: (() => void) | undefined;

  constructor(options: ConfinedProcessOptions<Answer>) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running !== null;
  }

  /** Whether a process has opened its sockets. */
  get isOpened(): boolean {
    return this.#running !== null && this.#running.openedNs !== null;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** True while the process waits for its restart. */
  get isPaused(): boolean {
    return this.#restart !== undefined;
  }

  get lastFailure(): string {
    return this.#lastFailure;
  }

  get state(): ProcessState {
    const running = this.#running;
    return {
      pid: running?.child.pid ?? null,
      memoryBytes: running?.memoryBytes ?? null,
      ends: { ...this.#ends },
    };
  }

  post(frame: Uint8Array): void {
    this.#running?.channel.write(frame);
  }

  /** Settles when a process has opened its sockets, or failed to. */
  opened(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#running === null || this.#running.openedNs !== null) resolve();
      else this.#whenOpened = resolve;
    });
  }

  /** Does nothing if a process runs, or waits for its restart. */
  start(): void {
    if (this.#running || this.#restart || this.#isClosed) return;
    let child: SupervisedChild;
    let channel: Duplex;
    try {
      child = this.#options.start();
      const end = child.stdio[channelDescriptor];
      if (!(end instanceof Duplex)) throw new Error("expected a process with a socket, got none");
      channel = end;
    } catch (error) {
      this.#failed("not_started", messageOf(error), false);
      return;
    }
    const running: Running = {
      child,
      channel,
      openedNs: null,
      unanswered: 0,
      memoryBytes: null,
      end: null,
      lastWords: "",
    };
    this.#running = running;
    this.#listen(running);
    this.#checks = this.#options.clock.every(checkMs, () => this.#check(running));
    this.#options.started();
  }

  /** Settles when the process has ended or was abandoned. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#restart?.cancel();
    this.#restart = undefined;
    const running = this.#running;
    if (!running) return;
    const ended = new Promise<void>((resolve) => {
      this.#whenEnded = resolve;
    });
    const { clock, farewell } = this.#options;
    this.post(farewell());
    const timers = [
      clock.after(closeMsMax, () => running.child.kill("SIGKILL")),
      clock.after(2 * closeMsMax, () => this.#ended(running)),
    ];
    await ended;
    for (const timer of timers) timer.cancel();
  }

  #listen(running: Running): void {
    const { child, channel } = running;
    const { answerBytesMax, decode } = this.#options;
    const reader = new FrameReader(answerBytesMax, (kind, body) => {
      if (this.#running === running) this.#handle(running, decode(kind, body));
    });
    channel.on("data", (chunk: Buffer) => {
      if (running.end?.reason === "invalid_message") return;
      try {
        reader.push(chunk);
      } catch (error) {
        this.#kill(running, "invalid_message", messageOf(error));
      }
    });
    // A socket whose other end is gone: the end of the process follows.
    channel.on("error", () => undefined);
    child.stderr?.on("data", (chunk: Buffer) => {
      running.lastWords = `${running.lastWords}${chunk.toString("latin1")}`.slice(0, lastWordsMax);
    });
    child.on("error", (error) => {
      running.end ??= { reason: "not_started", detail: messageOf(error) };
      if (child.pid === undefined) this.#ended(running);
    });
    // After everything that it wrote was read.
    child.on("close", () => this.#ended(running));
  }

  #handle(running: Running, answer: Answer | SupervisionAnswer): void {
    if (!isSupervision(answer)) this.#options.handle(answer);
    else if (answer.kind === "trouble") this.#note(printable(answer.message));
    else if (answer.kind === "pong") running.unanswered = 0;
    else if (answer.kind === "refused") {
      running.end ??= { reason: "not_started", detail: printable(answer.message) };
    } else if (answer.kind === "opened") this.#opened(running, printable(answer.unconfined));
  }

  #opened(running: Running, unconfined: string): void {
    running.openedNs = this.#options.clock.monotonicNs();
    running.unanswered = 0;
    this.#whenOpened?.();
    this.#options.opened?.();
    if (unconfined === "") return;
    const { log, component } = this.#options;
    log?.warn(
      `${component}: the system does not confine the QUIC process completely: ${unconfined}; see docs/security.md`,
    );
  }

  #check(running: Running): void {
    const { pid } = running.child;
    const bytesMax = this.#options.residentBytesMax ?? residentBytesMax;
    running.memoryBytes = pid === undefined ? null : residentBytes(pid);
    if ((running.memoryBytes ?? 0) > bytesMax) {
      const detail = `it used ${running.memoryBytes} bytes of memory, limit ${bytesMax}`;
      this.#kill(running, "memory_limit", detail);
      return;
    }
    if (running.unanswered++ < (running.openedNs === null ? startChecksMax : unansweredMax)) {
      this.post(this.#options.ping());
      return;
    }
    this.#kill(running, "unresponsive", "it did not respond");
  }

  /** Its end is handled when it has ended, because it may have written results before. */
  #kill(running: Running, reason: ProcessEnd, detail: string): void {
    running.end ??= { reason, detail };
    this.#checks?.cancel();
    running.child.kill("SIGKILL");
    this.#checks = this.#options.clock.after(closeMsMax, () => this.#ended(running));
  }

  #ended(running: Running): void {
    if (this.#running !== running) return;
    this.#running = null;
    this.#checks?.cancel();
    this.#checks = undefined;
    const { child, channel, openedNs } = running;
    channel.destroy();
    child.unref();
    this.#whenEnded?.();
    this.#whenOpened?.();
    if (this.#isClosed) return;
    const { clock } = this.#options;
    const isHealthy = openedNs !== null && clock.monotonicNs() - openedNs >= healthyNs;
    const { reason, detail } = running.end ?? {
      reason: "exited" as const,
      detail: [
        child.signalCode === null ? `exit code ${child.exitCode}` : `signal ${child.signalCode}`,
        printable(running.lastWords),
      ]
        .filter((part) => part !== "")
        .join(": "),
    };
    this.#failed(reason, detail, isHealthy);
  }

  #failed(reason: ProcessEnd, detail: string, isHealthy: boolean): void {
    this.#ends[reason]++;
    if (isHealthy) this.#failures = 0;
    const pauseMs = this.#failures === 0 ? 0 : backOffMs(restartMs, this.#failures - 1);
    this.#failures++;
    this.#note(`the QUIC process ended: ${detail}; it restarts automatically`);
    const { clock, isWanted, ended } = this.#options;
    if (pauseMs > 0) {
      this.#restart = clock.after(pauseMs, () => {
        this.#restart = undefined;
        if (isWanted()) this.start();
      });
    }
    ended(reason);
    if (isWanted()) this.start();
  }

  #note(message: string): void {
    this.#lastFailure = message;
    this.#options.log?.warn(`${this.#options.component}: ${message}`);
  }
}
