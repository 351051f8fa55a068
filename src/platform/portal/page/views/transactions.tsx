// Submissions of the account: the newest ones, and the look-up of one by its signature.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { SubmissionView } from "../../types.ts";
import {
  Badge,
  Empty,
  Failure,
  Loading,
  NoScope,
  Panel,
  RecentTime,
  Sol,
} from "../components/basics.tsx";
import { Rows, Table } from "../components/rows.tsx";
import { useSessionContext, useTopic } from "../hooks.ts";
import { hashOf } from "../router.ts";
import { signatureProblem } from "../signature.ts";
import { displayText } from "../timeline.ts";
import { counted, duration, shortened } from "../units.ts";
import { ConnectionsPanel } from "./connections.tsx";
import { Timeline } from "./timeline.tsx";

interface LookUpProps {
  readonly signature: string | null;
  /** Looks up the signature that the address already has. */
  readonly onAgain: () => void;
}

function LookUp({ signature, onAgain }: LookUpProps): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    const asked = input.current?.value.trim() ?? "";
    // The same address causes no event.
    if (asked !== "" && asked === signature) onAgain();
    else location.hash = hashOf("transactions", asked === "" ? null : asked);
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

const pageRows = 20;

function Amount({ lamports }: { readonly lamports: number | null }): JSX.Element {
  return lamports === null ? <span class="number">–</span> : <Sol lamports={lamports} />;
}

function SubmissionRow({ submission }: { readonly submission: SubmissionView }): JSX.Element {
  const { signature, state, receivedAt, landedMs, method, slot } = submission;
  const { tipLamports, priorityFeeLamports } = submission;
  return (
    <tr>
      <td>
        <a href={hashOf("transactions", signature)} title={signature}>
          <code>{shortened(signature, 8)}</code>
        </a>
      </td>
      <td>
        <Badge state={state} />
      </td>
      <td class="number right">{landedMs === null ? "–" : duration(landedMs)}</td>
      <td>
        <RecentTime iso={receivedAt} />
      </td>
      <td class="right extra">
        <Amount lamports={tipLamports} />
      </td>
      <td class="right extra">
        <Amount lamports={priorityFeeLamports} />
      </td>
      <td class="extra">{method}</td>
      <td class="number right extra">{slot ?? "–"}</td>
    </tr>
  );
}

function SubmissionTable({ items }: { readonly items: readonly SubmissionView[] }): JSX.Element {
  return (
    <Table
      caption="Newest submissions"
      columns={[
        { name: "Signature" },
        { name: "State" },
        { name: "In a block after", isNumber: true },
        { name: "Received" },
        { name: "Tip", isNumber: true, isExtra: true },
        { name: "Priority fee", isNumber: true, isExtra: true },
        { name: "Method", isExtra: true },
        { name: "Slot", isNumber: true, isExtra: true },
      ]}
    >
      <Rows
        items={items}
        keyOf={({ signature }) => signature}
        draw={(submission) => <SubmissionRow submission={submission} />}
      />
    </Table>
  );
}

interface FilterProps {
  readonly states: readonly string[];
  readonly chosen: string;
  readonly onChoose: (state: string) => void;
}

function Filter({ states, chosen, onChoose }: FilterProps): JSX.Element {
  return (
    <label class="filter">
      State{" "}
      <select value={chosen} onChange={({ currentTarget }) => onChoose(currentTarget.value)}>
        <option value="">all</option>
        {states.map((state) => (
          <option key={state} value={state}>
            {displayText(state)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface PagerProps {
  readonly page: number;
  readonly pages: number;
  readonly onPage: (page: number) => void;
}

function Pager({ page, pages, onPage }: PagerProps): JSX.Element | null {
  if (pages <= 1) return null;
  return (
    <div class="buttons pager">
      <button type="button" disabled={page === 0} onClick={() => onPage(page - 1)}>
        Newer<span class="hidden"> submissions</span>
      </button>
      <button type="button" disabled={page >= pages - 1} onClick={() => onPage(page + 1)}>
        Older<span class="hidden"> submissions</span>
      </button>
      <span class="muted">
        page {page + 1} of {pages}
      </span>
    </div>
  );
}

function Newest(): JSX.Element {
  const submissions = useTopic("submissions");
  const [chosen, setChosen] = useState("");
  const [wanted, setWanted] = useState(0);
  const states = [...new Set(submissions?.map(({ state }) => state))].toSorted();
  const items = submissions?.filter(({ state }) => chosen === "" || state === chosen) ?? [];
  const pages = Math.max(1, Math.ceil(items.length / pageRows));
  const page = Math.min(wanted, pages - 1);
  const choose = (state: string) => {
    setChosen(state);
    setWanted(0);
  };
  const aside = submissions ? (
    <>
      {counted(items.length, "submission")}
      <Filter states={states} chosen={chosen} onChoose={choose} />
    </>
  ) : undefined;
  return (
    <Panel title="Newest" wide aside={aside}>
      {submissions === undefined ? <Loading lines={8} /> : null}
      {submissions?.length === 0 ? (
        <Empty>No submissions with a key of this account yet.</Empty>
      ) : null}
      {submissions !== undefined && submissions.length > 0 && items.length === 0 ? (
        <Empty>None of the newest submissions is {displayText(chosen)}.</Empty>
      ) : null}
      {items.length > 0 ? (
        <SubmissionTable items={items.slice(page * pageRows, (page + 1) * pageRows)} />
      ) : null}
      <Pager page={page} pages={pages} onPage={setWanted} />
    </Panel>
  );
}

/** A text that cannot be a signature is not looked up. */
function Found({ signature }: { readonly signature: string }): JSX.Element {
  const problem = signatureProblem(signature);
  return problem === null ? (
    <Timeline key={signature} signature={signature} />
  ) : (
    <Failure message={problem} />
  );
}

export function Transactions({ argument }: { readonly argument: string | null }): JSX.Element {
  const { scopes } = useSessionContext().session.key;
  const [lookUps, setLookUps] = useState(0);
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
        <LookUp signature={argument} onAgain={() => setLookUps((n) => n + 1)} />
        {argument === null ? null : <Found key={lookUps} signature={argument} />}
      </Panel>
      <Newest />
      <ConnectionsPanel topic="connections" />
    </div>
  );
}
