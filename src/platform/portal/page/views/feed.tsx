// Shred feed: destinations, coverage of each slot, and latency in the relay.

import type { JSX } from "preact";
import { Loading, NoScope, Panel } from "../components/basics.tsx";
import { CoverageChart } from "../components/coverage-chart.tsx";
import { HistogramChart } from "../components/histogram-chart.tsx";
import { useSessionContext, useTopic } from "../hooks.ts";
import { count } from "../units.ts";
import { DestinationsPanel } from "./destinations.tsx";
import { StreamsPanel } from "./streams.tsx";

function CoveragePanel(): JSX.Element {
  const coverage = useTopic("coverage");
  return (
    <Panel title="Coverage" aside="share of each slot's shreds that the relay received">
      {coverage ? <CoverageChart slots={coverage.slots} /> : <Loading />}
    </Panel>
  );
}

function LatencyPanel(): JSX.Element {
  const coverage = useTopic("coverage");
  const aside = coverage
    ? `receive to send, last minute, ${count(coverage.receiveToSend.count)} shreds`
    : "receive to send";
  return (
    <Panel title="Latency" aside={aside}>
      {coverage ? (
        <HistogramChart histogram={coverage.receiveToSend} label="Latency from receive to send" />
      ) : (
        <Loading />
      )}
    </Panel>
  );
}

export function Feed(): JSX.Element {
  const { session } = useSessionContext();
  return (
    <div class="grid">
      {session.key.scopes.includes("shreds") ? (
        <DestinationsPanel />
      ) : (
        <Panel title="Destinations" wide>
          <NoScope scope="shreds" what="destinations" />
        </Panel>
      )}
      <CoveragePanel />
      <LatencyPanel />
      <StreamsPanel topic="streams" />
    </div>
  );
}
