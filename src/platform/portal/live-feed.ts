// Live feed: a WebSocket at /portal/live that sends changed topics to the page, at most once a
// second.
//
// Handed to the HTTP server by portal.ts. All feeds share one timer and one reading of the
// relay's counters; both stop with the last feed. A feed ends with its session. The server closes
// a feed whose client reads too slowly. The session's key decides the content: its own account,
// and the operator's topics only with the scope "operate".

import type { Timer } from "../../core/clock.ts";
import { writeJson } from "../../core/json-rpc/json-text.ts";
import type { ApiKey, Scope } from "../../gateway/accounts/types.ts";
import {
  type HttpHead,
  type HttpResponse,
  type WebSocketPeer,
  type WebSocketRoute,
  webSocketIdleSeconds,
} from "../../gateway/http/types.ts";
import { timeText } from "./api-key-actions.ts";
import { ConnectionViews } from "./connection-views.ts";
import { CountedProblems } from "./counted-problems.ts";
import { coverageView, destinationViews, tierView, tipsView } from "./customer-views.ts";
import type { PortalDependencies } from "./dependencies.ts";
import {
  fanOutView,
  problemViews,
  routeViews,
  sourceViews,
  verdictViews,
  workerViews,
} from "./operator-views.ts";
import { refusal } from "./responses.ts";
import { type Sample, Sampler } from "./sampler.ts";
import { StreamViews } from "./stream-views.ts";
import { SubmissionList } from "./submission-list.ts";
import type { LiveTopics, ProblemView, ServiceView } from "./types.ts";

export const feedsPerAccountMax = 8;
const feedsMax = 256;
const tooManyFeeds = `too many live feeds; at most ${feedsPerAccountMax} per account and ${feedsMax} in total are allowed`;
/** The page sends no messages. */
const messageBytesMax = 1024;
/** Clients send only pongs. */
const messageLimits = { messagesPerSecond: 2, messagesBurst: 20, bytesPerSecond: 1024 } as const;
const backpressureBytesMax = 4 * 1024 * 1024;
const periodMs = 1000;
/** WebSocket close codes 4000 to 4999 are free for applications. */
export const sessionEndedCode = 4401;

type Topic = keyof LiveTopics;
type TopicReaders = { readonly [Name in Topic]: (key: ApiKey) => LiveTopics[Name] | null };

/** A topic needs one of these scopes; an empty list allows any key. */
const topicScopes: Readonly<Record<Topic, readonly Scope[]>> = {
  service: [],
  tier: ["shreds"],
  destinations: ["shreds"],
  coverage: [],
  tips: [],
  submissions: ["submit", "batch"],
  connections: ["submit"],
  streams: ["stream"],
  sources: ["operate"],
  workers: ["operate"],
  routes: ["operate"],
  verdicts: ["operate"],
  fanOut: ["operate"],
  problems: ["operate"],
  allConnections: ["operate"],
  allStreams: ["operate"],
};

/** Topics with the same content for every account. */
const sharedTopics: ReadonlySet<Topic> = new Set<Topic>([
  "coverage",
  "tips",
  "sources",
  "workers",
  "routes",
  "verdicts",
  "fanOut",
  "problems",
  "allConnections",
  "allStreams",
]);

/** Returns a refusal, or a function for the session's key (null once the session has ended). */
type Admit = (head: HttpHead) => HttpResponse | (() => ApiKey | null);

interface Feed {
  readonly accountId: string;
  readonly key: () => ApiKey | null;
  /** The last message of each topic. */
  readonly sent: Map<Topic, string>;
}

/** Messages of one update. Each text is built once and shared by all feeds that may see it. */
class UpdateMessages {
  readonly #readers: TopicReaders;
  readonly #texts = new Map<string, string | null>();

  constructor(readers: TopicReaders) {
    this.#readers = readers;
  }

