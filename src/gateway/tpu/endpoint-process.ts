// The work of the process of the QUIC connections: it receives requests and reports the results of transactions.
//
// Events are reported in batches with their own times, because a message per event would cost more than
// sending. The process ends when the gateway closes the channel or ends itself.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { Quiche } from "../../core/quic/quiche.ts";
import { TpuEndpoint } from "./endpoint.ts";
import { PacketFailures } from "./packet-failures.ts";
import type { ProcessAnswer, ProcessRequest, TpuEvent } from "./types.ts";
import type { OpenTpuSockets } from "./udp-sockets.ts";

/** Minimum interval of batches of events. */
const batchMs = 1;
const batchNs = 1_000_000n;
const leadersMs = 100;

type OpenRequest = Extract<ProcessRequest, { kind: "open" }>;

interface EndpointProcessOptions {
  readonly clock: Clock;
  /** Throws if the library is missing. */
  readonly quiche: () => Quiche;
  /** Default: those of the kernel. */
  readonly openSockets?: OpenTpuSockets | undefined;
  /** Returns the steps of the confinement that the system refused; empty: none. */
  readonly confine: () => string;
  /** Runs an action in the next turn of the event loop. */
  readonly inNextTurn: (action: () => void) => void;
  readonly answer: (answer: ProcessAnswer) => void;
  /** Ends the process after its last answer. */
  readonly end: () => void;
}

export class EndpointProcess {
  readonly #options: EndpointProcessOptions;
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

  constructor(options: EndpointProcessOptions) {
    this.#options = options;
    this.#failures = new PacketFailures(options.answer);
  }

  handle(request: ProcessRequest): void {
    const endpoint = this.#endpoint;
    if (request.kind === "ping") this.#options.answer({ kind: "pong" });
    else if (request.kind === "open") {
      this.#open(request).catch((error: unknown) => {
        this.#options.answer({ kind: "refused", message: messageOf(error) });
        this.#options.end();
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
      this.#options.end();
    }
  }

  async #open({ settings, credentials }: OpenRequest): Promise<void> {
    const { quiche, clock, openSockets, confine } = this.#options;
    this.#endpoint = await TpuEndpoint.open({
      quiche: quiche(),
      clock,
      openSockets,
      settings,
      credentials,
      report: (event) => this.#report(event),
      changed: () => this.#scheduleLeaderReport(),
    });
    this.#options.answer({ kind: "opened", unconfined: confine() });
    for (const request of this.#early.splice(0)) this.handle(request);
  }

  #report(event: TpuEvent): void {
    this.#events.push(event);
    this.#batch ??= this.#options.clock.after(batchMs, () => this.#reportEvents());
    this.#scheduleLeaderReport();
    if (event.kind === "sent" || this.#isBatchDue) return;
    if (this.#options.clock.monotonicNs() - this.#batchNs < batchNs) return;
    // A final event ends the wait: the other events of this turn go with it, and the timer need not run.
    this.#isBatchDue = true;
    this.#options.inNextTurn(() => this.#reportEvents());
  }

  #reportEvents(): void {
    this.#batch?.cancel();
    this.#batch = undefined;
    this.#isBatchDue = false;
    this.#batchNs = this.#options.clock.monotonicNs();
    const events = this.#events;
    this.#events = [];
    if (events.length > 0) this.#options.answer({ kind: "events", events });
  }

  #scheduleLeaderReport(): void {
    this.#leaders ??= this.#options.clock.after(leadersMs, () => this.#reportLeaders());
  }

  #reportLeaders(): void {
    this.#leaders?.cancel();
    this.#leaders = undefined;
    const endpoint = this.#endpoint;
    if (!endpoint) return;
    this.#options.answer({ kind: "leaders", leaders: endpoint.leaders() });
    this.#failures.report(endpoint.failures);
  }
}
