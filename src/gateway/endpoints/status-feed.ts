// /status: a WebSocket that pushes every new event of an account's transactions.
//
// gateway.ts passes it to the HTTP server. A client may filter by signatures. The server closes
// clients that read too slowly; a revoked or expired key closes its feeds within a second.

import type {
  FilterSet,
  RateLimitNotice,
  StatusUpdate,
  WrittenInteger,
} from "../../client/responses.ts";
import type { Clock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import { isJsonObject, readJson, writeJson } from "../../core/json-rpc/json-text.ts";
import { errorObjectOf } from "../../core/json-rpc/refusal.ts";
import type { RateLimitReport } from "../accounts/connection-records.ts";
import type { ApiKey } from "../accounts/types.ts";
import {
  type HttpHead,
  type HttpResponse,
  type WebSocketPeer,
  type WebSocketRoute,
  webSocketIdleSeconds,
} from "../http/types.ts";
import type { Authorise } from "../methods/dependencies.ts";
import { timeText } from "../methods/destinations.ts";
import { eventJson } from "../methods/status-json.ts";
import { readTexts } from "../schema/shapes.ts";
import type { Ingress, Submissions, TimelineEvent } from "../submission/types.ts";
import { handshakeRefusal, pauseRefusal, prefixOf, refusalAnswer } from "./answers.ts";
import { HandshakePauses } from "./handshake-pauses.ts";
import { checkNames, keyName, Query } from "./query.ts";
import { type CurrentKey, SocketKeyChecks } from "./socket-key-checks.ts";

export const feedsPerKeyMax = 8;
export const signaturesMax = 256;
const messageBytesMax = 32 * 1024;
/** Every message replaces the filter. */
const messageLimits = {
  messagesPerSecond: 5,
  messagesBurst: 25,
  bytesPerSecond: 64 * 1024,
} as const;
const backpressureBytesMax = 1024 * 1024;

interface StatusFeedDependencies {
  readonly clock: Clock;
  readonly submissions: Pick<Submissions, "subscribe">;
  readonly authorise: Authorise;
  readonly currentKey: CurrentKey;
  /** Counts a handshake against the key's limit. Throws ShredwayError "rate_limited". */
  readonly countHandshake: (key: ApiKey) => void;
  /** Throws ShredwayError "value_invalid" for an invalid signature. */
  readonly checkSignature: (what: string, signature: string) => string;
  readonly report: (thrown: unknown) => string;
}

interface Feed {
  readonly key: ApiKey;
  /** null: all signatures of the account. */
  signatures: ReadonlySet<string> | null;
  stop: () => void;
}

export class StatusFeed implements WebSocketRoute {
  readonly messageBytesMax = messageBytesMax;
  readonly messageLimits = messageLimits;
  readonly backpressureBytesMax = backpressureBytesMax;
  readonly idleSeconds = webSocketIdleSeconds;
  readonly #dependencies: StatusFeedDependencies;
  readonly #feeds = new Map<WebSocketPeer, Feed>();
  readonly #perKey = new Map<string, number>();
  readonly #pauses = new HandshakePauses();
  readonly #keyChecks: SocketKeyChecks;

  constructor(dependencies: StatusFeedDependencies) {
    this.#dependencies = dependencies;
    this.#keyChecks = new SocketKeyChecks(dependencies);
  }

  get count(): number {
    return this.#feeds.size;
  }

  accept(head: HttpHead): HttpResponse | undefined {
    const found = this.#dependencies.authorise(head);
    if (!("key" in found)) return found;
    const nowNs = this.#dependencies.clock.monotonicNs();
    const paused = pauseRefusal(this.#pauses.secondsLeft(found.key.id, nowNs));
    if (paused) return paused;
    const open = this.#perKey.get(found.key.id) ?? 0;
    if (open < feedsPerKeyMax)
      return handshakeRefusal(() => {
        checkNames(Query.of(head.query), [keyName]);
        this.#dependencies.countHandshake(found.key);
      });
    return refusalAnswer(
      "rate_limited",
      `too many status feeds with this key; at most ${feedsPerKeyMax} are allowed; close one or retry in 1 s`,
      { headers: { "retry-after": "1" } },
    );
  }

  open(peer: WebSocketPeer, head: HttpHead): void {
    const found = this.#dependencies.authorise(head);
    if (!("key" in found)) {
      this.#keyChecks.close(peer);
      return;
    }
    const { key } = found;
    this.#perKey.set(key.id, (this.#perKey.get(key.id) ?? 0) + 1);
    const feed: Feed = { key, signatures: null, stop: () => undefined };
    this.#feeds.set(peer, feed);
    this.#keyChecks.add(peer, { keyId: key.id, head });
    feed.stop = this.#dependencies.submissions.subscribe(key.accountId, (signature, event) =>
      this.#push(peer, signature, event),
    );
  }

  message(peer: WebSocketPeer, text: string): void {
    const feed = this.#feeds.get(peer);
    if (!feed) return;
    try {
      feed.signatures = this.#readFilter(text);
      const answer: FilterSet = { filter: { signatures: feed.signatures?.size ?? null } };
      peer.send(writeJson(answer));
    } catch (thrown) {
      const { report } = this.#dependencies;
      peer.send(writeJson({ error: errorObjectOf(thrown, { report, prefixOf }) }));
    }
  }

  exceeded(peer: WebSocketPeer): void {
    const feed = this.#feeds.get(peer);
    if (feed) this.#pauses.begin(feed.key.id, this.#dependencies.clock.monotonicNs());
  }

  closed(peer: WebSocketPeer): void {
    const feed = this.#feeds.get(peer);
    if (!feed) return;
    this.#feeds.delete(peer);
    this.#keyChecks.remove(peer);
    feed.stop();
    const left = (this.#perKey.get(feed.key.id) ?? 1) - 1;
    if (left > 0) this.#perKey.set(feed.key.id, left);
    else this.#perKey.delete(feed.key.id);
  }

  /**
   * Submissions of a connection exceeded its key's rate. A filter has no effect, because their signatures are
   * unknown.
   */
  rateLimited(ingress: Ingress, report: RateLimitReport): void {
    const { keyId, accountId, protocol, address, submissions, message } = report;
    const at = timeText(Number(this.#dependencies.clock.nowNs() / 1_000_000n));
    const facts = { at, ingress, protocol, address, apiKey: keyId, submissions, message };
    const notice: RateLimitNotice = { rateLimited: facts };
    const text = writeJson(notice);
    for (const [peer, feed] of this.#feeds) {
      if (feed.key.accountId === accountId) peer.send(text);
    }
  }

  /** null: no filter. */
  #readFilter(text: string): ReadonlySet<string> | null {
    const message = readJson(text, 3);
    if (!isJsonObject(message) || message["signatures"] === undefined) {
      throw new ShredwayError(
        "value_invalid",
        'filter: expected {"signatures": […]} or {"signatures": null}',
      );
    }
    const { signatures } = message;
    if (signatures === null) return null;
    const given = readTexts("signatures", signatures, signaturesMax);
    return new Set(
      given.map((each, i) => this.#dependencies.checkSignature(`signatures[${i}]`, each)),
    );
  }

  #push(peer: WebSocketPeer, signature: string, event: TimelineEvent): void {
    const feed = this.#feeds.get(peer);
    if (!feed || feed.signatures?.has(signature) === false) return;
    const update: StatusUpdate<WrittenInteger> = { signature, event: eventJson(event, null) };
    peer.send(writeJson(update));
  }
}
