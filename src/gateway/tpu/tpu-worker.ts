// The thread of the TPU route: receives requests and reports the results of transactions.
//
// Started by tpu-thread.ts. Sockets, connections and their timers run here, so that encryption and
// acknowledgements never block the gateway's event loop. Events are reported in batches with their
// own times, because a message per event would cost more than sending. If the endpoint cannot be
// opened, the thread responds "refused" and ends.

import { parentPort, workerData } from "node:worker_threads";
import { systemClock, type Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { TpuEndpoint } from "./endpoint.ts";
import { loadQuiche, quicheProblem } from "./quiche.ts";
import type { ThreadAnswer, ThreadOptions, ThreadRequest, TpuEvent } from "./types.ts";

/** Interval of batches of events. */
const batchMs = 1;
const leadersMs = 100;

class TpuWorker {
  readonly #answer: (answer: ThreadAnswer) => void;
  readonly #end: () => void;
  #endpoint: TpuEndpoint | null = null;
  /** Requests that came before the sockets were open. */
  readonly #early: ThreadRequest[] = [];
  #events: TpuEvent[] = [];
  #batch: Timer | undefined;
  #leaders: Timer | undefined;
  #failedPackets = 0;

  constructor(answer: (answer: ThreadAnswer) => void, end: () => void) {
    this.#answer = answer;
    this.#end = end;
  }

  async open({ settings, credentials }: ThreadOptions): Promise<void> {
    const quiche = loadQuiche();
    if (!quiche) throw new Error(quicheProblem() ?? "QUIC is not available");
    this.#endpoint = await TpuEndpoint.open({
      quiche,
      clock: systemClock,
      settings,
      credentials,
      report: (event) => this.#report(event),
      changed: () => this.#scheduleLeaderReport(),
    });
    this.#answer({ kind: "opened" });
    for (const request of this.#early.splice(0)) this.handle(request);
  }

  handle(request: ThreadRequest): void {
    const endpoint = this.#endpoint;
    if (!endpoint) {
      this.#early.push(request);
      return;
    }
    if (request.kind === "send") {
      let at = 0;
      for (const { length, ...head } of request.requests) {
        endpoint.send({ ...head, bytes: request.bytes.subarray(at, at + length) });
        at += length;
      }
      this.#scheduleLeaderReport();
    } else if (request.kind === "aim") endpoint.selectLeaders(request.addresses);
    else if (request.kind === "identify") endpoint.identify(request.credentials);
    else if (request.kind === "ping") this.#answer({ kind: "pong" });
    else {
      endpoint.close();
      this.#reportEvents();
      this.#reportLeaders();
      this.#answer({ kind: "closed" });
      this.#end();
    }
  }

  #report(event: TpuEvent): void {
    this.#events.push(event);
    this.#batch ??= systemClock.after(batchMs, () => this.#reportEvents());
    this.#scheduleLeaderReport();
  }

  #reportEvents(): void {
    this.#batch?.cancel();
    this.#batch = undefined;
    const events = this.#events;
    this.#events = [];
    if (events.length > 0) this.#answer({ kind: "events", events });
  }

  #scheduleLeaderReport(): void {
    this.#leaders ??= systemClock.after(leadersMs, () => this.#reportLeaders());
  }

  #reportLeaders(): void {
    this.#leaders?.cancel();
    this.#leaders = undefined;
    const endpoint = this.#endpoint;
    if (!endpoint) return;
    this.#answer({ kind: "leaders", leaders: endpoint.leaders() });
    const { packets, last } = endpoint.failures;
    if (packets === this.#failedPackets) return;
    this.#failedPackets = packets;
    this.#answer({ kind: "trouble", message: `${packets} packets could not be sent: ${last}` });
  }
}

function serve(options: ThreadOptions): void {
  const port = parentPort;
  if (!port) throw new Error("tpu-worker must be started as a worker thread");
  const worker = new TpuWorker(
    (answer) => port.postMessage(answer),
    () => port.close(),
  );
  port.on("message", (request: ThreadRequest) => worker.handle(request));
  worker.open(options).catch((error: unknown) => {
    port.postMessage({ kind: "refused", message: messageOf(error) } satisfies ThreadAnswer);
    port.close();
  });
}

const options: ThreadOptions = workerData;
serve(options);
