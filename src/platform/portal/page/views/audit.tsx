// Audit trail: all tier events and registered tips, page by page, newest first.

import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useId, useRef, useState } from "preact/hooks";
import type { TierView } from "../../types.ts";
import { call, monthExport } from "../api.ts";
import { type Registration, registrations, type TierEvent, tierEvents } from "../call-readers.ts";
import { after, nowMs } from "../clock.ts";
import { Badge, Empty, Failure, LoadedPart, Panel, Sol, When } from "../components/basics.tsx";
import { fieldAttributes, useFailureFocus } from "../components/refused-field.ts";
import { type Column, Rows, Table } from "../components/rows.tsx";
import { type Loaded, useAction, useLoaded } from "../hooks.ts";
import { displayText, tierEventText } from "../timeline.ts";
import { shortened } from "../units.ts";

const pageRows = 8;
const releaseMs = 60_000;

/** One page and its navigation. */
interface Paged<T> {
  readonly loaded: Loaded<readonly T[]>;
  readonly again: () => void;
  readonly isFirst: boolean;
  readonly newest: () => void;
  readonly older: (before: number) => void;
}

/** A new value of `changes` reloads the newest page. */
function usePages<T>(
  load: (before: number | null) => Promise<readonly T[]>,
  changes: string,
): Paged<T> {
  const [before, setBefore] = useState<number | null>(null);
  const loadPage = useCallback(() => load(before), [load, before]);
  const [loaded, again] = useLoaded(loadPage);
  const shown = useRef(changes);
  useEffect(() => {
    if (shown.current !== changes && before === null) again();
    shown.current = changes;
  }, [changes, before, again]);
  const newest = () => setBefore(null);
  return { loaded, again, isFirst: before === null, newest, older: setBefore };
}

interface PagerProps<T> {
  readonly paged: Paged<T>;
  readonly items: readonly T[];
  readonly placeOf: (item: T) => number;
  /** Name of the entries, for the labels of the buttons. */
  readonly what: string;
}

function Pager<T>({ paged, items, placeOf, what }: PagerProps<T>): JSX.Element | null {
  const last = items.at(-1);
  const hasOlder = items.length >= pageRows && last !== undefined;
  if (paged.isFirst && !hasOlder) return null;
  return (
    <div class="buttons pager">
      <button type="button" disabled={paged.isFirst} onClick={paged.newest}>
        Newest<span class="hidden"> {what}</span>
      </button>
      <button
        type="button"
        disabled={!hasOlder}
        onClick={() => (last === undefined ? undefined : paged.older(placeOf(last)))}
      >
        Older<span class="hidden"> {what}</span>
      </button>
    </div>
  );
}

function save(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // Not every browser has begun to read it when the click returns.
  after(releaseMs, () => URL.revokeObjectURL(link.href));
}

/** Downloads a month of both tables. The page reads it first, because a link cannot show why it failed. */
function MonthExport(): JSX.Element {
  const now = new Date(nowMs()).toISOString().slice(0, 7);
  const [month, setMonth] = useState(now);
  const id = useId();
  const action = useAction();
  const form = useFailureFocus<HTMLDivElement>(action);
  const download = () =>
    action.run(async () => save(await monthExport(month), `shredway-${month}.csv`));
  return (
    <div ref={form} class="buttons export">
      <label for={id}>Month</label>
      <input
        id={id}
        type="month"
        max={now}
        value={month}
        placeholder="YYYY-MM"
        {...fieldAttributes(action.isInputRefused, `${id}-failure`)}
        onInput={({ currentTarget }) => setMonth(currentTarget.value)}
      />
      <button type="button" data-again disabled={action.isBusy} onClick={() => void download()}>
        Export CSV
      </button>
      <Failure id={`${id}-failure`} message={action.failure} />
    </div>
  );
}

interface TrailProps<T extends object> {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly paged: Paged<T>;
  readonly empty: ComponentChildren;
  readonly columns: readonly Column[];
  readonly placeOf: (item: T) => number;
  readonly keyOf: (item: T) => string;
  readonly draw: (item: T) => ComponentChildren;
}

function Trail<T extends object>(props: TrailProps<T>): JSX.Element {
  const { title, aside, paged, empty, columns, placeOf, keyOf, draw } = props;
  return (
    <Panel title={title} aside={aside}>
      <LoadedPart loaded={paged.loaded} again={paged.again}>
        {(items) => (
          <>
            {items.length === 0 ? (
              <Empty>{paged.isFirst ? empty : "No older entries."}</Empty>
            ) : (
              <Table caption={title} columns={columns}>
                <Rows items={items} keyOf={keyOf} draw={draw} />
              </Table>
            )}
            <Pager paged={paged} items={items} placeOf={placeOf} what={title.toLowerCase()} />
          </>
        )}
      </LoadedPart>
    </Panel>
  );
}

function eventText({ from, to }: TierEvent): string {
  const reached = to ?? "none";
  return from === to ? reached : `${from ?? "none"} → ${reached}`;
}

function loadEvents(before: number | null): Promise<readonly TierEvent[]> {
  const page = before === null ? { limit: pageRows } : { limit: pageRows, before };
  return call("getTierHistory", [page], tierEvents);
}

/** Changes with every new event. */
function changesOf({ tier, grace, sumLamports }: TierView): string {
  return `${tier} ${grace?.since} ${sumLamports}`;
}

export function TierHistory({ tier }: { readonly tier: TierView }): JSX.Element {
  const paged = usePages(loadEvents, changesOf(tier));
  return (
    <Trail
      title="Tier history"
      paged={paged}
      empty="No tier events yet. The first one appears when registered tips reach a threshold."
      columns={[
        { name: "When" },
        { name: "Event" },
        { name: "Tier" },
        { name: "Sum", isNumber: true },
      ]}
      placeOf={({ number }) => number}
      keyOf={({ number }) => String(number)}
      draw={(event) => (
        <tr>
          <td>
            <When iso={event.at} />
          </td>
          <td>{tierEventText(event.kind)}</td>
          <td class="number">{eventText(event)}</td>
          <td class="right">
            <Sol lamports={event.sumLamports} />
          </td>
        </tr>
      )}
    />
  );
}

function loadRegistrations(beforeMs: number | null): Promise<readonly Registration[]> {
  const page = beforeMs === null ? { limit: pageRows } : { limit: pageRows, beforeMs };
  return call("getRegistrations", [page], registrations);
}

export function Registrations({ tier }: { readonly tier: TierView }): JSX.Element {
  const paged = usePages(loadRegistrations, String(tier.sumLamports));
  return (
    <Trail
      title="Registered tips"
      aside={<MonthExport />}
      paged={paged}
      empty="No registered tips yet."
      columns={[
        { name: "When" },
        { name: "Signature" },
        { name: "State" },
        { name: "Paid", isNumber: true },
      ]}
      placeOf={({ registeredMs }) => registeredMs}
      keyOf={({ signature }) => signature}
      draw={({ signature, state, reason, lamports, countedLamports, registeredAt }) => (
        <tr>
          <td>
            <When iso={registeredAt} />
          </td>
          <td>
            <code title={signature}>{shortened(signature, 4)}</code>
          </td>
          <td>
            <Badge state={state} />
            {reason === null ? null : <span class="muted"> {displayText(reason)}</span>}
          </td>
          <td class="right">
            <Sol lamports={countedLamports ?? lamports} />
          </td>
        </tr>
      )}
    />
  );
}
