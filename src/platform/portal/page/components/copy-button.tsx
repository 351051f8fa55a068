// Copyable texts: a copy button, and a snippet with such a button.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { after } from "../clock.ts";
import { useSessionContext } from "../hooks.ts";
import { Empty } from "./basics.tsx";

interface CopyButtonProps {
  readonly text: string;
  /** Name of the copied text for the button's label: "address …". */
  readonly what: string;
}

const shownMs = 2000;

/** Browsers copy only over TLS or from localhost; otherwise the user copies by hand. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function CopyButton({ text, what }: CopyButtonProps): JSX.Element {
  const { announce } = useSessionContext();
  const [isDone, setDone] = useState(false);
  const end = useRef(() => {});
  const copy = async () => {
    if (!(await copied(text))) {
      announce(`The browser does not allow copying: select the ${what} and copy it by hand.`);
      return;
    }
    announce(`Copied ${what}.`);
    setDone(true);
    end.current();
    end.current = after(shownMs, () => setDone(false));
  };
  return (
    <button
      type="button"
      class="quiet copy"
      aria-label={`Copy ${what}`}
      onClick={() => void copy()}
    >
      {isDone ? "Copied" : "Copy"}
    </button>
  );
}

/** Addresses with a copy button each. */
export function Addresses({ addresses }: { readonly addresses: readonly string[] }): JSX.Element {
  if (addresses.length === 0) return <Empty>No tip address configured.</Empty>;
  return (
    <ul class="addresses">
      {addresses.map((address) => (
        <li key={address}>
          <code class="breaking">{address}</code>
          <CopyButton text={address} what={`address ${address.slice(0, 6)}`} />
        </li>
      ))}
    </ul>
  );
}

/** A command or a response with a copy button. */
export function Snippet({ text, what }: CopyButtonProps): JSX.Element {
  return (
    <div class="snippet">
      <pre>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} what={what} />
    </div>
  );
}
