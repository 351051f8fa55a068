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
  readonly end: (reason: string) => void;
}

function Session({ session, end }: SessionProps): JSX.Element {
  const [announcement, setAnnouncement] = useState("");
  useEffect(
    () => (announcement === "" ? undefined : after(announcementMs, () => setAnnouncement(""))),
    [announcement],
  );
  const live = useMemo(() => new Live(() => end("Your session has ended. Sign in again.")), [end]);
  useEffect(() => {
    live.start();
    return () => live.close();
  }, [live]);
  const services: SessionServices = useMemo(
    () => ({ session, live, end, announce: setAnnouncement }),
    [session, live, end],
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
  const check = useCallback(() => {
    setState({ kind: "checking" });
    presentSession().then(
      (session) => setState({ kind: "signed-in", session }),
      (error: unknown) => {
        const isSignedOut = error instanceof ApiError && error.status === 401;
        setState(
          isSignedOut
            ? { kind: "signed-out", reason: null }
            : { kind: "unreachable", message: messageOf(error) },
        );
      },
    );
  }, []);
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
      return (
        <SignIn
          reason={state.reason}
          onSession={(session) => setState({ kind: "signed-in", session })}
        />
      );
    case "signed-in":
      return <Session session={state.session} end={end} />;
  }
}

showTheme(storedTheme());
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("app");
  if (place) render(<App />, place);
});
