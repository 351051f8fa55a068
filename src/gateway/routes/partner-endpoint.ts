// One partner endpoint: a bounded queue, connections, time-outs, health.
//
// http-route.ts combines one or more of them. A transaction leaves as soon as a connection is free,
// alone or together with others that wait. Nothing is resent here; the submission pipeline decides
// about resends. One timer enforces the time-outs, which run from the choice of a connection to the
// complete response. `report` is never called inside `offer`, but may be inside `flush`.

import type { Clock, Timer } from "../../core/clock.ts";
import { basicAuthorization, maskerOf } from "../../core/configuration/url-secrets.ts";
import type { Logger } from "../../core/log.ts";
import type { OutboundTransaction } from "../submission/types.ts";
import { ConnectProbe } from "./connect-probe.ts";
import type { Dialect, HttpAnswer } from "./dialect.ts";
import { OutboundQueue, type Waiting } from "./outbound-queue.ts";
import { PartnerConnection, type RequestFailure } from "./partner-connection.ts";
import { Health } from "./partner-health.ts";
import type { RouteCounter } from "./route-counts.ts";

/**
 * A timer that fires this late means that this process was blocked, not that the partner is slow.
 */
const stallNs = 20_000_000n;
const recheckMs = 10;
/** Interval for removing expired transactions from the queue. */
const sweepMs = 250;
const retryAfterMsMax = 60_000;
const failureLengthMax = 240;
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
  readonly counter: RouteCounter;
}

interface Request {
  readonly connection: PartnerConnection;
  /** Empty for a probe. */
  readonly waiting: readonly Waiting[];
  readonly firstId: number;
  readonly startedNs: bigint;
  isSent: boolean;
}

/** Alternating names and values; configured headers take precedence. */
function headersOf(
  url: URL,
  headers: Readonly<Record<string, string>>,
  contentType: string,
): string[] {
  const basic = basicAuthorization(url);
  const all = new Map([["content-type", contentType]]);
  if (basic !== null) all.set("authorization", basic);
  for (const [name, value] of Object.entries(headers)) all.set(name.toLowerCase(), value);
  return [...all].flat();
}

export class PartnerEndpoint {
  readonly #options: PartnerEndpointOptions;
  readonly #clock: Clock;
  readonly #log: Logger | undefined;
  readonly #counter: RouteCounter;
  readonly #health: Health;
  readonly #connectProbe: ConnectProbe;
  readonly #mask: (text: string) => string;
  readonly #headers: string[];
  readonly #queue = new OutboundQueue();
  readonly #idle: PartnerConnection[] = [];
  /** All connections, idle or busy. */
  #connectionCount = 0;
  /** Running requests, oldest first. */
  readonly #underWay = new Set<Request>();
  #nextId = 1;
  #isPumpDue = false;
  #isPumping = false;
  /** `flush` sent something in this turn of the event loop. */
  #isFlushed = false;
  #timeout: Timer | undefined;
  #sweep: Timer | undefined;
  #closing: { readonly closed: Promise<void>; readonly finish: () => void } | undefined;

