// The list of all metrics, for /metrics and docs/metrics.md.

import type { StreamStatus } from "../../relay/streams/stream-status.ts";
import { type AccountFacts, accountMetrics } from "./account-list.ts";
import { Exposition, type Format } from "./exposition.ts";
import { type GatewayFacts, gatewayMetrics } from "./gateway-list.ts";
import {
  type BuildFacts,
  buildMetrics,
  type CheckFacts,
  checkMetrics,
  type ProcessFacts,
  processMetrics,
} from "./process-list.ts";
import { type QuicFacts, quicMetrics } from "./quic-list.ts";
import { type RelayFacts, relayMetrics } from "./relay-list.ts";
import { type RouteFacts, routeMetrics } from "./route-list.ts";
import { type ShredstreamFacts, shredstreamMetrics } from "./shredstream-list.ts";
import { type SlotFacts, slotMetrics } from "./slot-list.ts";
import { type StoreFacts, storeMetrics } from "./store-list.ts";
import { streamMetrics } from "./stream-list.ts";
import { type SubscriberFacts, subscriberMetrics } from "./subscriber-list.ts";
import type { MetricType } from "./types.ts";

/** Facts of a service with a gateway. */
export interface GatewayPartFacts {
  readonly gateway: GatewayFacts;
  readonly routes: RouteFacts;
  readonly accounts: AccountFacts;
  readonly store: StoreFacts;
  /** null: the QUIC ingress is off. */
  readonly quic: QuicFacts | null;
}

export interface ServiceFacts {
  readonly build: BuildFacts;
  readonly process: ProcessFacts;
  readonly checks: CheckFacts;
  readonly relay: RelayFacts;
  readonly shredstream: ShredstreamFacts;
  /** null: the section shredstream is absent. */
  readonly subscribers: SubscriberFacts | null;
  /** null: the section streams is absent. */
  readonly streams: StreamStatus | null;
  readonly slots: SlotFacts;
  /** null: this service runs the relay only. */
  readonly gateway: GatewayPartFacts | null;
}

interface MetricDescription {
  readonly name: string;
  readonly type: MetricType;
  readonly labels: readonly string[];
  readonly help: string;
  readonly formerName?: string;
}

/** All metrics by part, in the order of the scrape. */
export const metricParts: readonly {
  readonly title: string;
  readonly metrics: readonly MetricDescription[];
}[] = [
  { title: "Build and readiness", metrics: [...buildMetrics, ...checkMetrics] },
  { title: "Relay", metrics: relayMetrics },
  { title: "Sources of kind shredstream", metrics: shredstreamMetrics },
  { title: "Block engine for subscribers (section shredstream)", metrics: subscriberMetrics },
  { title: "Decoded streams (section streams)", metrics: streamMetrics },
  { title: "Slots and leaders", metrics: slotMetrics },
  { title: "Gateway", metrics: gatewayMetrics },
  { title: "QUIC ingress", metrics: quicMetrics },
  { title: "Routes", metrics: routeMetrics },
  { title: "Accounts", metrics: accountMetrics },
  { title: "Store", metrics: storeMetrics },
  { title: "Process", metrics: processMetrics },
];

/** The text of one scrape. */
export function writeMetrics(facts: ServiceFacts, format: Format): string {
  const exposition = new Exposition(format);
  exposition.add(buildMetrics, facts.build);
  exposition.add(checkMetrics, facts.checks);
  exposition.add(relayMetrics, facts.relay);
  exposition.add(shredstreamMetrics, facts.shredstream);
  if (facts.subscribers) exposition.add(subscriberMetrics, facts.subscribers);
  if (facts.streams) exposition.add(streamMetrics, facts.streams);
  exposition.add(slotMetrics, facts.slots);
  if (facts.gateway) {
    const { gateway, routes, accounts, store, quic } = facts.gateway;
    exposition.add(gatewayMetrics, gateway);
    if (quic) exposition.add(quicMetrics, quic);
    exposition.add(routeMetrics, routes);
    exposition.add(accountMetrics, accounts);
    exposition.add(storeMetrics, store);
  }
  exposition.add(processMetrics, facts.process);
  return exposition.text();
}
