// Decoded streams: the open ones with their delay and waiting bytes, and how the last ones ended.

import type { JSX } from "preact";
import type { EndedStreamView, StreamView } from "../../types.ts";
import { RecentTime } from "../components/basics.tsx";
import type { Column } from "../components/rows.tsx";
import { useTopic } from "../hooks.ts";
import { count, nanoseconds, rate } from "../units.ts";
import { FaultCount, Num, TablePanel } from "./operator-tables.tsx";

interface StreamsPanelProps {
  /** `streams`: those of the account. The panel is absent until the account has opened one. */
  readonly topic: "streams" | "allStreams";
}

interface TableProps<T> {
  readonly items: readonly T[] | undefined;
  /** Whether the table shows streams of several accounts. */
  readonly hasAccounts: boolean;
}

export function StreamsPanel({ topic }: StreamsPanelProps): JSX.Element | null {
  const view = useTopic(topic);
  const hasAccounts = topic === "allStreams";
  const isEmpty = view === undefined || view.streams.length + view.ended.length === 0;
  if (!hasAccounts && isEmpty) return null;
  return (
    <>
      <OpenStreams items={view?.streams} hasAccounts={hasAccounts} />
      <EndedStreams items={view?.ended} hasAccounts={hasAccounts} />
    </>
  );
}

function ownerColumns(hasAccounts: boolean): readonly Column[] {
  return [
    { name: "Address" },
    { name: "Key" },
    ...(hasAccounts ? [{ name: "Account" }] : []),
    { name: "Dialect" },
    { name: "Tier" },
  ];
}

interface OwnerProps {
  readonly of: StreamView | EndedStreamView;
  readonly hasAccounts: boolean;
}

function Owner({ of, hasAccounts }: OwnerProps): JSX.Element {
  return (
    <>
      <th scope="row">{of.address}</th>
      <td>
        <code>{of.key}</code>
      </td>
      {hasAccounts ? <td>{of.account}</td> : null}
      <td>{of.dialect}</td>
      <td>{of.tier}</td>
    </>
  );
}

function OpenStreams({ items, hasAccounts }: TableProps<StreamView>): JSX.Element {
  return (
    <TablePanel
      title="Decoded streams"
      wide
      aside="delay: from the last shred to the connection, mean of ten seconds"
      items={items}
      empty="No open streams."
      columns={[
        ...ownerColumns(hasAccounts),
        { name: "Opened" },
        { name: "Filters", isNumber: true },
        { name: "Rate", isNumber: true },
        { name: "Matched", isNumber: true },
        { name: "Sent", isNumber: true },
        { name: "Waiting bytes", isNumber: true },
        { name: "Left out", isNumber: true },
        { name: "Delay", isNumber: true },
      ]}
      keyOf={({ name }) => name}
      draw={(one) => (
        <tr>
          <Owner of={one} hasAccounts={hasAccounts} />
          <td>
            <RecentTime iso={one.openedAt} />
          </td>
          <Num>{count(one.filters)}</Num>
          <Num>{rate(one.messagesPerSecond)}</Num>
          <Num>{count(one.matched)}</Num>
          <Num>{count(one.sent)}</Num>
          <FaultCount value={one.waitingBytes} />
          <FaultCount value={one.leftOut} />
          <Num>{one.delayNs === null ? "–" : nanoseconds(one.delayNs)}</Num>
        </tr>
      )}
    />
  );
}

function EndedStreams({ items, hasAccounts }: TableProps<EndedStreamView>): JSX.Element {
  return (
    <TablePanel
      title="Ended streams"
      wide
      items={items}
      empty="No stream has ended."
      columns={[
        ...ownerColumns(hasAccounts),
        { name: "Ended" },
        { name: "Matched", isNumber: true },
        { name: "Reason" },
      ]}
      keyOf={({ name }) => name}
      draw={(one) => (
        <tr>
          <Owner of={one} hasAccounts={hasAccounts} />
          <td>
            <RecentTime iso={one.endedAt} />
          </td>
          <Num>{count(one.matched)}</Num>
          <td>{one.text === "" ? one.reason : one.text}</td>
        </tr>
      )}
    />
  );
}
