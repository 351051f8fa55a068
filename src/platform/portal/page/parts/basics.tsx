// Small things that every view is made of: panels, badges, amounts, moments, and what stands in for
// data that is not there.

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { type Loaded, useNow } from "../hooks.ts";
import { outcomeOf, worded } from "../timeline.ts";
import { clockAndDay, clockSeconds, exact, ms, relative } from "../times.ts";
import { lamportsText, sol } from "../units.ts";

interface PanelProps {
  readonly title: string;
  /** Beside the title: numbers of the whole, buttons. */
  readonly aside?: ComponentChildren;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}

export function Panel({ title, aside, wide = false, children }: PanelProps): JSX.Element {
  const id = useId();
  return (
    <section class={wide ? "panel wide" : "panel"} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{title}</h2>
        {aside === undefined ? null : <div class="aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}

/** A state's word, with its colour and a shape that tells the same. */
export function Badge({ state }: { readonly state: string }): JSX.Element {
  return <span class={`badge ${outcomeOf(state)}`}>{worded(state)}</span>;
}

/** Exact lamports on demand. */
export function Sol({ lamports }: { readonly lamports: number }): JSX.Element {
  return (
    <span class="number" title={lamportsText(lamports)}>
      {sol(lamports)}
    </span>
  );
}

/** How long ago, with the moment as title. */
export function Ago({ iso }: { readonly iso: string }): JSX.Element {
  const now = useNow();
  return (
    <time dateTime={iso} title={exact(ms(iso))}>
      {relative(ms(iso), now)}
    </time>
  );
}

/** The time of day and how long ago: for what happened lately. */
export function Lately({ iso }: { readonly iso: string }): JSX.Element {
  return (
    <span class="lately">
      <span class="number">{clockSeconds(ms(iso))}</span>{" "}
      <span class="muted">
        <Ago iso={iso} />
      </span>
    </span>
  );
}

/** Time, day and how long ago: for what may be days away. */
export function When({ iso }: { readonly iso: string }): JSX.Element {
  const now = useNow();
  return (
    <span class="lately">
      <span class="number">{clockAndDay(ms(iso), now)}</span>{" "}
      <span class="muted">
        <Ago iso={iso} />
      </span>
    </span>
  );
}

/** Nothing is there, and that is no fault: says what would bring something. */
export function Empty({ children }: { readonly children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>;
}

export function Loading({ lines = 3 }: { readonly lines?: number }): JSX.Element {
  return (
    <div class="loading" role="status">
      <span class="hidden">Loading …</span>
      {Array.from({ length: lines }, (_, i) => (
        <span class="bone" key={i} />
      ))}
    </div>
  );
}

interface FailureProps {
  readonly message: string | null;
  readonly again?: () => void;
}

/** Spoken at once; nothing while there is no message. */
export function Failure({ message, again }: FailureProps): JSX.Element {
  return (
    <div role="alert">
      {message === null ? null : (
        <p class="failure">
          {message}
          {again ? (
            <button type="button" class="quiet" onClick={again}>
              Try again
            </button>
          ) : null}
        </p>
      )}
    </div>
  );
}

interface LoadedPartProps<T> {
  readonly loaded: Loaded<T>;
  readonly again: () => void;
  readonly children: (value: T) => ComponentChildren;
}

export function LoadedPart<T>({ loaded, again, children }: LoadedPartProps<T>): JSX.Element {
  if (loaded.kind === "loading") return <Loading />;
  if (loaded.kind === "failed") return <Failure message={loaded.message} again={again} />;
  return <>{children(loaded.value)}</>;
}

interface FactProps {
  readonly name: string;
  readonly children: ComponentChildren;
}

/** One line of a `<dl class="facts">`. */
export function Fact({ name, children }: FactProps): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** The scope is missing: what would be here never comes. */
export function NoScope({
  scope,
  what,
}: {
  readonly scope: string;
  readonly what: string;
}): JSX.Element {
  return (
    <Empty>
      This key cannot show {what}: it lacks the scope <code>{scope}</code>. Ask the operator for a
      key with this scope.
    </Empty>
  );
}
