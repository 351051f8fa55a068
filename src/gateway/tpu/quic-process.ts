// The process of the QUIC connections to leaders: requests to it, and the result of each transaction.
//
// Owned by routes/tpu-route.ts. All requests of one event-loop turn are sent in one message. A process that
// has not opened its sockets yet gets none, because it may never do so. If the process ends, its transactions
// are reported as failed or dropped, and confined-process.ts starts another one. Nothing throws after the
// constructor.

import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/log.ts";
import type { QuicheCredentials } from "../../core/quic/quiche.ts";
import { ConfinedProcess, type SupervisedChild } from "./confined-process.ts";
import { HeldRequests } from "./held-requests.ts";
import { answerBytesMax, decodeAnswer, encodeRequest } from "./messages.ts";
import { PendingRequests } from "./pending-requests.ts";
import { startQuicProcess } from "./start-quic-process.ts";
import type {
  LeaderState,
  ProcessAnswer,
  ProcessEnd,
  ProcessRequest,
  ProcessState,
  SupervisionAnswer,
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
  /** Starts the process; tests end the process that it starts, and a simulation starts one of its own. */
  readonly start?: (() => SupervisedChild) | undefined;
  /** For tests. */
  readonly residentBytesMax?: number | undefined;
}

type OwnAnswer = Exclude<ProcessAnswer, SupervisionAnswer>;

export class QuicProcess {
  readonly #options: QuicProcessOptions;
  readonly #process: ConfinedProcess<OwnAnswer>;
  #credentials: QuicheCredentials;
  #selected: readonly TpuAddress[] = [];
  /** Requests of this turn of the event loop. */
  #waiting: TpuSendRequest[] = [];
  readonly #held: HeldRequests;
  readonly #pending: PendingRequests;
  #leaders: readonly LeaderState[] = [];
  #closing: Promise<void> | undefined;

  constructor(options: QuicProcessOptions) {
    this.#options = options;
    this.#credentials = options.credentials;
    const { clock, log, start = startQuicProcess, report } = options;
    this.#pending = new PendingRequests(clock, report);
    this.#held = new HeldRequests(clock, (id) => this.#pending.end(id, "process_down"));
    this.#process = new ConfinedProcess<OwnAnswer>({
      component: "tpu",
      clock,
      log,
      start: () => start(),
      residentBytesMax: options.residentBytesMax,
      answerBytesMax,
      decode: decodeAnswer,
      ping: () => encodeRequest({ kind: "ping" }),
      farewell: () => encodeRequest({ kind: "close" }),
      isWanted: () => this.#selected.length > 0,
      started: () => this.#started(),
      opened: () => this.#opened(),
      handle: (answer) => this.#handle(answer),
      ended: (reason) => this.#ended(reason),
    });
  }

  /** State of the leaders, up to 100 ms old; empty before the process runs. */
  get leaders(): readonly LeaderState[] {
    return this.#leaders;
  }

  /** False while the process waits for its restart. */
  get isUp(): boolean {
    return !this.#process.isClosed && !this.#process.isPaused;
  }

  get lastFailure(): string {
    return this.#process.lastFailure;
  }

  get state(): ProcessState {
    return this.#process.state;
  }

  /** Selects the leaders to connect with, nearest first. Starts the process if needed. */
  selectLeaders(addresses: readonly TpuAddress[]): void {
    if (this.#process.isClosed) return;
    this.#selected = addresses;
    if (this.#process.isRunning) this.#post({ kind: "aim", addresses });
    else if (addresses.length > 0) this.#process.start();
  }

  send(request: TpuSendRequest): void {
    this.#pending.add(request.id);
    if (this.#process.isClosed) {
      this.#pending.end(request.id, "route_closed");
      return;
    }
    this.#waiting.push(request);
    if (this.#waiting.length === 1) queueMicrotask(() => this.flush());
  }

  /** Passes what waits for the end of this turn of the event loop to the process. */
  flush(): void {
    const requests = this.#waiting;
    this.#waiting = [];
    if (requests.length === 0) return;
    this.#process.start();
    if (!this.#process.isRunning) {
      for (const { id } of requests) this.#pending.end(id, "process_down");
      return;
    }
    if (this.#process.isOpened) this.#post({ kind: "send", requests });
    else this.#held.add(requests);
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
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#process.isRunning) this.flush();
    await this.#process.close();
    this.#held.clear();
    this.#leaders = [];
    this.#pending.endAll("route_closed");
  }

  /** The process opened its sockets. */
  #opened(): void {
    const requests = this.#held.take();
    if (requests.length > 0) this.#post({ kind: "send", requests });
  }

  #post(request: ProcessRequest): void {
    this.#process.post(encodeRequest(request));
  }

  #started(): void {
    this.#post({ kind: "open", settings: this.#options.settings, credentials: this.#credentials });
    this.#post({ kind: "aim", addresses: this.#selected });
  }

  #handle(answer: OwnAnswer): void {
    if (answer.kind === "leaders") this.#leaders = answer.leaders;
    else for (const event of answer.events) this.#pending.report(event);
  }

  #ended(reason: ProcessEnd): void {
    this.#leaders = [];
    // Requests that it never got wait for the next process.
    const kept = new Set(this.#waiting.map(({ id }) => id));
    this.#held.clear();
    this.#pending.endAll(`connection_lost: process_${reason}`, kept);
  }
}
