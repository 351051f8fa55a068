// Sign-in with an API key. The page sends the key once and does not store it; a cookie identifies
// the session.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { SessionView } from "../../types.ts";
import { ApiError, openSession, signInMessageOf } from "../api.ts";
import { Failure } from "../components/basics.tsx";
import { fieldAttributes } from "../components/refused-field.ts";
import { ThemeSwitch } from "../components/theme-switch.tsx";

interface SignInProps {
  /** Reason for the end of the previous session; null if there was none. */
  readonly reason: string | null;
  readonly onSession: (session: SessionView) => void;
}

interface SignInFailure {
  readonly message: string | null;
  /** The failure is about the key, not about the service. */
  readonly isKeyRefused: boolean;
}

const noFailure: SignInFailure = { message: null, isKeyRefused: false };

function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 400 || error.status === 401);
}

export function SignIn({ reason, onSession }: SignInProps): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  const [isShown, setShown] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<SignInFailure>(noFailure);
  const submit = async (event: Event) => {
    event.preventDefault();
    const key = input.current?.value.trim() ?? "";
    if (key === "") {
      setFailure({ message: "Paste an API key: it begins with sw_.", isKeyRefused: true });
      input.current?.focus();
      return;
    }
    setBusy(true);
    setFailure(noFailure);
    try {
      onSession(await openSession(key));
    } catch (error) {
      setFailure({ message: signInMessageOf(error), isKeyRefused: isRefusal(error) });
      setBusy(false);
      input.current?.focus();
      input.current?.select();
    }
  };
  return (
    <main class="alone">
      <div class="brand large">
        <img src="/portal/icon.svg" alt="" width={28} height={28} />
        <h1>Shredway</h1>
      </div>
      {reason === null ? null : (
        <p class="note" role="status">
          {reason}
        </p>
      )}
      <form onSubmit={(event) => void submit(event)}>
        <label for="key">API key</label>
        <div class="with-button">
          <input
            id="key"
            ref={input}
            {...(isShown ? { type: "text" } : { type: "password" })}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            placeholder="sw_…"
            {...fieldAttributes(failure.isKeyRefused, "key-failure", "key-note")}
          />
          <button
            type="button"
            aria-pressed={isShown}
            aria-label="Show the key"
            onClick={() => setShown(!isShown)}
          >
            {isShown ? "Hide" : "Show"}
          </button>
        </div>
        <p id="key-note" class="muted small">
          The key is sent to this service once. The browser does not store it.
        </p>
        <Failure id="key-failure" message={failure.message} />
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? "Signing in …" : "Sign in"}
        </button>
      </form>
      <ThemeSwitch />
    </main>
  );
}
