// Tips of transactions that landed through this service: current percentiles and the last 24
// hours.

import type { JSX } from "preact";
import type { TipPoint, TipsView } from "../../types.ts";
import { Ago, Badge, Empty, Loading, Panel } from "../components/basics.tsx";
import { percentiles, TipsChart } from "../components/tips-chart.tsx";
import { useTopic } from "../hooks.ts";
import { counted, lamportsText, shortSol, sol } from "../units.ts";

function Snapshot({ now }: { readonly now: TipPoint }): JSX.Element {
  if (now.count === 0) {
    return (
      <Empty>
        No tip has landed yet. The first snapshot follows at the next quarter of an hour.
      </Empty>
    );
  }
  return (
    <>
      <dl class="tiles">
        {percentiles.map((name) => (
          <div key={name} class={name}>
            <dt>{name === "p50" ? "p50, median" : name}</dt>
            <dd class="number" title={sol(now[name])}>
              {shortSol(now[name])}
              <span class="exact">{lamportsText(now[name])}</span>
            </dd>
          </div>
        ))}
      </dl>
      {now.isStale ? (
        <p class="note warning">
          <Badge state="stale" /> No tip has landed for 15 minutes. These are the last known values.
        </p>
      ) : null}
    </>
  );
}

function NowPanel({ now }: { readonly now: TipPoint }): JSX.Element {
  const aside = (
    <span>
      {counted(now.count, "tip")} in 15 min, refreshed <Ago iso={now.time} />
    </span>
  );
  return (
    <Panel title="Now" wide aside={now.count === 0 ? "last 15 min" : aside}>
      <Snapshot now={now} />
    </Panel>
  );
}

function DayPanel({ history }: Pick<TipsView, "history">): JSX.Element {
  const points = history.filter(({ count }) => count > 0).length;
  return (
    <Panel title="24 hours" wide aside="SOL, logarithmic; one point per 15 min">
      {points > 1 ? (
        <TipsChart points={history} />
      ) : (
        <Empty>
          {points === 0
            ? "No history of the last 24 hours yet."
            : "One snapshot so far, shown above. The chart begins with the second one, within 15 minutes."}
        </Empty>
      )}
    </Panel>
  );
}

export function Tips(): JSX.Element {
  const tips = useTopic("tips");
  if (!tips) return <Loading lines={6} />;
  return (
    <div class="grid">
      <NowPanel now={tips.now} />
      <DayPanel history={tips.history} />
    </div>
  );
}
