// Frame of every view: name, navigation, connection state, slot, theme and sign-out.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { closeSession, messageOf } from "../api.ts";
import { steadyMs } from "../clock.ts";
import { ThemeSwitch } from "../components/theme-switch.tsx";
import {
  useConnection,
  useFault,
  useIsStale,
  useNow,
  useSessionContext,
  useTopic,
} from "../hooks.ts";
import { hashOf, type Route, routeOf, type ViewName, viewNames } from "../router.ts";
import { clockSeconds, ms } from "../times.ts";
import { counted } from "../units.ts";
import { Feed } from "./feed.tsx";
import { Keys } from "./keys.tsx";
import { Operator } from "./operator.tsx";
import { Overview } from "./overview.tsx";
import { Tips } from "./tips.tsx";
import { Transactions } from "./transactions.tsx";

const titles: Readonly<Record<ViewName, string>> = {
  overview: "Overview",
  feed: "Feed",
  tips: "Tips",
  transactions: "Transactions",
  keys: "Keys",
  operator: "Operator",
};

const views: Readonly<Record<ViewName, (props: { argument: string | null }) => JSX.Element>> = {
  overview: Overview,
  feed: Feed,
  tips: Tips,
  transactions: Transactions,
  keys: Keys,
  operator: Operator,
};

function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  useEffect(() => {
    const update = () => setRoute(routeOf(location.hash));
    window.addEventListener("hashchange", update);
    return () => window.removeEventListener("hashchange", update);
  }, []);
  return route;
}

function Waiting({ untilMs }: { readonly untilMs: number }): JSX.Element {
  useNow();
  const seconds = Math.max(0, Math.ceil((untilMs - steadyMs()) / 1000));
  return <span class="number">{`in ${seconds} s`}</span>;
}

/** Screen readers announce state changes, not the countdown. */
function ConnectionState(): JSX.Element {
  const live = useConnection();
  const { connection } = live;
  const word =
    connection.kind === "live"
      ? "Live"
      : connection.kind === "connecting"
        ? "Connecting"
        : "Reconnecting";
  return (
    <div class={`connection ${connection.kind}`}>
      <span role="status">{word}</span>
      {connection.kind === "waiting" ? (
        <>
          <Waiting untilMs={connection.untilMs} />
          <button type="button" class="quiet" onClick={live.retry}>
            Reconnect now
          </button>
        </>
      ) : null}
    </div>
  );
}

function Place(): JSX.Element | null {
  const service = useTopic("service");
  if (!service) return null;
  const slot = service.slot === null ? null : `slot ${service.slot}`;
  const names = [service.region, service.node, slot].filter((name) => name !== null);
  return <p class="place muted number">{names.join(" · ")}</p>;
}

/** Shown while the connection is interrupted: the time of the values on the page. */
function Stale(): JSX.Element | null {
  const isStale = useIsStale();
  const service = useTopic("service");
  if (!isStale || !service) return null;
  return (
    <p class="note warning">
      Not live: the values are those of {clockSeconds(ms(service.time))}. They continue when the
      service responds.
    </p>
  );
}

/** Shown while the service refuses a live feed. */
function Refused(): JSX.Element | null {
  const { refusal } = useConnection();
  if (refusal === null) return null;
  return (
    <p class="note warning" role="alert">
      Not live: {refusal}. Close other tabs of the portal.
    </p>
  );
}

function Fault(): JSX.Element | null {
  const fault = useFault();
  if (fault === null) return null;
  return (
    <p class="note warning" role="alert">
      This page cannot read a message of the service ({fault}). Reload the page.
    </p>
  );
}

function Navigation({ view }: { readonly view: ViewName }): JSX.Element {
  const { session } = useSessionContext();
  const shown = viewNames.filter((name) => name !== "operator" || session.isOperator);
  return (
    <nav aria-label="Views">
      <ul>
        {shown.map((name) => (
          <li key={name}>
            <a href={hashOf(name)} aria-current={name === view ? "page" : undefined}>
              {titles[name]}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function SignOut(): JSX.Element {
  const { session, end } = useSessionContext();
  // Sign out locally even if the service cannot end the session: the cookie then expires.
  const signOut = () => {
    closeSession().then(
      () => end("You are signed out."),
      (error: unknown) => end(`You are signed out in this browser. ${messageOf(error)}`),
    );
  };
  return (
    <button
      type="button"
      class="quiet"
      title={`${session.account}, key ${session.key.hint}…, ${counted(session.key.scopes.length, "scope")}`}
      onClick={signOut}
    >
      Sign out
    </button>
  );
}

export function Shell(): JSX.Element {
  const { session } = useSessionContext();
  const route = useRoute();
  const heading = useRef<HTMLHeadingElement>(null);
  const isFirst = useRef(true);
  const shown = route.view === "operator" && !session.isOperator ? "overview" : route.view;
  const View = views[shown];
  useEffect(() => {
    document.title = `${titles[shown]} · Shredway`;
    if (!isFirst.current) heading.current?.focus();
    isFirst.current = false;
  }, [shown]);
  // Keep the address: an anchor would be parsed as a route.
  const skip = (event: Event) => {
    event.preventDefault();
    heading.current?.focus();
  };
  return (
    <>
      <header class="top">
        <a class="skip" href={hashOf(shown)} onClick={skip}>
          Skip to the content
        </a>
        <a class="brand" href={hashOf("overview")}>
          <img src="/portal/icon.svg" alt="" width={20} height={20} />
          Shredway
        </a>
        <Navigation view={shown} />
        <div class="corner">
          <Place />
          <ConnectionState />
          <ThemeSwitch />
          <SignOut />
        </div>
      </header>
      <main>
        <Fault />
        <Refused />
        <Stale />
        <div class="view-head">
          <h1 ref={heading} tabIndex={-1}>
            {titles[shown]}
          </h1>
          <p class="muted">{session.account}</p>
        </div>
        <View argument={route.argument} />
      </main>
    </>
  );
}