  constructor(
    options: PartnerEndpointOptions,
    { clock, log, counter }: PartnerEndpointDependencies,
  ) {
    const { url, headers, dialect } = options;
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
    this.#counter = counter;
    this.#mask = maskerOf(url, headers);
    this.#headers = headersOf(url, headers, dialect.contentType);
    this.#health = new Health(clock, {
      connect: () => this.#connectProbe.start(),
      probe: () => this.#probe(),
      usable: () => this.#pump(),
      changed: (isUp, failure) => this.#healthChanged(isUp, failure),
    });
    this.#connectProbe = new ConnectProbe(options, (failure) =>
      this.#health.connected(failure === null ? null : this.#describe(failure)),
    );
    this.#health.start();
  }

  get isUp(): boolean {
    return this.#health.isUp;
  }

  /** Whether it is up is not known yet. */
  get isUnknown(): boolean {
    return this.#health.isUnknown;
  }

  /** Masked text; empty if there was no failure. */
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
      for (const lane of this.#idle.splice(0)) lane.close();
      for (const request of this.#underWay) {
        if (request.waiting.length > 0) continue;
        request.connection.cut();
        this.#over(request);
      }
      this.#finishWhenIdle();
    }
    return this.#closing.closed;
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
    } finally {
      this.#isPumping = false;
    }
  }

  #startRequests(): void {
    while (this.#free > 0 && this.#health.isUp && !this.#isClosed) {
      if (this.#health.isProving && this.#underWay.size > 0) return;
      const waiting = this.#take();
      if (waiting.length === 0) return;
      // The report of a dropped transaction may have made its listener close the route.
      if (!this.#isClosed) {
        this.#start(waiting);
        continue;
      }
      for (const { outbound } of waiting) this.#counter.drop(outbound, "route_closed");
    }
  }

  /** Removes the transactions of the next request: its share of the queue, all with one path. */
  #take(): Waiting[] {
    const { dialect } = this.#options;
    const callsMax = Math.min(dialect.callsMax, Math.ceil(this.#queue.length / this.#free));
    const requests: Waiting[] = [];
    const nowNs = this.#clock.nowNs();
    let path = "";
    let next = this.#queue.first;
    while (next && requests.length < callsMax) {
      const isExpired = next.outbound.deadlineNs < nowNs;
      const own = callsMax > 1 ? dialect.pathOf(next.outbound) : "";
      if (!isExpired && requests.length > 0 && own !== path) break;
      this.#queue.shift();
      if (isExpired) {
        this.#counter.drop(next.outbound, "deadline_passed");
      } else {
        path = own;
        requests.push(next);
      }
      next = this.#queue.first;
    }
    if (!next) this.#cancelSweep();
    return requests;
  }

  #start(waiting: readonly Waiting[]): void {
    const { dialect } = this.#options;
    const batch = waiting.map(({ outbound }) => outbound);
    const [first] = batch;
    if (!first) return;
    const firstId = this.#nextId;
    this.#nextId = firstId + batch.length > idMax ? 1 : firstId + batch.length;
    const body = dialect.write(batch, firstId);
    for (const _ of batch) this.#counter.leaveQueue();
    this.#send("POST", dialect.pathOf(first), body, { waiting, firstId });
  }

  #send(
    method: "POST" | "GET",
    path: string,
    body: Uint8Array | null,
    { waiting, firstId }: Pick<Request, "waiting" | "firstId">,
  ): void {
    const lane = this.#takeConnection();
    if (!lane) return;
    const startedNs = this.#clock.monotonicNs();
    const request: Request = { connection: lane, waiting, firstId, startedNs, isSent: false };
    this.#underWay.add(request);
    this.#timeout ??= this.#clock.after(this.#options.timeoutMs, () => this.#cutLate());
    lane.send(
      { method, path, headers: this.#headers, body },
      {
        sent: () => this.#sent(request),
        answered: (answer, retryAfter) => this.#answered(request, answer, retryAfter),
        failed: (failure) => this.#failed(request, failure),
      },
    );
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
    const at = this.#idle.findLastIndex((lane) => lane.isConnected);
    if (at >= 0) return this.#idle.splice(at, 1)[0];
    const unused = this.#idle.pop();
    if (unused || this.#connectionCount >= this.#options.connections) return unused;
    this.#connectionCount++;
    return new PartnerConnection(this.#options.url.origin);
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
      if (fault !== null) this.#health.failed(this.#describe(fault), false);
      else this.#health.succeeded();
      if (retryAfter !== null) this.#pauseFor(retryAfter);
      for (const [place, outbound] of batch.entries()) {
        this.#counter.end(
          outbound,
          verdicts[place] ?? { kind: "failed", reason: "answer_missing" },
        );
      }
    }
    this.#afterwards();
  }

  #failed(request: Request, { reason, text, isUnreachable }: RequestFailure): void {
    this.#over(request);
    this.#endFailed(request, reason, this.#describe(`${reason}: ${text}`), isUnreachable);
    this.#afterwards();
  }

  #endFailed(request: Request, reason: string, failure: string, isUnreachable: boolean): void {
    if (request.waiting.length === 0) this.#health.probed(failure);
    else this.#health.failed(failure, isUnreachable);
    for (const { outbound } of request.waiting)
      this.#counter.end(outbound, { kind: "failed", reason, isUnsent: isUnreachable });
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
    for (const request of this.#underWay) {
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
    this.#underWay.delete(request);
    if (this.#closing) request.connection.close();
    else this.#idle.push(request.connection);
    if (this.#underWay.size > 0) return;
    this.#timeout?.cancel();
    this.#timeout = undefined;
  }

  #afterwards(): void {
    if (this.#closing) this.#finishWhenIdle();
    else this.#pump();
  }

  #finishWhenIdle(): void {
    if (this.#underWay.size === 0) this.#closing?.finish();
  }

  /** Retry-After per RFC 9110: seconds or a date. */
  #pauseFor(retryAfter: string): void {
    const seconds = /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : Number.NaN;
    const untilMs = Number.isNaN(seconds) ? Date.parse(retryAfter) : Number.NaN;
    const nowMs = Number(this.#clock.nowNs() / 1_000_000n);
    const ms = Math.min(retryAfterMsMax, Number.isNaN(seconds) ? untilMs - nowMs : seconds * 1000);
    if (!(ms > 0)) return;
    this.#health.pauseFor(
      ms,
      this.#describe(`rate_limited: the partner requested a pause of ${Math.ceil(ms / 1000)} s`),
    );
  }

  #probe(): void {
    if (this.#free === 0 || this.#closing) {
      // Earlier requests still use every connection; they end within the time-out.
      this.#health.probed(this.#health.lastFailure);
      return;
    }
    const { pathname, search } = this.#options.url;
    this.#send("GET", `${pathname}${search}`, null, { waiting: [], firstId: 0 });
  }

  #healthChanged(isUp: boolean, failure: string): void {
    const { name, url } = this.#options;
    const fields = { route: name, host: url.host, failure };
    if (isUp) this.#log?.info(fields, "routes: a route is up again");
    else this.#log?.warn(fields, "routes: a route is down");
    if (!isUp) this.#dropQueue("route_down");
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
    for (const { outbound } of late) this.#counter.drop(outbound, "deadline_passed");
  }

  #cancelSweep(): void {
    this.#sweep?.cancel();
    this.#sweep = undefined;
  }

  #describe(text: string): string {
    const described = `${this.#options.url.host}: ${this.#mask(text)}`;
    const line = described.replaceAll(/\s+/g, " ");
    return line.length > failureLengthMax ? `${line.slice(0, failureLengthMax)}...` : line;
  }
}
