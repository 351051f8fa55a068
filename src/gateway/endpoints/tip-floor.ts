// /tip_floor and /tip_stream: what landed tips were lately, for everybody, without a key.
//
// Handed to the HTTP server by gateway.ts. Texts are made once per refresh and not per request. Both
// are bounded by the caller's address: so many questions in a second, so many streams at once. A
// stream pushes one snapshot, the element of the array that the path answers, at its beginning and
// after every refresh; what the peer says is not read.

import type { TipFloorEntry, WrittenInteger } from "../../client/responses.ts";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { writeJson } from "../../core/json-rpc/json-text.ts";
import type { TipFloor, TipSnapshot } from "../../tips/tip-types.ts";
import { callerOf, RateLimits } from "../accounts/rate-limits.ts";
import type { HttpHead, HttpResponse, WebSocketPeer, WebSocketRoute } from "../http/types.ts";
import type { LimitVerdict } from "../methods/dependencies.ts";
import { browserHeaders, jsonHeaders, plainRefusal } from "./answers.ts";
import { Query, uriChoice } from "./query.ts";

export const questionsPerSecond = 10;
export const streamsMax = 2;
/** Nothing can be asked for, so a peer sends no more than pings, pongs and a greeting. */
const messageLimits = { messagesPerSecond: 2, messagesBurst: 20, bytesPerSecond: 4096 } as const;
/** A larger message closes its peer. */
const messageBytesMax = 1024;
/** Some forty snapshots that were not read: ten hours of them, beside what the kernel holds. */
const backpressureBytesMax = 16 * 1024;
const idleSeconds = 60;
/** Callers whose questions are counted; the longest silent is forgotten. */
const callersMax = 65_536;
/** Streams that are served before others have their turn: about a millisecond. */
const streamsPerStep = 100;
/** A snapshot lives for a quarter of an hour; nobody shall tell an old one for long. */
const cacheControl = "public, max-age=5";

const formats = ["lamports", "sol"] as const;
type Format = (typeof formats)[number];
export const formatParameter = uriChoice(
  "format",
  formats,
  "unit of the amounts; sol: as block engines return them",
);

interface TipFloorDependencies {
  readonly clock: Clock;
  readonly tipFloor: TipFloor;
  /** 16 bytes. */
  readonly addressOf: (head: HttpHead) => Uint8Array;
}

/** JSON, written once for everybody. */
interface SnapshotText {
  readonly element: string;
  readonly array: string;
}

interface Stream {
  readonly caller: string;
  readonly format: Format;
}

/** Exact to 15 digits, as block engines write it. */
function solOf(lamports: bigint): number {
  return Number(lamports) / 1e9;
}

function elementOf(snapshot: TipSnapshot, format: Format): string {
  const amount = format === "sol" ? solOf : (lamports: bigint): bigint => lamports;
  const { percentiles, timeMs, emaP50, count, windowStartMs, isStale } = snapshot;
  const { p25, p50, p75, p95, p99 } = percentiles;
  const entry: TipFloorEntry<WrittenInteger> = {
    time: new Date(timeMs).toISOString(),
    landed_tips_25th_percentile: amount(p25),
    landed_tips_50th_percentile: amount(p50),
    landed_tips_75th_percentile: amount(p75),
    landed_tips_95th_percentile: amount(p95),
    landed_tips_99th_percentile: amount(p99),
    ...(format === "sol" && { ema_landed_tips_50th_percentile: amount(emaP50) }),
    count,
    window_start: new Date(windowStartMs).toISOString(),
    stale: isStale,
  };
  return writeJson(entry);
}

function textsOf(snapshot: TipSnapshot): Record<Format, SnapshotText> {
  const textOf = (format: Format): SnapshotText => {
    const element = elementOf(snapshot, format);
    return { element, array: `[${element}]` };
  };
  return { lamports: textOf("lamports"), sol: textOf("sol") };
}

function formatOf(head: HttpHead): Format | HttpResponse {
  if (head.query === "") return "lamports";
  try {
    return formatParameter.read(new Query(head.query));
  } catch (thrown) {
    return plainRefusal("value_invalid", messageOf(thrown));
  }
}

function limitHeaders({ limit, remaining, resetSeconds }: LimitVerdict): Record<string, string> {
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(resetSeconds),
  };
}

