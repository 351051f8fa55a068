// Modal dialog: a question or a form above the page. The browser keeps the focus inside, closes
// it on Escape, and restores the focus.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useAction } from "../hooks.ts";
import { Failure } from "./basics.tsx";

interface DialogProps {
  readonly title: string;
  /** Only its buttons close it, because it shows what cannot be shown again. */
  readonly isHeld?: boolean;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Open as long as it is rendered. */
export function Dialog({ title, isHeld = false, onClose, children }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      closedby={isHeld ? "none" : "closerequest"}
      // For browsers without the attribute closedby.
      onCancel={(event) => isHeld && event.preventDefault()}
      onClose={onClose}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

interface DialogFormProps {
  readonly verb: string;
  readonly isBusy: boolean;
  readonly failure: string | null;
  readonly onClose: () => void;
  readonly onSubmit: () => void;
  readonly children: ComponentChildren;
}

/** A form in a dialog, with its failure and its buttons. */
export function DialogForm({
  verb,
  isBusy,
  failure,
  onClose,
  onSubmit,
  children,
}: DialogFormProps): JSX.Element {
  const submit = (event: Event) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <form onSubmit={submit}>
      {children}
      <Failure message={failure} />
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={isBusy}>
          {verb}
        </button>
      </div>
    </form>
  );
}

interface ConfirmProps {
  readonly title: string;
  /** Label of the button: "Remove". */
  readonly verb: string;
  readonly onClose: () => void;
  readonly work: () => Promise<void>;
  readonly children: ComponentChildren;
}

/** Asks for confirmation of an action that cannot be undone. */
export function Confirm({ title, verb, onClose, work, children }: ConfirmProps): JSX.Element {
  const action = useAction();
  const go = () =>
    action.run(async () => {
      await work();
      onClose();
    });
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Failure message={action.failure} />
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="danger" disabled={action.isBusy} onClick={() => void go()}>
          {verb}
        </button>
      </div>
    </Dialog>
  );
}
