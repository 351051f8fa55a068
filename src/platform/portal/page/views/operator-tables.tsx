// Tables of the operator's view.

import type { ComponentChildren, JSX } from "preact";
import { Ago, Badge, Empty, Loading, Panel } from "../components/basics.tsx";
import { type Column, Rows, Table } from "../components/rows.tsx";
import { ShareBar } from "../components/sparkline.tsx";
import { useTopic } from "../hooks.ts";
import { displayText } from "../timeline.ts";
import { exact, ms } from "../times.ts";
import { count, counted, duration, nanoseconds, percent, rate } from "../units.ts";

interface TablePanelProps<T extends object> {
  readonly title: string;
  readonly aside?: string | undefined;
  readonly wide?: boolean;
  /** Undefined before the first message. */
  readonly items: readonly T[] | undefined;
  readonly empty: string;
  readonly columns: readonly Column[];
  readonly keyOf: (item: T) => string;
  readonly draw: (item: T) => ComponentChildren;
}

export function TablePanel<T extends object>(props: TablePanelProps<T>): JSX.Element {
  const { title, aside, wide = false, items, empty, columns, keyOf, draw } = props;
  return (
    <Panel title={title} wide={wide} aside={aside}>
      {items === undefined ? <Loading /> : null}
      {items?.length === 0 ? <Empty>{empty}</Empty> : null}
      {items !== undefined && items.length > 0 ? (
        <Table caption={title} columns={columns}>
          <Rows items={items} keyOf={keyOf} draw={draw} />
        </Table>
      ) : null}
    </Panel>
  );
}

function Ns({ value }: { readonly value: number | null }): JSX.Element {
  return <td class="number right">{value === null ? "–" : nanoseconds(value)}</td>;
}

export function Num({ children }: { readonly children: ComponentChildren }): JSX.Element {
  return <td class="number right">{children}</td>;
}

function Share({ share }: { readonly share: number }): JSX.Element {
  return (
    <td class="number right">
      <span class="with-bar">
        <ShareBar share={share} />
        <span>{percent(share)}</span>
      </span>
    </td>
  );
}

/** A count of faults; zero is muted. */
export function FaultCount({ value }: { readonly value: number }): JSX.Element {
  return <td class={value > 0 ? "number right alert" : "number right muted"}>{count(value)}</td>;
}

export function SourcesPanel(): JSX.Element {
  const sources = useTopic("sources");
  return (
    <TablePanel
      title="Sources"
      wide
      aside="first deliveries and lead over the next source, last minute"
      items={sources}
      empty="No sources configured."
      columns={[
        { name: "Source" },
        { name: "Tier" },
        { name: "Rate", isNumber: true },
        { name: "Delivered first", isNumber: true },
        { name: "Duplicates", isNumber: true },
        { name: "Lead p50", isNumber: true },
        { name: "p90", isNumber: true },
        { name: "p99", isNumber: true },
        { name: "Received", isNumber: true },
        { name: "Refused", isNumber: true },
        { name: "Subscription" },
      ]}
      keyOf={({ name }) => name}
      draw={(source) => (
        <tr>
          <th scope="row">{source.name}</th>
          <td>{source.isForwarded ? source.tier : `${source.tier}, own use`}</td>
          <Num>{rate(source.receivedPerSecond)}</Num>
          <Share share={source.firstShare} />
          <Num>{percent(source.duplicateShare)}</Num>
          <Ns value={source.leadTime.p50Ns} />
          <Ns value={source.leadTime.p90Ns} />
          <Ns value={source.leadTime.p99Ns} />
          <Num>{count(source.received)}</Num>
          <FaultCount value={source.refused} />
          <td>
            {source.state === null ? "–" : <Badge state={source.state} />}
            <LastFailure text={source.problem} at={null} />
            {source.traceDelays.map(({ region, lastNs }) => (
              <p class="muted number" title="one-way delay of the last trace packet">
                {region} {duration(lastNs / 1e6)}
              </p>
            ))}
          </td>
        </tr>
      )}
    />
  );
}

/** The beginning and the time; opened, the whole text. */
function LastFailure({ text, at }: { readonly text: string | null; readonly at: string | null }) {
  if (text === null) return null;
  return (
    <details class="failure-text">
      <summary title={text}>
        <span class="long">{text}</span>
        {at === null ? null : (
          <span class="muted">
            {" "}
            <Ago iso={at} />
          </span>
        )}
      </summary>
      <p>{text}</p>
      {at === null ? null : <p class="muted number">{exact(ms(at))}</p>}
    </details>
  );
}

