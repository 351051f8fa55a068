// /tip_floor and /tip_stream: public percentiles of recent landed tips.
//
// gateway.ts passes it to the HTTP server. The JSON is written once per refresh. Requests per
// second and open streams are limited per client address. A stream pushes one snapshot, the array
// element of /tip_floor, when it opens and after every refresh; it ignores messages.

import type { TipFloorEntry, WrittenInteger } from "../../client/responses.ts";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { writeJson } from "../../core/json-rpc/json-text.ts";
import type { TipFloor, TipSnapshot } from "../../tips/tip-types.ts";
import { callerOf } from "../accounts/rate-limits.ts";
import { WindowLimits } from "../accounts/window-limits.ts";
import {
  type HttpHead,
  type HttpResponse,
  type WebSocketPeer,
  type WebSocketRoute,
  webSocketIdleSeconds,
} from "../http/types.ts";
import type { LimitVerdict } from "../methods/dependencies.ts";
import type { StatementSigner } from "../receipts/types.ts";
import { invalid } from "../schema/shapes.ts";
import { browserHeaders, jsonHeaders, plainRefusal } from "./answers.ts";
import { Query, uriChoice, uriSwitch } from "./query.ts";

export const requestsPerSecond = 10;
export const streamsMax = 2;
/** Clients send only pings, pongs and possibly a greeting. */
const messageLimits = { messagesPerSecond: 2, messagesBurst: 20, bytesPerSecond: 4096 } as const;
/** A larger message closes the connection. */
const messageBytesMax = 1024;
/** About forty unread snapshots (ten hours), in addition to the kernel's buffers. */
const backpressureBytesMax = 16 * 1024;
/** Client addresses with a rate limit; the least recently active is dropped. */
const callersMax = 65_536;
/** Streams per event-loop turn: about a millisecond. */
const streamsPerStep = 100;
/** Snapshots last 15 minutes; caches must not serve an old one for long. */
const cacheControl = "public, max-age=5";

const formats = ["lamports", "sol"] as const;
type Format = (typeof formats)[number];
export const formatParameter = uriChoice(
  "format",
  formats,
  "unit of the amounts; sol: as block engines return them",
);

export const signedParameter = uriSwitch(
  "signed",
  "adds newest_slot to the snapshot, and a signature in the header x-shredway-signature",
);
const signatureHeader = "x-shredway-signature";

interface TipFloorDependencies {
  readonly clock: Clock;
  readonly signer: Pick<StatementSigner, "signDetached">;
  /** The current slot; null: unknown. */
  readonly slot: () => bigint | null;
  readonly tipFloor: TipFloor;
  /** 16 bytes. */
  readonly addressOf: (head: HttpHead) => Uint8Array;
}

/** JSON that all responses share. */
interface SnapshotText {
  readonly element: string;
  readonly array: string;
}

/** A body with its detached signature. */
interface SignedText {
  readonly body: string;
  readonly signature: string;
}

interface Stream {
  readonly caller: string;
  readonly format: Format;
}

/** Exact to 15 digits, like the values of block engines. */
function solOf(lamports: bigint): number {
  return Number(lamports) / 1e9;
}