export class TipFloorHandler implements WebSocketRoute {
  readonly messageBytesMax = messageBytesMax;
  readonly messageLimits = messageLimits;
  readonly backpressureBytesMax = backpressureBytesMax;
  readonly idleSeconds = idleSeconds;
  readonly #dependencies: TipFloorDependencies;
  readonly #questions = new RateLimits(callersMax);
  readonly #handshakes = new RateLimits(callersMax);
  readonly #streams = new Map<WebSocketPeer, Stream>();
  readonly #perCaller = new Map<string, number>();
  #texts: Readonly<Record<Format, SnapshotText>>;

  constructor(dependencies: TipFloorDependencies) {
    this.#dependencies = dependencies;
    const { tipFloor } = dependencies;
    this.#texts = textsOf(tipFloor.snapshot);
    tipFloor.onRefresh((snapshot) => {
      this.#texts = textsOf(snapshot);
      this.#push([...this.#streams]);
    });
  }

  /** Open streams. */
  get count(): number {
    return this.#streams.size;
  }

  /** GET and HEAD /tip_floor. */
  answer(head: HttpHead): HttpResponse {
    const caller = callerOf(this.#dependencies.addressOf(head));
    const verdict = this.#take(this.#questions, caller);
    if (!verdict.allowed) return this.#tooMany("questions in a second", verdict);
    const format = formatOf(head);
    if (typeof format !== "string") return format;
    const isForBrowser = head.header("origin") !== undefined;
    return {
      status: 200,
      headers: {
        ...(isForBrowser ? browserHeaders : jsonHeaders),
        "cache-control": cacheControl,
        ...limitHeaders(verdict),
      },
      body: this.#texts[format].array,
    };
  }

  accept(head: HttpHead): HttpResponse | undefined {
    const caller = callerOf(this.#dependencies.addressOf(head));
    const verdict = this.#take(this.#handshakes, caller);
    if (!verdict.allowed) return this.#tooMany("handshakes in a second", verdict);
    if ((this.#perCaller.get(caller) ?? 0) >= streamsMax) {
      const message = `expected at most ${streamsMax} streams at once from an address, got one more`;
      return plainRefusal("rate_limited", message, { headers: { "retry-after": "1" } });
    }
    const format = formatOf(head);
    return typeof format === "string" ? undefined : format;
  }

  open(peer: WebSocketPeer, head: HttpHead): void {
    const caller = callerOf(this.#dependencies.addressOf(head));
    const format = formatOf(head);
    const stream = { caller, format: typeof format === "string" ? format : "lamports" } as const;
    this.#streams.set(peer, stream);
    this.#perCaller.set(caller, (this.#perCaller.get(caller) ?? 0) + 1);
    peer.send(this.#texts[stream.format].element);
  }

  message(): void {
    // Nothing can be asked for here.
  }

  closed(peer: WebSocketPeer): void {
    const stream = this.#streams.get(peer);
    if (!stream) return;
    this.#streams.delete(peer);
    const left = (this.#perCaller.get(stream.caller) ?? 1) - 1;
    if (left > 0) this.#perCaller.set(stream.caller, left);
    else this.#perCaller.delete(stream.caller);
  }

  /** Whoever closed meanwhile is passed over by the peer itself. */
  #push(waiting: (readonly [WebSocketPeer, Stream])[]): void {
    for (const [peer, { format }] of waiting.splice(0, streamsPerStep)) {
      peer.send(this.#texts[format].element);
    }
    if (waiting.length > 0) this.#dependencies.clock.after(0, () => this.#push(waiting));
  }

  #take(limits: RateLimits, caller: string): LimitVerdict {
    const limit = { requestsPerSecond: questionsPerSecond, burst: questionsPerSecond };
    return limits.take(caller, limit, this.#dependencies.clock.monotonicNs());
  }

  #tooMany(what: string, verdict: LimitVerdict): HttpResponse {
    const seconds = String(verdict.retryAfterSeconds);
    const message = `expected at most ${verdict.limit} ${what} from an address, got one more`;
    const headers = { "retry-after": seconds, ...limitHeaders(verdict) };
    return plainRefusal("rate_limited", message, { headers });
  }
}
