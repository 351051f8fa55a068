// The thread of the direct route: requests in, what became of the transactions out.
//
// Started by tpu-thread.ts. Sockets, connections and their timers live here, so that encrypting and
// acknowledging never stall the event loop of the gateway. Events are told in lots: they carry their
// own times, and a message for each would cost more than sending. What cannot be opened is the answer
// "refused", and the end of the thread.

import { parentPort, workerData } from "node:worker_threads";
import { systemClock, type Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { TpuEndpoint } from "./endpoint.ts";
import { loadQuiche, quicheProblem } from "./quiche.ts";
import type { ThreadAnswer, ThreadOptions, ThreadRequest, TpuEvent } from "./types.ts";

/** What is told together. */
const lotMs = 1;
const leadersMs = 100;

class Service {
  readonly #answer: (answer: ThreadAnswer) => void;
  readonly #end: () => void;
  #endpoint: TpuEndpoint | null = null;
  /** Of requests that came before the sockets were there. */
  readonly #early: ThreadRequest[] = [];
  #events: TpuEvent[] = [];
  #lot: Timer | undefined;
  #leaders: Timer | undefined;
  #failedPackets = 0;

  constructor(answer: (answer: ThreadAnswer) => void, end: () => void) {
    this.#answer = answer;
    this.#end = end;
  }

  async open({ settings, credentials }: ThreadOptions): Promise<void> {
    const quiche = loadQuiche();
    if (!quiche) throw new Error(quicheProblem() ?? "no QUIC here");
    this.#endpoint = await TpuEndpoint.open({
      quiche,
      clock: systemClock,
      settings,
      credentials,
      tell: (event) => this.#tell(event),
      changed: () => this.#tellLeadersSoon(),
    });
    this.#answer({ kind: "opened" });
    for (const request of this.#early.splice(0)) this.take(request);
  }

  take(request: ThreadRequest): void {
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
      this.#tellLeadersSoon();
    } else if (request.kind === "aim") endpoint.aim(request.addresses);
    else if (request.kind === "identify") endpoint.identify(request.credentials);
    else if (request.kind === "ping") this.#answer({ kind: "pong" });
    else {
      endpoint.close();
      this.#tellEvents();
      this.#tellLeaders();
      this.#answer({ kind: "closed" });
      this.#end();
    }
  }

  #tell(event: TpuEvent): void {
    this.#events.push(event);
    this.#lot ??= systemClock.after(lotMs, () => this.#tellEvents());
    this.#tellLeadersSoon();
  }

  #tellEvents(): void {
    this.#lot?.cancel();
    this.#lot = undefined;
    const events = this.#events;
    this.#events = [];
    if (events.length > 0) this.#answer({ kind: "events", events });
  }

  #tellLeadersSoon(): void {
    this.#leaders ??= systemClock.after(leadersMs, () => this.#tellLeaders());
  }

  #tellLeaders(): void {
    this.#leaders?.cancel();
    this.#leaders = undefined;
    const endpoint = this.#endpoint;
    if (!endpoint) return;
    this.#answer({ kind: "leaders", leaders: endpoint.leaders() });
    const { packets, last } = endpoint.failures;
    if (packets === this.#failedPackets) return;
    this.#failedPackets = packets;
    this.#answer({ kind: "trouble", message: `${packets} packets did not leave: ${last}` });
  }
}

function serve(options: ThreadOptions): void {
  const port = parentPort;
  if (!port) throw new Error("expected to be started as a thread");
  const service = new Service(
    (answer) => port.postMessage(answer),
    () => port.close(),
  );
  port.on("message", (request: ThreadRequest) => service.take(request));
  service.open(options).catch((error: unknown) => {
    port.postMessage({ kind: "refused", message: messageOf(error) } satisfies ThreadAnswer);
    port.close();
  });
}

const options: ThreadOptions = workerData;
serve(options);
