// Basic components of every view: panels, badges, amounts, times, and placeholders for missing
// data.

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { type Loaded, useNow } from "../hooks.ts";
import { displayText, outcomeOf } from "../timeline.ts";
import { clockAndDay, clockSeconds, exact, ms, relative } from "../times.ts";
import { lamportsText, sol } from "../units.ts";

interface PanelProps {
  readonly title: string;
  /** Content next to the title: totals, buttons. */
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

/** A state's word with its colour and shape. */
export function Badge({ state }: { readonly state: string }): JSX.Element {
  return <span class={`badge ${outcomeOf(state)}`}>{displayText(state)}</span>;
}

/** An amount in SOL; the tooltip shows lamports. */
export function Sol({ lamports }: { readonly lamports: number }): JSX.Element {
  return (
    <span class="number" title={lamportsText(lamports)}>
      {sol(lamports)}
    </span>
  );
}

/** Relative time; the tooltip shows the exact time. */
export function Ago({ iso }: { readonly iso: string }): JSX.Element {
  const now = useNow();
  return (
    <time dateTime={iso} title={exact(ms(iso))}>
      {relative(ms(iso), now)}
    </time>
  );
}

/** Time of day and relative time, for recent events. */
export function RecentTime({ iso }: { readonly iso: string }): JSX.Element {
  return (
    <span class="recent-time">
      <span class="number">{clockSeconds(ms(iso))}</span>{" "}
      <span class="muted">
        <Ago iso={iso} />
      </span>
    </span>
  );
}

/** Time, date and relative time, for events that may be days away. */
export function When({ iso }: { readonly iso: string }): JSX.Element {
  const now = useNow();
  return (
    <span class="recent-time">
      <span class="number">{clockAndDay(ms(iso), now)}</span>{" "}
      <span class="muted">
        <Ago iso={iso} />
      </span>
    </span>
  );
}

/** Placeholder for an empty list: explains how entries appear. */
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
  /** For the field that the failure is about. */
  readonly id?: string;
  readonly message: string | null;
  readonly again?: () => void;
}

/** Announced immediately; renders nothing without a message. */
export function Failure({ id, message, again }: FailureProps): JSX.Element {
  return (
    <div id={id} role="alert">
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
  if (loaded.kind === "failed") {
    const { message } = loaded;
    return loaded.canRetry ? (
      <Failure message={message} again={again} />
    ) : (
      <Failure message={message} />
    );
  }
  return <>{children(loaded.value)}</>;
}

interface FactProps {
  readonly name: string;
  readonly children: ComponentChildren;
}

/** One entry of a `<dl class="facts">`. */
export function Fact({ name, children }: FactProps): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Placeholder for data whose scope the key lacks. */
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
