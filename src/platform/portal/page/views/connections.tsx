// Submissions over QUIC and WebSockets: keys and open connections with their rates, rejections and drops.

import type { JSX } from "preact";
import type { ConnectionView, KeyConnectionsView } from "../../types.ts";
import { RecentTime } from "../components/basics.tsx";
import { useTopic } from "../hooks.ts";
import { count, rate } from "../units.ts";
import { FaultCount, Num, TablePanel } from "./operator-tables.tsx";

const countColumns = [
  { name: "Rate", isNumber: true },
  { name: "Accepted", isNumber: true },
  { name: "Rejected", isNumber: true },
  { name: "Rate limited", isNumber: true },
  { name: "Dropped", isNumber: true },
];

const transportNames: Readonly<Record<ConnectionView["transport"], string>> = {
  quic: "QUIC",
  websocket: "WebSocket",
};

function Counts({ of }: { readonly of: ConnectionView | KeyConnectionsView }): JSX.Element {
  return (
    <>
      <Num>{rate(of.submissionsPerSecond)}</Num>
      <Num>{count(of.accepted)}</Num>
      <Num>{count(of.rejected)}</Num>
      <FaultCount value={of.rateLimited} />
      <FaultCount value={of.dropped} />
    </>
  );
}

interface ConnectionsPanelProps {
  /** `connections`: those of the account. The panel is absent until the account has used one. */
  readonly topic: "connections" | "allConnections";
}

export function ConnectionsPanel({ topic }: ConnectionsPanelProps): JSX.Element | null {
  const view = useTopic(topic);
  const isOperator = topic === "allConnections";
  if (!isOperator && (view === undefined || view.keys.length === 0)) return null;
  return (
    <>
      <TablePanel
        title="Connections by key"
        wide
        aside="since the start of the service"
        items={view?.keys}
        empty="No key has submitted over QUIC or a WebSocket."
        columns={[
          { name: "Key" },
          ...(isOperator ? [{ name: "Account" }] : []),
          { name: "Connections", isNumber: true },
          ...countColumns,
        ]}
        keyOf={({ key }) => key}
        draw={(one) => (
          <tr>
            <th scope="row">
              <code>{one.key}</code>
            </th>
            {isOperator ? <td>{one.account}</td> : null}
            <Num>{count(one.connections)}</Num>
            <Counts of={one} />
          </tr>
        )}
      />
      <TablePanel
        title="Submission connections"
        wide
        items={view?.connections}
        empty="No open connections."
        columns={[
          { name: "Address" },
          { name: "Key" },
          { name: "Transport" },
          { name: "Protocol" },
          { name: "Opened" },
          ...countColumns,
        ]}
        keyOf={({ name }) => name}
        draw={(one) => (
          <tr>
            <th scope="row">{one.address}</th>
            <td>
              <code>{one.key}</code>
            </td>
            <td>{transportNames[one.transport]}</td>
            <td>{one.transport === "quic" ? one.protocol : "/relayb"}</td>
            <td>
              <RecentTime iso={one.openedAt} />
            </td>
            <Counts of={one} />
          </tr>
        )}
      />
    </>
  );
}
