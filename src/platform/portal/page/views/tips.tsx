// Tips of transactions that landed through this service: current percentiles, and those of the last 24
// hours or seven days.

import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import type { TipPoint, TipsView } from "../../types.ts";
import { call } from "../api.ts";
import { tipHistory } from "../call-readers.ts";
import { Ago, Badge, Empty, LoadedPart, Loading, Panel } from "../components/basics.tsx";
import { percentiles, TipsChart } from "../components/tips-chart.tsx";
import { useLoaded, useTopic } from "../hooks.ts";
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

const periods = ["24 hours", "7 days"] as const;
type Period = (typeof periods)[number];

interface PeriodChoiceProps {
  readonly period: Period;
  readonly onChoose: (period: Period) => void;
}

function PeriodChoice({ period, onChoose }: PeriodChoiceProps): JSX.Element {
  return (
    <fieldset class="segments">
      <legend class="hidden">Period</legend>
      {periods.map((each) => (
        <button
          key={each}
          type="button"
          class="quiet"
          aria-pressed={each === period}
          onClick={() => onChoose(each)}
        >
          {each}
        </button>
      ))}
    </fieldset>
  );
}

function History({
  points,
  period,
}: {
  readonly points: readonly TipPoint[];
  readonly period: Period;
}): JSX.Element {
  const filled = points.filter(({ count }) => count > 0).length;
  if (filled > 1) return <TipsChart points={points} />;
  return (
    <Empty>
      {filled === 0
        ? `No tip has landed in the last ${period} that this service knows.`
        : "Tips landed in one quarter hour so far. The chart begins with the second one."}
    </Empty>
  );
}

/** Loaded again with each refresh. */
function WeekHistory({ refreshed }: { readonly refreshed: string }): JSX.Element {
  const load = useCallback(() => call("getTipHistory", [], tipHistory), [refreshed]);
  const [loaded, again] = useLoaded(load);
  return (
    <LoadedPart loaded={loaded} again={again}>
      {(points) => <History points={points} period="7 days" />}
    </LoadedPart>
  );
}

function HistoryPanel({ now, history }: TipsView): JSX.Element {
  const [period, setPeriod] = useState<Period>("24 hours");
  return (
    <Panel title="History" wide aside={<PeriodChoice period={period} onChoose={setPeriod} />}>
      <p class="note">SOL, logarithmic; one point per 15 min. A gap has no values.</p>
      {period === "7 days" ? (
        <WeekHistory refreshed={now.time} />
      ) : (
        <History points={history} period={period} />
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
      <HistoryPanel {...tips} />
    </div>
  );
}