export function RoutesPanel(): JSX.Element {
  const routes = useTopic("routes");
  return (
    <TablePanel
      title="Routes"
      wide
      items={routes}
      empty="No routes configured; transactions cannot be submitted."
      columns={[
        { name: "Route" },
        { name: "Kind" },
        { name: "State" },
        { name: "Sent", isNumber: true },
        { name: "Accepted", isNumber: true },
        { name: "Refused", isNumber: true },
        { name: "Queued", isNumber: true },
        { name: "Send p50", isNumber: true },
        { name: "Last failure" },
      ]}
      keyOf={({ name }) => name}
      draw={(route) => (
        <tr>
          <th scope="row">{route.name}</th>
          <td>{route.kind}</td>
          <td>
            <Badge state={route.state} />
          </td>
          <Num>{count(route.sent)}</Num>
          <Num>{count(route.taken)}</Num>
          <FaultCount value={route.refused} />
          <Num>{count(route.queued)}</Num>
          <Ns value={route.sendP50Ns} />
          <td>
            <LastFailure text={route.lastFailure} at={route.lastFailureAt} />
          </td>
        </tr>
      )}
    />
  );
}

export function WorkersPanel(): JSX.Element {
  const workers = useTopic("workers");
  const items = workers?.map((worker, i) => ({ ...worker, name: `worker ${i}` }));
  return (
    <TablePanel
      title="Workers"
      items={items}
      empty="The relay is not running."
      columns={[
        { name: "Worker" },
        { name: "Load", isNumber: true },
        { name: "Rate", isNumber: true },
        { name: "Kernel drops", isNumber: true },
        { name: "Highest slot", isNumber: true },
      ]}
      keyOf={({ name }) => name}
      draw={(worker) => (
        <tr>
          <th scope="row">{worker.name}</th>
          <Share share={worker.load} />
          <Num>{rate(worker.receivedPerSecond)}</Num>
          <FaultCount value={worker.receiveDrops} />
          <Num>{worker.highestSlot}</Num>
        </tr>
      )}
    />
  );
}

/** Lists verdicts that occurred; the others are only counted. */
export function VerdictsPanel(): JSX.Element {
  const verdicts = useTopic("verdicts");
  const items = verdicts?.filter(({ count: packets }) => packets > 0);
  const silent = (verdicts?.length ?? 0) - (items?.length ?? 0);
  return (
    <TablePanel
      title="Verdicts"
      aside={verdicts ? `${silent} of ${verdicts.length} never occurred` : undefined}
      items={items}
      empty="No packets received yet."
      columns={[
        { name: "Verdict" },
        { name: "Rate", isNumber: true },
        { name: "Packets", isNumber: true },
      ]}
      keyOf={({ name }) => name}
      draw={({ name, perSecond, count: packets }) => (
        <tr>
          <th scope="row">{displayText(name)}</th>
          <Num>{rate(perSecond)}</Num>
          <Num>{count(packets)}</Num>
        </tr>
      )}
    />
  );
}

export function FanOutPanel(): JSX.Element {
  const fanOut = useTopic("fanOut");
  const aside = fanOut
    ? `${rate(fanOut.sentPerSecond)} to all, ${counted(fanOut.destinations.length, "destination")} shown, most failures first`
    : undefined;
  return (
    <TablePanel
      title="Fan-out"
      wide
      aside={aside}
      items={fanOut?.destinations}
      empty="No destinations."
      columns={[
        { name: "Destination" },
        { name: "Address" },
        { name: "Tier" },
        { name: "Rate", isNumber: true },
        { name: "Failed", isNumber: true },
        { name: "Unreachable", isNumber: true },
      ]}
      keyOf={({ name, address }) => `${name} ${address}`}
      draw={(destination) => (
        <tr>
          <th scope="row">{destination.name}</th>
          <td>
            <code>{destination.address}</code>
          </td>
          <td>{destination.tier}</td>
          <Num>{rate(destination.sentPerSecond)}</Num>
          <FaultCount value={destination.failed} />
          <FaultCount value={destination.icmp} />
        </tr>
      )}
    />
  );
}
