// One partner endpoint: a bounded queue, connections, time-outs, health.
//
// http-route.ts combines one or more of them. A transaction leaves as soon as a connection is free, alone or
// together with others that wait. Idle connections are lent to the fast path. One timer enforces the time-outs,
// from the choice of a connection to the complete response. `report` is never called inside `offer`, but may be
// inside `flush`. Nothing is resent here, except once if the partner closed the idle connection at that
// moment: a signature makes the request idempotent.

import type { Clock, Timer } from "../../core/clock.ts";
import { maskerOf } from "../../core/configuration/url-secrets.ts";
import type { Logger } from "../../core/log.ts";
import type { RouteLoans } from "../fast-path/route-loans.ts";
import type { FastSend } from "../submission/taken-request.ts";
import type { OutboundTransaction, RouteCapabilities, RouteSnapshot } from "../submission/types.ts";
import { ConnectProbe } from "./connect-probe.ts";
import { type Dialect, type HttpAnswer, isOutOfStep, type Verdict } from "./dialect.ts";
import { headersOf } from "./endpoint-headers.ts";
import { EndpointLoans } from "./endpoint-loans.ts";
import { OutboundQueue, Request, type Waiting } from "./outbound-queue.ts";
import {
  type HttpCall,
  PartnerConnection,
  type RequestFailure,
  type RequestListener,
} from "./partner-connection.ts";
import { failureLine, Health, retryAfterMs } from "./partner-health.ts";
import type { PartnerNetwork } from "./partner-network.ts";
import type { RouteCounter } from "./route-counts.ts";

const unanswered: Verdict = { kind: "failed", reason: "answer_missing" };
/** A timer that fires this late means that this process was blocked, not that the partner is slow. */
const stallNs = 20_000_000n;
const recheckMs = 10;
/** Interval for removing expired transactions from the queue. */
const sweepMs = 250;
const idMax = 2 ** 31;

export interface PartnerEndpointOptions {
  /** Name of the route, for the log. */
  readonly name: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly dialect: Dialect;
  readonly connections: number;
  /** Queue limit of the whole route. */
  readonly queueMax: number;
  readonly timeoutMs: number;
}

interface PartnerEndpointDependencies {
  readonly clock: Clock;
  readonly log: Logger | undefined;
  readonly network: PartnerNetwork;
  readonly counter: RouteCounter;
  /** null: the fast path does not use it. */
  readonly loans: RouteLoans | null;
  readonly capabilities: Pick<RouteCapabilities, "minimumTipLamports" | "transactionBytesMax">;
}

export class PartnerEndpoint {
  readonly #options: PartnerEndpointOptions;
  readonly #clock: Clock;
  readonly #log: Logger | undefined;
  readonly #network: PartnerNetwork;
  readonly #counter: RouteCounter;
  readonly #loans: EndpointLoans | null;
  readonly #health: Health;
  readonly #connectProbe: ConnectProbe;
  readonly #mask: (text: string) => string;
  readonly #headers: string[];
  readonly #queue = new OutboundQueue();
  readonly #idle: PartnerConnection[] = [];
  #connectionCount = 0;
  /** Running requests, oldest first: at most one for each connection. */
  readonly #underWay: Request[] = [];
  #nextId = 1;
  #isPumpDue = false;
  #isPumping = false;
  /** `flush` sent something in this turn of the event loop. */
  #isFlushed = false;
  #timeout: Timer | undefined;
  #sweep: Timer | undefined;
  readonly #dropLate = ({ outbound }: Waiting): void =>
    this.#counter.drop(outbound, "deadline_passed");
  #closing: { readonly closed: Promise<void>; readonly finish: () => void } | undefined;