/** `newestSlot` undefined: without this field. */
function elementOf(snapshot: TipSnapshot, format: Format, newestSlot?: bigint | null): string {
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
    ...(newestSlot !== undefined && { newest_slot: newestSlot }),
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

function isSignedRequested(head: HttpHead): boolean | HttpResponse {
  if (head.query === "") return false;
  try {
    return signedParameter.read(new Query(head.query));
  } catch (thrown) {
    return plainRefusal("value_invalid", messageOf(thrown));
  }
}

const streamUnsigned = plainRefusal(
  "value_invalid",
  invalid("URI parameter signed", "none on /tip_stream; GET /tip_floor signs", "1").message,
);

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
  readonly idleSeconds = webSocketIdleSeconds;
  readonly #dependencies: TipFloorDependencies;
  readonly #requests = new WindowLimits(requestsPerSecond, callersMax);
  readonly #handshakes = new WindowLimits(requestsPerSecond, callersMax);
  readonly #streams = new Map<WebSocketPeer, Stream>();
  readonly #perCaller = new Map<string, number>();
  #texts: Readonly<Record<Format, SnapshotText>>;
  #snapshot: TipSnapshot;
  /** The slot at the last refresh of this process; null: none yet, or unknown. */
  #newestSlot: bigint | null = null;
  /** Signed once after each refresh, when the first client asks. */
  readonly #signed = new Map<Format, SignedText>();

  constructor(dependencies: TipFloorDependencies) {
    this.#dependencies = dependencies;
    const { tipFloor } = dependencies;
    this.#snapshot = tipFloor.snapshot;
    this.#texts = textsOf(this.#snapshot);
    tipFloor.onRefresh((snapshot) => {
      this.#snapshot = snapshot;
      this.#newestSlot = dependencies.slot();
      this.#signed.clear();
      this.#texts = textsOf(snapshot);
      this.#push([...this.#streams]);
    });
  }

  /** Open streams. */
  get count(): number {
    return this.#streams.size;
  }

  /** Responds to GET and HEAD /tip_floor. */
  answer(head: HttpHead): HttpResponse {
    const caller = callerOf(this.#dependencies.addressOf(head));
    const verdict = this.#take(this.#requests, caller);
    if (!verdict.allowed) return this.#tooMany("requests per second", verdict);
    const format = formatOf(head);
    if (typeof format !== "string") return format;
    const isSigned = isSignedRequested(head);
    if (typeof isSigned !== "boolean") return isSigned;
    const signed = isSigned ? this.#signedText(format) : null;
    const isForBrowser = head.header("origin") !== undefined;
    return {
      status: 200,
      headers: {
        ...(isForBrowser ? browserHeaders : jsonHeaders),
        "cache-control": cacheControl,
        ...limitHeaders(verdict),
        ...(signed && { [signatureHeader]: signed.signature }),
      },
      body: signed?.body ?? this.#texts[format].array,
    };
  }

  #signedText(format: Format): SignedText {
    const known = this.#signed.get(format);
    if (known) return known;
    const body = `[${elementOf(this.#snapshot, format, this.#newestSlot)}]`;
    const signature = this.#dependencies.signer.signDetached("shredway-tips", body);
    const signed = { body, signature };
    this.#signed.set(format, signed);
    return signed;
  }

  accept(head: HttpHead): HttpResponse | undefined {
    const caller = callerOf(this.#dependencies.addressOf(head));
    const verdict = this.#take(this.#handshakes, caller);
    if (!verdict.allowed) return this.#tooMany("handshakes per second", verdict);
    if ((this.#perCaller.get(caller) ?? 0) >= streamsMax) {
      const message = `too many streams from this address: at most ${streamsMax}; close one or retry in 1 s`;
      return plainRefusal("rate_limited", message, { headers: { "retry-after": "1" } });
    }
    const format = formatOf(head);
    if (typeof format !== "string") return format;
    const isSigned = isSignedRequested(head);
    if (typeof isSigned !== "boolean") return isSigned;
    return isSigned ? streamUnsigned : undefined;
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
    // Messages of clients are ignored.
  }

  closed(peer: WebSocketPeer): void {
    const stream = this.#streams.get(peer);
    if (!stream) return;
    this.#streams.delete(peer);
    const left = (this.#perCaller.get(stream.caller) ?? 1) - 1;
    if (left > 0) this.#perCaller.set(stream.caller, left);
    else this.#perCaller.delete(stream.caller);
  }

  /** A peer that closed in the meantime ignores the message. */
  #push(waiting: (readonly [WebSocketPeer, Stream])[]): void {
    for (const [peer, { format }] of waiting.splice(0, streamsPerStep)) {
      peer.send(this.#texts[format].element);
    }
    if (waiting.length > 0) this.#dependencies.clock.after(0, () => this.#push(waiting));
  }

  #take(limits: WindowLimits, caller: string): LimitVerdict {
    return limits.take(caller, this.#dependencies.clock.monotonicNs());
  }

  #tooMany(unit: string, verdict: LimitVerdict): HttpResponse {
    const seconds = String(verdict.retryAfterSeconds);
    const message = `rate limit exceeded: ${verdict.limit} ${unit} from an address; retry in ${seconds} s`;
    const headers = { "retry-after": seconds, ...limitHeaders(verdict) };
    return plainRefusal("rate_limited", message, { headers });
  }
}
