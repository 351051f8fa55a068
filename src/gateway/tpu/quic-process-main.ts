// The process of the QUIC connections: receives requests and reports the results of transactions.
//
// Started by quic-process.ts with a socket as descriptor 3. The QUIC library is native code that
// parses data of leaders, so it runs in a process of its own, which is confined before the first
// packet. Events are reported in batches with their own times, because a message per event would
// cost more than sending. The process ends when the gateway closes the socket or ends itself.

import { systemClock, type Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import {
  confineThisProcess,
  PacketFailures,
  requireQuiche,
  serveChannel,
} from "./confined-main.ts";
import { TpuEndpoint } from "./endpoint.ts";
import { decodeRequest, encodeAnswer, requestBytesMax } from "./messages.ts";
import type { ProcessAnswer, ProcessRequest, TpuEvent } from "./types.ts";

/** Minimum interval of batches of events. */
const batchMs = 1;
const batchNs = 1_000_000n;
const leadersMs = 100;

type OpenRequest = Extract<ProcessRequest, { kind: "open" }>;

class Main {
  readonly #answer: (answer: ProcessAnswer) => void;
  readonly #end: () => void;
  #endpoint: TpuEndpoint | null = null;
  /** Requests that came before the sockets were open. */
  readonly #early: ProcessRequest[] = [];
  #events: TpuEvent[] = [];
  #batch: Timer | undefined;
  /** When the last batch was sent; monotonic. */
  #batchNs = 0n;
  #isBatchDue = false;
  #leaders: Timer | undefined;
  readonly #failures: PacketFailures;

  constructor(answer: (answer: ProcessAnswer) => void, end: () => void) {
    this.#answer = answer;
    this.#end = end;
    this.#failures = new PacketFailures(answer);
  }

  handle(request: ProcessRequest): void {
    const endpoint = this.#endpoint;
    if (request.kind === "ping") this.#answer({ kind: "pong" });
    else if (request.kind === "open") {
      this.#open(request).catch((error: unknown) => {
        this.#answer({ kind: "refused", message: messageOf(error) });
        this.#end();
      });
    } else if (!endpoint) this.#early.push(request);
    else if (request.kind === "send") {
      for (const one of request.requests) endpoint.send(one);
      this.#scheduleLeaderReport();
    } else if (request.kind === "aim") endpoint.selectLeaders(request.addresses);
    else if (request.kind === "identify") endpoint.identify(request.credentials);
    else {
      endpoint.close();
      this.#reportEvents();
      this.#reportLeaders();
      this.#end();
    }
  }

  async #open({ settings, credentials }: OpenRequest): Promise<void> {
    this.#endpoint = await TpuEndpoint.open({
      quiche: requireQuiche(),
      clock: systemClock,
      settings,
      credentials,
      report: (event) => this.#report(event),
      changed: () => this.#scheduleLeaderReport(),
    });
    this.#answer({ kind: "opened", unconfined: confineThisProcess() });
    for (const request of this.#early.splice(0)) this.handle(request);
  }

  #report(event: TpuEvent): void {
    this.#events.push(event);
    this.#batch ??= systemClock.after(batchMs, () => this.#reportEvents());
    this.#scheduleLeaderReport();
    if (event.kind === "sent" || this.#isBatchDue) return;
    if (systemClock.monotonicNs() - this.#batchNs < batchNs) return;
    // A final event ends the wait: the other events of this turn go with it, and the timer need not run.
    this.#isBatchDue = true;
    setImmediate(() => this.#reportEvents());
  }

  #reportEvents(): void {
    this.#batch?.cancel();
    this.#batch = undefined;
    this.#isBatchDue = false;
    this.#batchNs = systemClock.monotonicNs();
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
    this.#failures.report(endpoint.failures);
  }
}

serveChannel({
  requestBytesMax,
  decode: decodeRequest,
  encode: encodeAnswer,
  create: (answer, end) => new Main(answer, end),
});
