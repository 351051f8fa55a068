// Submissions of the account: the newest ones, and the look-up of one by its signature.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { Badge, Empty, Loading, NoScope, Panel, RecentTime } from "../components/basics.tsx";
import { Rows, Table } from "../components/rows.tsx";
import { useSessionContext, useTopic } from "../hooks.ts";
import { hashOf } from "../router.ts";
import { counted, shortened } from "../units.ts";
import { Timeline } from "./timeline.tsx";

function LookUp({ signature }: { readonly signature: string | null }): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    const asked = input.current?.value.trim() ?? "";
    location.hash = hashOf("transactions", asked === "" ? null : asked);
  };
  return (
    <search>
      <form class="look-up" onSubmit={submit}>
        <label for="signature" class="hidden">
          Signature of a transaction
        </label>
        <input
          // A click on a listed signature replaces the field's text.
          key={signature ?? ""}
          id="signature"
          ref={input}
          class="code"
          defaultValue={signature ?? ""}
          placeholder="signature of a transaction"
          autocomplete="off"
          spellcheck={false}
        />
        <button type="submit" class="primary">
          Look up
        </button>
      </form>
    </search>
  );
}

function Newest(): JSX.Element {
  const submissions = useTopic("submissions");
  const aside = submissions ? counted(submissions.length, "submission") : undefined;
  return (
    <Panel title="Newest" wide aside={aside}>
      {submissions === undefined ? <Loading lines={8} /> : null}
      {submissions?.length === 0 ? (
        <Empty>No submissions with a key of this account yet.</Empty>
      ) : null}
      {submissions !== undefined && submissions.length > 0 ? (
        <Table
          caption="Newest submissions"
          columns={[
            { name: "Signature" },
            { name: "State" },
            { name: "Received" },
            { name: "Method", isExtra: true },
            { name: "Slot", isNumber: true, isExtra: true },
          ]}
        >
          <Rows
            items={submissions}
            keyOf={({ signature }) => signature}
            draw={({ signature, state, receivedAt, method, slot }) => (
              <tr>
                <td>
                  <a href={hashOf("transactions", signature)} title={signature}>
                    <code>{shortened(signature, 8)}</code>
                  </a>
                </td>
                <td>
                  <Badge state={state} />
                </td>
                <td>
                  <RecentTime iso={receivedAt} />
                </td>
                <td class="extra">{method}</td>
                <td class="number right extra">{slot ?? "–"}</td>
              </tr>
            )}
          />
        </Table>
      ) : null}
    </Panel>
  );
}

export function Transactions({ argument }: { readonly argument: string | null }): JSX.Element {
  const { scopes } = useSessionContext().session.key;
  if (!scopes.includes("submit") && !scopes.includes("batch")) {
    return (
      <Panel title="Newest" wide>
        <NoScope scope="submit" what="submissions" />
      </Panel>
    );
  }
  return (
    <div class="grid">
      <Panel title="Look up" wide aside="submissions of your account within the stored history">
        <LookUp signature={argument} />
        {argument === null ? null : <Timeline key={argument} signature={argument} />}
      </Panel>
      <Newest />
    </div>
  );
}