  /** Null while there is no value yet. */
  text(topic: Topic, key: ApiKey): string | null {
    const isOperator = key.scopes.includes("operate");
    const audience = sharedTopics.has(topic) ? "" : `${key.accountId} ${isOperator}`;
    const name = `${topic} ${audience}`;
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    const value = this.#readers[topic](key);
    const text = value === null ? null : writeJson({ topic, value });
    this.#texts.set(name, text);
    return text;
  }
}

function hasTopic(key: ApiKey, topic: Topic): boolean {
  const wanted = topicScopes[topic];
  return wanted.length === 0 || wanted.some((scope) => key.scopes.includes(scope));
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a record of all topics
const topics = Object.keys(topicScopes) as Topic[];

export class LiveFeed implements WebSocketRoute {
  readonly messageBytesMax = messageBytesMax;
  readonly messageLimits = messageLimits;
  readonly backpressureBytesMax = backpressureBytesMax;
  readonly idleSeconds = webSocketIdleSeconds;
  readonly #dependencies: PortalDependencies;
  readonly #admit: Admit;
  readonly #sampler: Sampler;
  readonly #startedAt: string;
  readonly #feeds = new Map<WebSocketPeer, Feed>();
  readonly #lists = new Map<string, SubmissionList>();
  readonly #counted = new CountedProblems();
  readonly #connections = new ConnectionViews();
  readonly #streams = new StreamViews();
  #sample: Sample | null = null;
  #countedProblems: readonly ProblemView[] = [];
  #timer: Timer | null = null;

  constructor(dependencies: PortalDependencies, admit: Admit) {
    this.#dependencies = dependencies;
    this.#admit = admit;
    this.#sampler = new Sampler(dependencies.relay);
    this.#startedAt = timeText(dependencies.clock.nowNs());
  }

  get count(): number {
    return this.#feeds.size;
  }

  accept(head: HttpHead): HttpResponse | undefined {
    const admitted = this.#admit(head);
    if (typeof admitted !== "function") return admitted;
    const key = admitted();
    const reason = key ? this.refusalFor(key) : tooManyFeeds;
    if (reason === null) return undefined;
    return refusal("rate_limited", `${reason}; retry in 5 s`, { headers: { "retry-after": "5" } });
  }

  /** Why no further feed opens for the key's account; null: one opens. Scripts cannot read the response to a WebSocket. */
  refusalFor({ accountId }: ApiKey): string | null {
    const isFree = this.#feeds.size < feedsMax && this.#feedsOf(accountId) < feedsPerAccountMax;
    return isFree ? null : tooManyFeeds;
  }

  open(peer: WebSocketPeer, head: HttpHead): void {
    const admitted = this.#admit(head);
    const key = typeof admitted === "function" ? admitted() : null;
    if (typeof admitted !== "function" || !key) {
      peer.close(sessionEndedCode, "the session has ended");
      return;
    }
    const { accountId } = key;
    const feed: Feed = { accountId, key: admitted, sent: new Map() };
    this.#feeds.set(peer, feed);
    if (!this.#timer) {
      this.#look();
      this.#timer = this.#dependencies.clock.every(periodMs, () => this.#update());
    }
    if (hasTopic(key, "submissions")) this.#watchSubmissions(accountId, peer);
    this.#sendChanges(peer, feed, key, this.#newUpdate());
  }

  message(peer: WebSocketPeer): void {
    peer.close(1008, "this WebSocket accepts no messages");
  }

  closed(peer: WebSocketPeer): void {
    const feed = this.#feeds.get(peer);
    if (!feed) return;
    this.#feeds.delete(peer);
    if (this.#feedsOf(feed.accountId) === 0) {
      this.#lists.get(feed.accountId)?.close();
      this.#lists.delete(feed.accountId);
    }
    if (this.#feeds.size === 0) this.close();
  }

  /** Stops all updates. The HTTP server closes the sockets. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#sample = null;
    this.#sampler.forget();
    this.#counted.forget();
    this.#connections.forget();
    this.#streams.forget();
    for (const list of this.#lists.values()) list.close();
    this.#lists.clear();
  }

  #feedsOf(accountId: string): number {
    let count = 0;
    for (const feed of this.#feeds.values()) if (feed.accountId === accountId) count++;
    return count;
  }

  #watchSubmissions(accountId: string, peer: WebSocketPeer): void {
    if (this.#lists.has(accountId)) return;
    const list = new SubmissionList(this.#dependencies, accountId);
    this.#lists.set(accountId, list);
    void list.load().then(() => this.#sendTo(peer));
  }

  /** Reads the counters. */
  #look(): void {
    const { clock, routes, connections, streams } = this.#dependencies;
    this.#connections.look(connections(), clock.monotonicNs());
    this.#streams.look(streams(), clock.monotonicNs());
    this.#sample = this.#sampler.take();
    this.#countedProblems = this.#counted.views(this.#sample, routes(), clock.nowNs());
  }

  /** Runs once a second while at least one feed is open. */
  #update(): void {
    this.#look();
    for (const list of this.#lists.values()) void list.refresh();
    const update = this.#newUpdate();
    for (const [peer, feed] of this.#feeds) {
      const key = feed.key();
      if (key) this.#sendChanges(peer, feed, key, update);
      else peer.close(sessionEndedCode, "the session has ended");
    }
  }

  #sendTo(peer: WebSocketPeer): void {
    const feed = this.#feeds.get(peer);
    const key = feed?.key();
    if (feed && key) this.#sendChanges(peer, feed, key, this.#newUpdate());
  }

  #sendChanges(peer: WebSocketPeer, feed: Feed, key: ApiKey, update: UpdateMessages): void {
    for (const topic of topics) {
      if (!hasTopic(key, topic)) continue;
      const text = update.text(topic, key);
      if (text === null || feed.sent.get(topic) === text) continue;
      feed.sent.set(topic, text);
      if (!peer.send(text)) return;
    }
  }

  #newUpdate(): UpdateMessages {
    const { shreds, shredTipAddresses, tips, routes, problems } = this.#dependencies;
    const { subscriptions, traceDelays } = this.#dependencies;
    const sample = this.#sample;
    return new UpdateMessages({
      service: (key) => this.#service(key),
      tier: ({ accountId }) => tierView(shreds, accountId, shredTipAddresses()),
      destinations: ({ accountId }) => destinationViews(shreds, accountId, sample),
      coverage: () => coverageView(sample),
      tips: () => tipsView(tips),
      submissions: ({ accountId }) => this.#lists.get(accountId)?.views ?? null,
      sources: () => sourceViews(sample, subscriptions(), traceDelays()),
      workers: () => workerViews(sample),
      routes: () => routeViews(routes()),
      verdicts: () => verdictViews(sample),
      fanOut: () => fanOutView(sample),
      connections: ({ accountId }) => this.#connections.ofAccount(accountId),
      allConnections: () => this.#connections.all(),
      streams: ({ accountId }) => this.#streams.ofAccount(accountId),
      allStreams: () => this.#streams.all(),
      problems: () => [...this.#countedProblems, ...problemViews(problems())],
    });
  }

  #service({ scopes }: ApiKey): ServiceView {
    const { service, clock } = this.#dependencies;
    const { slot, current } = service.leaders();
    const delivery = service.delivery();
    return {
      version: service.version,
      time: timeText(clock.nowNs()),
      startedAt: this.#startedAt,
      region: service.region,
      node: service.node,
      slot: slot === null ? null : Number(slot),
      leader: current,
      deliveryRegions: delivery.regions,
      destinationsMax: delivery.perAccountMax,
      ...service.submission(),
      senderAddresses: service.senderAddresses(),
      warnings: scopes.includes("operate") ? service.warnings() : [],
    };
  }
}
