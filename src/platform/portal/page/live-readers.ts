// Readers of live-feed messages, one per topic of ../types.ts.
//
// Used by live.ts. A missing topic or member is a compile error.

import type {
  ConnectionsView,
  ConnectionView,
  CountView,
  CoverageView,
  DestinationView,
  EndedStreamView,
  FanOutView,
  HistogramView,
  KeyConnectionsView,
  LiveTopics,
  ProblemView,
  RouteView,
  ServiceView,
  SourceView,
  StreamsView,
  StreamView,
  SubmissionView,
  TierView,
  TipPoint,
  TipsView,
  TraceDelayView,
  WorkerView,
} from "../types.ts";
import {
  flag,
  list,
  maybe,
  number,
  object,
  oneOf,
  orNull,
  type Reader,
  record,
  text,
} from "./shape-readers.ts";

const histogram = object<HistogramView>({
  count: number,
  p50Ns: orNull(number),
  p90Ns: orNull(number),
  p99Ns: orNull(number),
  maxNs: orNull(number),
  buckets: list(object<HistogramView["buckets"][number]>({ upToNs: number, count: number })),
});

const service = object<ServiceView>({
  version: text,
  time: text,
  startedAt: text,
  region: orNull(text),
  node: orNull(text),
  slot: orNull(number),
  leader: orNull(text),
  deliveryRegions: list(text),
  destinationsMax: number,
  gatewayUrl: orNull(text),
  tipAddresses: list(text),
  minimumTipLamports: number,
  senderAddresses: list(text),
  warnings: list(text),
});

const tier = object<TierView>({
  isSold: flag,
  tier: orNull(text),
  sumLamports: number,
  windowHours: number,
  thresholds: list(
    object<TierView["thresholds"][number]>({
      tier: text,
      thresholdLamports: number,
      missingLamports: number,
    }),
  ),
  grace: orNull(object<NonNullable<TierView["grace"]>>({ since: text, ends: text })),
  tipAddresses: list(text),
  tipProof: maybe(
    object<NonNullable<TierView["tipProof"]>>({ account: text, memo: text, referenceKey: text }),
  ),
});

const destination = object<DestinationView>({
  id: text,
  region: text,
  address: text,
  state: text,
  createdAt: text,
  provedAt: orNull(text),
  provedBy: orNull(text),
  proofEndsAt: orNull(text),
  pausedAt: orNull(text),
  pauseReason: orNull(text),
  refusal: orNull(text),
  recovered: flag,
  nextChallengeAt: orNull(text),
  advice: orNull(text),
  sending: orNull(
    object<NonNullable<DestinationView["sending"]>>({
      tier: text,
      sent: number,
      sentPerSecond: number,
      failed: number,
      icmp: number,
      icmpLastMinute: number,
    }),
  ),
});

const coverage = object<CoverageView>({
  slots: list(
    object<CoverageView["slots"][number]>({
      slot: number,
      data: number,
      code: number,
      dataShare: orNull(number),
      share: orNull(number),
      firstSeenMs: number,
      spanMs: number,
    }),
  ),
  receiveToSend: histogram,
});

export const tipPoint = object<TipPoint>({
  time: text,
  p25: number,
  p50: number,
  p75: number,
  p95: number,
  p99: number,
  count: number,
  isStale: flag,
});

const submission = object<SubmissionView>({
  signature: text,
  method: text,
  state: text,
  receivedAt: text,
  slot: orNull(number),
  landedMs: orNull(number),
  tipLamports: maybe(number),
  priorityFeeLamports: maybe(number),
});

const source = object<SourceView>({
  name: text,
  tier: text,
  isForwarded: flag,
  receivedPerSecond: number,
  received: number,
  firstShare: number,
  duplicateShare: number,
  refused: number,
  leadTime: histogram,
  state: orNull(text),
  problem: orNull(text),
  traceDelays: list(object<TraceDelayView>({ region: text, lastNs: number })),
});

const worker = object<WorkerView>({
  load: number,
  receivedPerSecond: number,
  receiveDrops: number,
  highestSlot: number,
});

const route = object<RouteView>({
  name: text,
  kind: text,
  state: text,
  sent: number,
  taken: number,
  refused: number,
  queued: number,
  sendP50Ns: orNull(number),
  lastFailure: orNull(text),
  lastFailureAt: orNull(text),
});

const fanOut = object<FanOutView>({
  sentPerSecond: number,
  destinations: list(
    object<FanOutView["destinations"][number]>({
      name: text,
      address: text,
      tier: text,
      sentPerSecond: number,
      failed: number,
      icmp: number,
    }),
  ),
});

const submissionCounts = {
  submissionsPerSecond: number,
  accepted: number,
  rejected: number,
  rateLimited: number,
  dropped: number,
};

const connections = object<ConnectionsView>({
  keys: list(
    object<KeyConnectionsView>({
      key: text,
      account: text,
      connections: number,
      ...submissionCounts,
    }),
  ),
  connections: list(
    object<ConnectionView>({
      name: text,
      key: text,
      transport: oneOf("quic", "websocket"),
      protocol: text,
      address: text,
      openedAt: text,
      ...submissionCounts,
    }),
  ),
});

const streamFacts = {
  name: text,
  key: text,
  account: text,
  dialect: text,
  tier: text,
  address: text,
  openedAt: text,
  matched: number,
  sent: number,
};

const streams = object<StreamsView>({
  streams: list(
    object<StreamView>({
      ...streamFacts,
      filters: number,
      messagesPerSecond: number,
      waitingBytes: number,
      leftOut: number,
      delayNs: orNull(number),
    }),
  ),
  ended: list(object<EndedStreamView>({ ...streamFacts, endedAt: text, reason: text, text })),
});

const problem = object<ProblemView>({
  time: orNull(text),
  level: oneOf("warn", "error", "fatal"),
  text,
  count: number,
});

const topics: { readonly [Name in keyof LiveTopics]: Reader<LiveTopics[Name]> } = {
  service,
  tier,
  destinations: list(destination),
  coverage,
  tips: object<TipsView>({ now: tipPoint, history: list(tipPoint) }),
  submissions: list(submission),
  connections,
  streams,
  sources: list(source),
  workers: list(worker),
  routes: list(route),
  verdicts: list(object<CountView>({ name: text, count: number, perSecond: number })),
  fanOut,
  problems: list(problem),
  allConnections: connections,
  allStreams: streams,
};

export type Topic = keyof LiveTopics;

function isTopic(name: string): name is Topic {
  return Object.hasOwn(topics, name);
}

/** Returns the topics of the given values. */
export function topicsOf(values: Partial<LiveTopics>): readonly Topic[] {
  return Object.keys(values).filter(isTopic);
}

/**
 * Returns the message's value under its topic; null for a topic of a newer service. Throws
 * ShapeError.
 */
export function liveMessage(parsed: unknown): Partial<LiveTopics> | null {
  const { topic, value } = record(parsed, "message");
  const name = text(topic, "message.topic");
  return isTopic(name) ? { [name]: topics[name](value, name) } : null;
}
