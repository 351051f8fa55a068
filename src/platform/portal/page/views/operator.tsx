// Operator view: sources, workers, routes, verdicts, fan-out and problems.

import type { JSX } from "preact";
import type { ProblemView } from "../../types.ts";
import { Ago, Empty, Fact, Loading, Panel, RecentTime, When } from "../components/basics.tsx";
import { Rows } from "../components/rows.tsx";
import { useTopic } from "../hooks.ts";
import { counted } from "../units.ts";
import { ConnectionsPanel } from "./connections.tsx";
import {
  FanOutPanel,
  RoutesPanel,
  SourcesPanel,
  VerdictsPanel,
  WorkersPanel,
} from "./operator-tables.tsx";
import { StreamsPanel } from "./streams.tsx";

function ServicePanel(): JSX.Element {
  const service = useTopic("service");
  if (!service) return <Loading />;
  return (
    <Panel title="Service" wide>
      <dl class="facts">
        <Fact name="Version">{service.version}</Fact>
        <Fact name="Started">
          <When iso={service.startedAt} />
        </Fact>
        <Fact name="Region">{service.region ?? "none"}</Fact>
        <Fact name="Node">{service.node ?? "single node"}</Fact>
        <Fact name="Slot">
          <span class="number">{service.slot ?? "unknown"}</span>
        </Fact>
        <Fact name="Leader">
          <code class="breaking">{service.leader ?? "unknown"}</code>
        </Fact>
      </dl>
      {service.warnings.length === 0 ? null : (
        <ul class="warnings">
          {service.warnings.map((warning) => (
            <li key={warning} class="note warning">
              {warning}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

const levelWords = { warn: "warning", error: "error", fatal: "fatal" } as const;

function ProblemRow({ problem }: { readonly problem: ProblemView }): JSX.Element {
  const { level, text, time, count } = problem;
  return (
    <li class={`problem ${level}`}>
      <span class={level === "warn" ? "badge open" : "badge bad"}>{levelWords[level]}</span>
      <span class="breaking">{text}</span>
      {count > 1 ? <span class="muted">×{count}</span> : null}
      {time === null ? (
        <span class="recent-time muted">before this view was opened</span>
      ) : (
        <RecentTime iso={time} />
      )}
    </li>
  );
}

function ProblemsPanel(): JSX.Element {
  const problems = useTopic("problems");
  const times = problems?.flatMap(({ time }) => time ?? []) ?? [];
  const newest = times.toSorted().at(-1);
  const aside = problems?.length ? (
    <span>
      {counted(problems.length, "line")}
      {newest === undefined ? null : (
        <>
          , newest <Ago iso={newest} />
        </>
      )}
    </span>
  ) : undefined;
  return (
    <Panel title="Problems" wide aside={aside}>
      {problems === undefined ? <Loading /> : null}
      {problems?.length === 0 ? <Empty>No warnings or errors since the start.</Empty> : null}
      {problems !== undefined && problems.length > 0 ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keyboards must reach it
        <ul class="problems" tabIndex={0} aria-label="Counted faults, then warnings and errors">
          <Rows
            items={problems}
            keyOf={({ time, text }) => `${time} ${text}`}
            draw={(problem) => <ProblemRow problem={problem} />}
          />
        </ul>
      ) : null}
    </Panel>
  );
}

export function Operator(): JSX.Element {
  return (
    <div class="grid">
      <ServicePanel />
      <ProblemsPanel />
      <SourcesPanel />
      <RoutesPanel />
      <ConnectionsPanel topic="allConnections" />
      <StreamsPanel topic="allStreams" />
      <WorkersPanel />
      <VerdictsPanel />
      <FanOutPanel />
    </div>
  );
}
