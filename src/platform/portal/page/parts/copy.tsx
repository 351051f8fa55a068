// Texts to take along: a button that copies, and a text beside it.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { after } from "../clock.ts";
import { useSurroundings } from "../hooks.ts";

interface CopyButtonProps {
  readonly text: string;
  /** What is copied, for the button's name: "address …". */
  readonly what: string;
}

const shownMs = 2000;

/** Browsers copy only where the page came over TLS or from this machine; else it is the reader's hand. */
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

export function CopyButton({ text, what }: CopyButtonProps): JSX.Element {
  const { announce } = useSurroundings();
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

/** A command or an answer, as it is typed. */
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
