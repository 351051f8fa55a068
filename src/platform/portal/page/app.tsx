// Entry point of the portal's page: shows the sign-in or the views of a session.
//
// Runs before the first paint (index.html), so that the chosen colours apply from the start.

import { type JSX, render } from "preact";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import type { SessionView } from "../types.ts";
import { ApiError, messageOf, presentSession } from "./api.ts";
import { after } from "./clock.ts";
import { SessionContext, type SessionServices } from "./hooks.ts";
import { Live } from "./live.ts";
import { showTheme, storedTheme } from "./theme.ts";
import { Shell } from "./views/shell.tsx";
import { SignIn } from "./views/sign-in.tsx";

type State =
  | { readonly kind: "checking" }
  | { readonly kind: "unreachable"; readonly message: string }
  | { readonly kind: "signed-out"; readonly reason: string | null }
  | { readonly kind: "signed-in"; readonly session: SessionView };

const announcementMs = 6000;

interface SessionProps {
  readonly session: SessionView;
  /** Shows another state of the browser's session. */
  readonly update: (session: SessionView) => void;
  readonly end: (reason: string) => void;
}

/** The views depend on these values. All tabs share the cookie, so another tab can sign in to another account. */
function identityOf({ account, key }: SessionView): string {
  return [account, ...key.scopes].join("\n");
}

function Session({ session, update, end }: SessionProps): JSX.Element {
  const identity = identityOf(session);
  const [announcement, setAnnouncement] = useState("");
  useEffect(
    () => (announcement === "" ? undefined : after(announcementMs, () => setAnnouncement(""))),
    [announcement],
  );
  const live = useMemo(
    () =>
      new Live({
        onEnded: () => end("Your session has ended. Sign in again."),
        onSession: (present) => {
          update(present);
          return identityOf(present) === identity;
        },
      }),
    [identity, update, end],
  );
  const renew = useCallback(() => {
    // A failure changes nothing: the next reconnection reads the session again.
    presentSession().then(update, () => {});
  }, [update]);
  useEffect(() => {
    live.start();
    return () => live.close();
  }, [live]);
  const services: SessionServices = useMemo(
    () => ({ session, live, renew, end, announce: setAnnouncement }),
    [session, live, renew, end],
  );
  return (
    <SessionContext.Provider value={services}>
      <Shell />
      <div class={announcement === "" ? "notice" : "notice shown"} role="status">
        {announcement}
      </div>
    </SessionContext.Provider>
  );
}

function App(): JSX.Element {
  const [state, setState] = useState<State>({ kind: "checking" });
  const take = useCallback((session: SessionView) => setState({ kind: "signed-in", session }), []);
  const check = useCallback(() => {
    setState({ kind: "checking" });
    presentSession().then(take, (error: unknown) => {
      const isSignedOut = error instanceof ApiError && error.status === 401;
      setState(
        isSignedOut
          ? { kind: "signed-out", reason: null }
          : { kind: "unreachable", message: messageOf(error) },
      );
    });
  }, [take]);
  const update = useCallback(
    (session: SessionView) =>
      // A response that arrives after the sign-out changes nothing.
      setState((now) => (now.kind === "signed-in" ? { kind: "signed-in", session } : now)),
    [],
  );
  const end = useCallback((reason: string) => setState({ kind: "signed-out", reason }), []);
  useEffect(check, [check]);
  switch (state.kind) {
    case "checking":
      return (
        <main class="hidden">
          <h1>Shredway</h1>
          <p role="status">Loading …</p>
        </main>
      );
    case "unreachable":
      return (
        <main class="alone">
          <h1>Shredway</h1>
          <p role="alert">{state.message}</p>
          <button type="button" class="primary" onClick={check}>
            Try again
          </button>
        </main>
      );
    case "signed-out":
      return <SignIn reason={state.reason} onSession={take} />;
    case "signed-in":
      return (
        <Session
          key={identityOf(state.session)}
          session={state.session}
          update={update}
          end={end}
        />
      );
  }
}

showTheme(storedTheme());
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("app");
  if (place) render(<App />, place);
});