  constructor(
    options: PartnerEndpointOptions,
    { clock, log, network, counter, loans, capabilities }: PartnerEndpointDependencies,
  ) {
    const { url, headers, dialect } = options;
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
    this.#network = network;
    this.#counter = counter;
    this.#mask = maskerOf(url, headers);
    this.#headers = headersOf(url, headers, dialect.contentType);
    const { plainPath: path } = dialect; // absent: the fast path cannot write its requests
    const form = path === undefined ? null : { url, path, headers: this.#headers, capabilities };
    this.#loans = loans && form && new EndpointLoans(loans, form);
    if (loans) loans.onAbandoned = (send) => void this.#adopt(send, []);
    this.#health = new Health(clock, {
      connect: () => this.#connectProbe.start(),
      probe: () => this.#probe(),
      usable: () => this.#pump(),
      stopped: () => {
        this.#reclaimIdle();
        this.#dropQueue("route_down");
      },
      changed: (isUp, failure) => this.#healthChanged(isUp, failure),
    });
    this.#connectProbe = new ConnectProbe({ ...options, network }, (failure) =>
      this.#health.connected(failure === null ? null : this.#describe(failure)),
    );
    this.#health.start();
  }

  get isUp(): boolean {
    return this.#health.isUp;
  }

  get health(): RouteSnapshot["health"] {
    return this.#health.shown;
  }

  /** Masked; empty: none. */
  get lastFailure(): string {
    return this.#health.lastFailure;
  }

  get lastFailureNs(): bigint | null {
    return this.#health.lastFailureNs;
  }

  /**
   * Returns false if the endpoint is full, down or closed. The counter counts the transaction in
   * any case.
   */
  offer(outbound: OutboundTransaction): boolean {
    const send = this.#loans && outbound.taken?.adopt(this.#loans.route);
    if (send) return this.#offerSent(outbound, send);
    if (this.#closing || !this.isUp || this.#counter.queued >= this.#options.queueMax) {
      this.#counter.turnAway();
      return false;
    }
    this.#counter.queue();
    this.#queue.push({ outbound, offeredNs: this.#clock.monotonicNs() });
    this.#sweep ??= this.#clock.after(sweepMs, () => this.#sweepQueue());
    this.#pumpSoon();
    return true;
  }

  #offerSent(outbound: OutboundTransaction, send: FastSend): true {
    this.#counter.queue();
    this.#counter.leaveQueue();
    const offeredNs = outbound.taken?.takenNs ?? send.sentNs;
    this.#counter.send(outbound, offeredNs, send.sentNs);
    const isAdopted = this.#adopt(send, [{ outbound, offeredNs }]);
    if (!isAdopted) this.#counter.end(outbound, { kind: "failed", reason: "connection_lost" });
    return true;
  }

  /** Waits for the answer to a request of the fast path; false: its connection was closed. */
  #adopt({ loan, id: firstId, sentNs: startedNs }: FastSend, waiting: readonly Waiting[]): boolean {
    const connection = this.#loans?.connectionOf(loan);
    if (connection?.loanNumber !== loan) return false;
    const place = this.#idle.indexOf(connection);
    if (place >= 0) this.#idle.splice(place, 1);
    const request = new Request({ connection, waiting, firstId, startedNs });
    request.isSent = true;
    this.#begin(request);
    connection.adopt(this.#listenerOf(request));
    return true;
  }

  /**
   * Sends the first transaction of this turn. Others that are offered in the same turn share the free
   * connections at its end, as arrays.
   */
  flush(): void {
    if (!this.#isPumpDue || this.#isFlushed) return;
    this.#isFlushed = true;
    this.#pump();
  }

  /** Settles when all requests have ended or timed out. Idempotent. */
  close(): Promise<void> {
    if (!this.#closing) {
      let finish: () => void = () => undefined;
      const closed = new Promise<void>((resolve) => {
        finish = resolve;
      });
      this.#closing = { closed, finish };
      this.#health.close();
      this.#connectProbe.cancel();
      this.#dropQueue("route_closed");
      this.#closeIdle();
      const probes = this.#underWay.filter(({ waiting }) => waiting.length === 0);
      for (const request of probes) {
        request.connection.cut();
        this.#over(request);
      }
      this.#finishWhenIdle();
    }
    return this.#closing.closed;
  }

  /** Requests of the fast path may still be adopted, until they would be late. */
  #closeIdle(): void {
    for (const lane of this.#idle.splice(0)) {
      if (lane.reclaim()) lane.close();
      else this.#idle.push(lane);
    }
    if (this.#idle.length === 0) return;
    this.#sweep = this.#clock.after(this.#options.timeoutMs, () => {
      for (const lane of this.#idle.splice(0)) lane.close();
      this.#finishWhenIdle();
    });
  }

  /** Runs the queue after this event-loop turn, never inside `offer`. */
  #pumpSoon(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    queueMicrotask(() => {
      this.#isPumpDue = false;
      this.#isFlushed = false;
      this.#pump();
    });
  }

  /** Reports may offer, flush or end requests: the running loop takes what they change. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      this.#startRequests();
      this.#lendIdle();
    } finally {
      this.#isPumping = false;
    }
  }

  /** Nothing waits: the fast path may use the open connections. */
  #lendIdle(): void {
    const { isUp, isProving } = this.#health;
    if (!isUp || isProving || this.#isClosed || this.#queue.length > 0) return;
    this.#loans?.lend(this.#idle, this.#clock.monotonicNs());
  }

  /** Nothing more is written to idle connections, except what the fast path has begun. */
  #reclaimIdle(): void {
    for (const connection of this.#idle) connection.reclaim();
  }

  #startRequests(): void {
    while (this.#queue.length > 0 && this.#free > 0 && this.#health.isUp && !this.#isClosed) {
      if (this.#health.isProving && this.#underWay.length > 0) return;
      const connection = this.#takeConnection();
      if (!connection) return;
      const waiting = this.#take();
      // The report of a dropped transaction may have made its listener close the route.
      if (!this.#isClosed && waiting.length > 0) {
        this.#start(connection, waiting);
        continue;
      }
      if (this.#isClosed) connection.close();
      else this.#idle.push(connection);
      for (const { outbound } of waiting) this.#counter.drop(outbound, "route_closed");
    }
  }

  /** Removes the transactions of the next request: its share of the queue, all with one path. */
  #take(): Waiting[] {
    const { dialect } = this.#options;
    // One connection was taken for them.
    const share = Math.ceil(this.#queue.length / (this.#free + 1));
    const callsMax = Math.min(dialect.callsMax, share);
    const waiting = this.#queue.take(callsMax, this.#clock.nowNs(), dialect, this.#dropLate);
    if (this.#queue.length === 0) this.#cancelSweep();
    return waiting;
  }

  #start(connection: PartnerConnection, waiting: readonly Waiting[]): void {
    const [first] = waiting;
    if (!first) return;
    const firstId = this.#nextId;
    this.#nextId = firstId + waiting.length > idMax ? 1 : firstId + waiting.length;
    const call = this.#callOf(first, waiting, firstId);
    for (const _ of waiting) this.#counter.leaveQueue();
    const startedNs = this.#clock.monotonicNs();
    this.#send(call, new Request({ connection, waiting, firstId, startedNs }));
  }

  #callOf({ outbound }: Waiting, waiting: readonly Waiting[], firstId: number): HttpCall {
    const { dialect } = this.#options;
    const batch = waiting.map((one) => one.outbound);
    const body = dialect.write(batch, firstId);
    return { method: "POST", path: dialect.pathOf(outbound), headers: this.#headers, body };
  }

  #send(call: HttpCall, request: Request): void {
    this.#begin(request);
    request.connection.send(call, this.#listenerOf(request));
  }

  #begin(request: Request): void {
    this.#underWay.push(request);
    this.#timeout ??= this.#clock.after(this.#options.timeoutMs, () => this.#cutLate());
  }

  #listenerOf(request: Request): RequestListener {
    return {
      sent: () => this.#sent(request),
      answered: (answer, retryAfter) => this.#answered(request, answer, retryAfter),
      failed: (failure) => this.#failed(request, failure),
    };
  }

  get #isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** Number of connections that can send a request. */
  get #free(): number {
    return this.#idle.length + this.#options.connections - this.#connectionCount;
  }

  /** The most recently used open connection; a new one if none is open. */
  #takeConnection(): PartnerConnection | undefined {
    const isFree = (lane: PartnerConnection): boolean => lane.reclaim();
    const at = this.#idle.findLastIndex((lane) => lane.isConnected && isFree(lane));
    const place = at >= 0 ? at : this.#idle.findLastIndex(isFree);
    if (place >= 0) return this.#idle.splice(place, 1)[0];
    if (this.#connectionCount >= this.#options.connections) return undefined;
    this.#connectionCount++;
    const { origin } = this.#options.url;
    return new PartnerConnection(origin, { clock: this.#clock, network: this.#network });
  }

  #sent(request: Request): void {
    if (request.isSent) return;
    request.isSent = true;
    for (const { outbound, offeredNs } of request.waiting) this.#counter.send(outbound, offeredNs);
  }

  #answered(request: Request, answer: HttpAnswer, retryAfter: string | null): void {
    this.#over(request);
    if (request.waiting.length === 0) {
      // Any response below 500 to a probe shows that the partner is reachable.
      this.#health.probed(
        answer.status >= 500 ? this.#describe(`HTTP status ${answer.status}`) : null,
      );
    } else {
      // The callback of the last write may come after the response.
      this.#sent(request);
      const batch = request.waiting.map(({ outbound }) => outbound);
      const { verdicts, fault } = this.#options.dialect.read(answer, batch, request.firstId);
      if (isOutOfStep(verdicts)) request.connection.cut();
      const kind = answer.status >= 500 ? "partner" : "answer";
      if (fault !== null) this.#health.failed(this.#describe(fault), kind);
      else this.#health.succeeded();
      if (retryAfter !== null) this.#pauseFor(retryAfter);
      for (const [place, outbound] of batch.entries()) {
        this.#counter.end(outbound, verdicts[place] ?? unanswered);
      }
    }
    this.#afterwards();
  }

  #failed(request: Request, failure: RequestFailure): void {
    if (failure.isStale && this.#repeat(request)) return;
    const { reason, text, isUnreachable } = failure;
    this.#over(request);
    this.#endFailed(request, reason, this.#describe(`${reason}: ${text}`), isUnreachable);
    this.#afterwards();
  }

  /** Writes the request to a new connection, within its time-out; false: it may not be repeated. */
  #repeat(request: Request): boolean {
    const { connection, waiting, firstId, isRepeated } = request;
    const [first] = waiting;
    const nowNs = this.#clock.nowNs();
    const isLate = waiting.some(({ outbound }) => outbound.deadlineNs < nowNs);
    if (!first || isRepeated || isLate || this.#isClosed) return false;
    request.isRepeated = true;
    connection.send(this.#callOf(first, waiting, firstId), this.#listenerOf(request));
    return true;
  }

  #endFailed(request: Request, reason: string, failure: string, isUnreachable: boolean): void {
    if (request.waiting.length === 0) this.#health.probed(failure);
    else this.#health.failed(failure, isUnreachable ? "unreachable" : "partner");
    const isUnsent = isUnreachable && !request.isRepeated;
    for (const { outbound } of request.waiting)
      this.#counter.end(outbound, { kind: "failed", reason, isUnsent });
  }

  #cutLate(isRecheck = false): void {
    this.#timeout = undefined;
    const { timeoutMs } = this.#options;
    const lateNs = this.#clock.monotonicNs() - BigInt(timeoutMs) * 1_000_000n;
    const [oldest] = this.#underWay;
    if (!isRecheck && oldest && lateNs - oldest.startedNs > stallNs) {
      // This process was blocked: the response may be in the socket buffer, unread.
      this.#timeout = this.#clock.after(recheckMs, () => this.#cutLate(true));
      return;
    }
    for (let [request] = this.#underWay; request; [request] = this.#underWay) {
      if (request.startedNs > lateNs) {
        const restMs = Number(request.startedNs - lateNs) / 1e6;
        this.#timeout = this.#clock.after(restMs, () => this.#cutLate());
        break;
      }
      const isUnreachable = !request.connection.cut();
      this.#over(request);
      const reason = isUnreachable ? "connect_timeout" : "timeout";
      const failure = this.#describe(`${reason}: no response within ${timeoutMs} ms`);
      this.#endFailed(request, reason, failure, isUnreachable);
    }
    this.#afterwards();
  }

  #over(request: Request): void {
    const place = this.#underWay.indexOf(request);
    if (place >= 0) this.#underWay.splice(place, 1);
    if (this.#closing) request.connection.close();
    else this.#idle.push(request.connection);
    if (this.#underWay.length > 0) return;
    this.#timeout?.cancel();
    this.#timeout = undefined;
  }

  #afterwards(): void {
    if (this.#closing) this.#finishWhenIdle();
    else this.#pump();
  }

  #finishWhenIdle(): void {
    if (this.#underWay.length + this.#idle.length > 0) return;
    this.#cancelSweep();
    this.#closing?.finish();
  }

  #pauseFor(retryAfter: string): void {
    const ms = retryAfterMs(retryAfter, Number(this.#clock.nowNs() / 1_000_000n));
    if (ms === null) return;
    this.#reclaimIdle();
    this.#health.pauseFor(
      ms,
      this.#describe(`rate_limited: the partner requested a pause of ${Math.ceil(ms / 1000)} s`),
    );
  }

  #probe(): void {
    const connection = this.#closing ? undefined : this.#takeConnection();
    if (!connection) {
      // Earlier requests still use every connection; they end within the time-out.
      this.#health.probed(this.#health.lastFailure);
      return;
    }
    const { pathname, search } = this.#options.url;
    const [path, headers] = [`${pathname}${search}`, this.#headers];
    const call: HttpCall = { method: "GET", path, headers, body: null };
    const startedNs = this.#clock.monotonicNs();
    this.#send(call, new Request({ connection, waiting: [], firstId: 0, startedNs }));
  }

  #healthChanged(isUp: boolean, failure: string): void {
    const { name, url } = this.#options;
    const fields = { route: name, host: url.host, failure };
    if (isUp) this.#log?.info(fields, "routes: a route is up again");
    else this.#log?.warn(fields, "routes: a route is down");
  }

  #dropQueue(reason: string): void {
    this.#cancelSweep();
    for (const { outbound } of this.#queue.remove(() => true)) this.#counter.drop(outbound, reason);
  }

  #sweepQueue(): void {
    this.#sweep = undefined;
    const nowNs = this.#clock.nowNs();
    const late = this.#queue.remove(({ outbound }) => outbound.deadlineNs < nowNs);
    if (this.#queue.length > 0) {
      this.#sweep = this.#clock.after(sweepMs, () => this.#sweepQueue());
    }
    for (const one of late) this.#dropLate(one);
  }

  #cancelSweep(): void {
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  #describe(text: string): string {
    return failureLine(`${this.#options.url.host}: ${this.#mask(text)}`);
  }
}
