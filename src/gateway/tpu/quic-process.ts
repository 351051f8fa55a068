// Controls the process of the QUIC connections: starts, feeds, monitors and restarts it.
//
// Owned by routes/tpu-route.ts. All requests of one event-loop turn are sent in one message. If the
// process ends, its transactions are reported as failed or dropped, and another one starts: at once,
// or after a pause that grows with each failure in a row. A process that stops responding, uses too
// much memory or sends an invalid message is killed. Nothing throws after the constructor.

import type { ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { FrameReader } from "./frames.ts";
import { answerBytesMax, decodeAnswer, encodeRequest } from "./messages.ts";
import { PendingRequests } from "./pending-requests.ts";
import { residentBytes } from "./process-memory.ts";
import type { QuicheCredentials } from "./quiche.ts";
import { channelDescriptor, residentBytesMax, startQuicProcess } from "./start-quic-process.ts";
import type {
  LeaderState,
  ProcessAnswer,
  ProcessEnd,
  ProcessRequest,
  ProcessState,
  TpuAddress,
  TpuEvent,
  TpuSendRequest,
  TpuSettings,
} from "./types.ts";

export interface QuicProcessOptions {
  readonly settings: TpuSettings;
  readonly credentials: QuicheCredentials;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  /** Receives the events of every request; see TpuEvent. */
  readonly report: (event: TpuEvent) => void;
  /** Starts the process; tests replace it to end the process. */
  readonly start?: (() => ChildProcess) | undefined;
  /** For tests. */
  readonly residentBytesMax?: number | undefined;
}

const restartMsMin = 100;
const restartMsMax = 5000;
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
  readonly child: ChildProcess;
  readonly channel: Socket;
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

export class QuicProcess {
  readonly #options: QuicProcessOptions;
  #credentials: QuicheCredentials;
  #running: Running | null = null;
  #selected: readonly TpuAddress[] = [];
  #waiting: TpuSendRequest[] = [];
  readonly #pending: PendingRequests;
  #leaders: readonly LeaderState[] = [];
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
  #closing: Promise<void> | undefined;
  #whenEnded: (() => void) | undefined;

  constructor(options: QuicProcessOptions) {
    this.#options = options;
    this.#credentials = options.credentials;
    this.#pending = new PendingRequests(options.clock, options.report);
  }

  /** State of the leaders, up to 100 ms old; empty before the process runs. */
  get leaders(): readonly LeaderState[] {
    return this.#leaders;
  }

  /** False while the process waits for its restart. */
  get isUp(): boolean {
    return !this.#isClosed && !this.#restart;
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

  /** Selects the leaders to connect with, nearest first. Starts the process if needed. */
  selectLeaders(addresses: readonly TpuAddress[]): void {
    if (this.#isClosed) return;
    this.#selected = addresses;
    if (this.#running) this.#post({ kind: "aim", addresses });
    else if (addresses.length > 0) this.#start();
  }

  send(request: TpuSendRequest): void {
    this.#pending.add(request.id);
    if (this.#isClosed) {
      this.#pending.end(request.id, "route_closed");
      return;
    }
    this.#waiting.push(request);
    if (this.#waiting.length === 1) queueMicrotask(() => this.#flush());
  }

  identify(credentials: QuicheCredentials): void {
    this.#credentials = credentials;
    this.#post({ kind: "identify", credentials });
  }

  /**
   * Drops queued transactions and fails those in flight. Settles when the process has ended or was
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
    const running = this.#running;
    if (running) {
      this.#flush();
      const ended = new Promise<void>((resolve) => {
        this.#whenEnded = resolve;
      });
      this.#post({ kind: "close" });
      const { clock } = this.#options;
      const timers = [
        clock.after(closeMsMax, () => running.child.kill("SIGKILL")),
        clock.after(2 * closeMsMax, () => this.#ended(running)),
      ];
      await ended;
      for (const timer of timers) timer.cancel();
    }
    this.#pending.endAll("route_closed");
  }

  #flush(): void {
    const requests = this.#waiting;
    this.#waiting = [];
    if (requests.length === 0) return;
    if (!this.#running && !this.#restart) this.#start();
    if (!this.#running) {
      for (const { id } of requests) this.#pending.end(id, "process_down");
      return;
    }
    this.#post({ kind: "send", requests });
  }

  #post(request: ProcessRequest): void {
    this.#running?.channel.write(encodeRequest(request));
  }

  #start(): void {
    if (this.#running || this.#restart || this.#isClosed) return;
    const { settings, clock, start = startQuicProcess } = this.#options;
    let child: ChildProcess;
    let channel: Socket;
    try {
      child = start();
      const end = child.stdio[channelDescriptor];
      if (!(end instanceof Socket)) throw new Error("expected a process with a socket, got none");
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
    this.#checks = clock.every(checkMs, () => this.#check(running));
    this.#post({ kind: "open", settings, credentials: this.#credentials });
    this.#post({ kind: "aim", addresses: this.#selected });
  }

  #listen(running: Running): void {
    const { child, channel } = running;
    const reader = new FrameReader(answerBytesMax, (kind, body) => {
      if (this.#running === running) this.#handle(running, decodeAnswer(kind, body));
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

  #handle(running: Running, answer: ProcessAnswer): void {
    if (answer.kind === "events") for (const event of answer.events) this.#pending.report(event);
    else if (answer.kind === "leaders") this.#leaders = answer.leaders;
    else if (answer.kind === "trouble") this.#note(printable(answer.message));
    else if (answer.kind === "pong") running.unanswered = 0;
    else if (answer.kind === "refused") {
      running.end ??= { reason: "not_started", detail: printable(answer.message) };
    } else if (answer.kind === "opened") this.#opened(running, printable(answer.unconfined));
  }

  #opened(running: Running, unconfined: string): void {
    running.openedNs = this.#options.clock.monotonicNs();
    running.unanswered = 0;
    if (unconfined === "") return;
    this.#options.log?.warn(
      `tpu: the system does not confine the QUIC process completely: ${unconfined}; see docs/security.md`,
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
      this.#post({ kind: "ping" });
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
    this.#leaders = [];
    const { child, channel, openedNs } = running;
    channel.destroy();
    child.unref();
    this.#whenEnded?.();
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
    const pauseMs =
      this.#failures === 0
        ? 0
        : Math.min(restartMsMax, restartMsMin * 2 ** Math.min(this.#failures - 1, 10));
    this.#failures++;
    this.#note(`the QUIC process ended: ${detail}; it restarts automatically`);
    if (pauseMs > 0) {
      this.#restart = this.#options.clock.after(pauseMs, () => {
        this.#restart = undefined;
        if (this.#selected.length > 0) this.#start();
      });
    }
    // Requests that it never got wait for the next process.
    const kept = new Set(this.#waiting.map(({ id }) => id));
    this.#pending.endAll(`connection_lost: process_${reason}`, kept);
    if (this.#selected.length > 0) this.#start();
  }

  #note(message: string): void {
    this.#lastFailure = message;
    this.#options.log?.warn(`tpu: ${message}`);
  }
}
