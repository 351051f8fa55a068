// /tip_floor and /tip_stream: public percentiles of recent landed tips. Block engines have the first one at
// another path, where clients read it in SOL.
//
// gateway.ts passes it to the HTTP server. The JSON is written once per refresh. Requests per
// second and open streams are limited per client address. A stream pushes one snapshot, the array
// element of /tip_floor, when it opens and after every refresh; it ignores messages.

import type { TipFloorEntry, WrittenInteger } from "../../client/responses.ts";
import { callerOf } from "../../core/addresses/caller.ts";
import { writeJson } from "../../core/json-rpc/json-text.ts";
import type { TipFloor, TipSnapshot } from "../../tips/tip-types.ts";
import { WindowLimits } from "../accounts/window-limits.ts";
import {
  type HttpHead,
  type HttpResponse,
  type WebSocketPeer,
  type WebSocketRoute,
  webSocketIdleSeconds,
} from "../http/types.ts";
import type { LimitVerdict, Path } from "../methods/dependencies.ts";
import { invalid } from "../schema/shapes.ts";
import { plainRefusal, upgradeAnswer } from "./answers.ts";
import {
  amountIn,
  type Format,
  formatParameter,
  percentileFields,
  readTipQuery,
  type SignedText,
  solFormatParameter,
  type TipAnswerDependencies,
  tipAnswer,
  tooMany,
} from "./tip-answers.ts";

export const blockEngineTipFloorPath = "/api/v1/bundles/tip_floor";
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

interface TipFloorDependencies extends TipAnswerDependencies {
  readonly tipFloor: TipFloor;
}

/** JSON that all responses share. */
interface SnapshotText {
  readonly element: string;
  readonly array: string;
}

interface Stream {
  readonly caller: string;
  readonly format: Format;
}

/** `newestSlot` undefined: without this field. */
function elementOf(snapshot: TipSnapshot, format: Format, newestSlot?: bigint | null): string {
  const { percentiles, timeMs, emaP50, count, windowStartMs, isStale } = snapshot;
  const entry: TipFloorEntry<WrittenInteger> = {
    time: new Date(timeMs).toISOString(),
    ...percentileFields(percentiles, format),
    ...(format === "sol" && { ema_landed_tips_50th_percentile: amountIn(format, emaP50) }),
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

const streamUnsigned = plainRefusal(
  "value_invalid",
  invalid("URI parameter signed", "none on /tip_stream; GET /tip_floor signs", "1").message,
);

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

  /** Responds to GET and HEAD, at both paths. */
  answer(head: HttpHead): HttpResponse {
    const caller = callerOf(this.#dependencies.addressOf(head));
    const verdict = this.#take(this.#requests, caller);
    if (!verdict.allowed) return tooMany("requests per second", verdict);
    const isBlockEngine = head.path === blockEngineTipFloorPath;
    const query = readTipQuery(head, isBlockEngine ? solFormatParameter : formatParameter);
    if (!query.isRead) return query.refusal;
    const { format, isSigned } = query;
    const signed = isSigned ? this.#signedText(format) : null;
    return tipAnswer(head, verdict, signed ?? { body: this.#texts[format].array });
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
    if (!verdict.allowed) return tooMany("handshakes per second", verdict);
    if ((this.#perCaller.get(caller) ?? 0) >= streamsMax) {
      const message = `too many streams from this address: at most ${streamsMax}; close one or retry in 1 s`;
      return plainRefusal("rate_limited", message, { headers: { "retry-after": "1" } });
    }
    const query = readTipQuery(head);
    if (!query.isRead) return query.refusal;
    return query.isSigned ? streamUnsigned : undefined;
  }

  open(peer: WebSocketPeer, head: HttpHead): void {
    const caller = callerOf(this.#dependencies.addressOf(head));
    const query = readTipQuery(head);
    const stream = { caller, format: query.isRead ? query.format : "lamports" } as const;
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
}

/** The paths that one handler serves. */
export function tipFloorPaths(handler: TipFloorHandler): [string, Path][] {
  const floor: Path = {
    methods: ["GET", "HEAD"],
    handle: (head) => handler.answer(head),
    refusal: plainRefusal,
  };
  return [
    ["/tip_floor", floor],
    [blockEngineTipFloorPath, floor],
    ["/tip_stream", { methods: ["GET"], handle: () => upgradeAnswer() }],
  ];
}
