// Outcome of one transaction, and the time after receipt of each event.

import type { JSX } from "preact";
import { useCallback, useEffect } from "preact/hooks";
import { call } from "../api.ts";
import { type StatusEvent, type TransactionStatus, transactionStatus } from "../call-readers.ts";
import { every } from "../clock.ts";
import { Badge, Empty, Fact, LoadedPart, Sol, When } from "../components/basics.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { type Column, Table } from "../components/rows.tsx";
import { TimelineChart } from "../components/timeline-chart.tsx";
import { useLoaded } from "../hooks.ts";
import { displayText } from "../timeline.ts";
import { count, duration, lamportsText, offset, shortened } from "../units.ts";

const columns: readonly Column[] = [
  { name: "After receipt", isNumber: true },
  { name: "Event" },
  { name: "Route" },
  { name: "Attempt", isNumber: true },
  { name: "Slot", isNumber: true },
  { name: "Leader", isExtra: true },
  { name: "Note" },
];

function noteOf({ reason, method, bytes }: StatusEvent): string {
  if (reason !== null) return displayText(reason);
  if (method !== null) return method;
  return bytes === null ? "" : `${count(bytes)} bytes`;
}

/** The service lists events in the order in which they reached it: an observation in a block may come late. */
function byTime(events: readonly StatusEvent[]): readonly StatusEvent[] {
  return events.toSorted((a, b) => a.offsetMs - b.offsetMs);
}

function EventRow({ event }: { readonly event: StatusEvent }): JSX.Element {
  const { at, kind, offsetMs, route, attempt, slot, leader } = event;
  return (
    <tr>
      <td class="number right">
        <time dateTime={at} title={at}>
          {offset(offsetMs)}
        </time>
      </td>
      <th scope="row">
        <Badge state={kind} />
      </th>
      <td>{route ?? ""}</td>
      <td class="number right">{attempt ?? ""}</td>
      <td class="number right">{slot ?? ""}</td>
      <td class="extra">
        {leader === null ? null : <code title={leader}>{shortened(leader, 4)}</code>}
      </td>
      <td>{noteOf(event)}</td>
    </tr>
  );
}

/** The time until it was in a block, and the time until its outcome was known. */
function Headline({ state, events }: Pick<TransactionStatus, "state" | "events">) {
  const seen = events.find(({ kind }) => kind === "seen");
  const last = events.at(-1);
  const end = state === "open" ? undefined : last;
  if (!seen) {
    return end ? <strong class="number">{duration(end.offsetMs)} after its receipt</strong> : null;
  }
  return (
    <>
      <strong class="number">in a block {duration(seen.offsetMs)} after its receipt</strong>
      {end ? <span class="number">, outcome known after {duration(end.offsetMs)}</span> : null}
    </>
  );
}

interface AmountFactProps {
  readonly name: string;
  /** Null or undefined: an earlier version of the service received the transaction. */
  readonly lamports: number | null | undefined;
}

function AmountFact({ name, lamports }: AmountFactProps): JSX.Element | null {
  if (lamports === null || lamports === undefined) return null;
  return (
    <Fact name={name}>
      <Sol lamports={lamports} /> <span class="muted">({lamportsText(lamports)})</span>
    </Fact>
  );
}

function Summary({ status }: { readonly status: TransactionStatus }): JSX.Element {
  const { signature, state, reason, method, bundleId, receivedAt, slot, err, events } = status;
  const received = events.find(({ kind }) => kind === "received");
  return (
    <>
      <p class="outcome">
        <Badge state={state} /> <Headline state={state} events={events} />
        {reason === null ? null : <span> ({displayText(reason)})</span>}
      </p>
      <dl class="facts">
        <Fact name="Signature">
          <code class="breaking">{signature}</code> <CopyButton text={signature} what="signature" />
        </Fact>
        <Fact name="Received">
          <When iso={receivedAt} />
        </Fact>
        <Fact name="Method">{method}</Fact>
        <AmountFact name="Tip" lamports={received?.tipLamports} />
        <AmountFact name="Priority fee" lamports={received?.priorityFeeLamports} />
        <Fact name="Slot">
          <span class="number">{slot ?? "none yet"}</span>
        </Fact>
        {bundleId === null ? null : (
          <Fact name="Bundle">
            <code class="breaking">{bundleId}</code>
          </Fact>
        )}
        {err === null ? null : (
          <Fact name="Error">
            <code class="breaking">{JSON.stringify(err)}</code>
          </Fact>
        )}
      </dl>
    </>
  );
}

const refreshMs = 1000;

export function Timeline({ signature }: { readonly signature: string }): JSX.Element {
  const load = useCallback(
    () => call("getTransactionStatus", [signature], transactionStatus),
    [signature],
  );
  const [loaded, again] = useLoaded(load);
  const isOpen = loaded.kind === "ready" && loaded.value?.state === "open";
  useEffect(() => (isOpen ? every(refreshMs, again) : undefined), [isOpen, again]);
  return (
    <div class="found" aria-live="polite">
      <LoadedPart loaded={loaded} again={again}>
        {(status) =>
          status === null ? (
            <Empty>
              This account has no submission with the signature{" "}
              <code title={signature}>{shortened(signature, 8)}</code>, or its history has expired.
            </Empty>
          ) : (
            <>
              <Summary status={status} />
              <TimelineChart events={status.events} />
              <Table caption="Events of the transaction" columns={columns}>
                {byTime(status.events).map((event) => (
                  <EventRow
                    key={`${event.kind}${event.route}${event.attempt}${event.offsetMs}`}
                    event={event}
                  />
                ))}
              </Table>
            </>
          )
        }
      </LoadedPart>
    </div>
  );
}
