// Modal dialog: a question or a form above the page. The browser keeps the focus inside, closes
// it on Escape, and restores the focus.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { type Action, useAction } from "../hooks.ts";
import { Failure } from "./basics.tsx";
import { useFailureFocus } from "./refused-field.ts";

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

/** The element with the failure of the open dialog. */
export const dialogFailureId = "dialog-failure";

interface DialogFormProps {
  readonly verb: string;
  readonly action: Omit<Action, "run">;
  readonly onClose: () => void;
  readonly onSubmit: () => void;
  readonly children: ComponentChildren;
}

/** A form in a dialog, with its failure and its buttons. */
export function DialogForm({
  verb,
  action,
  onClose,
  onSubmit,
  children,
}: DialogFormProps): JSX.Element {
  const form = useFailureFocus<HTMLFormElement>(action);
  const submit = (event: Event) => {
    event.preventDefault();
    onSubmit();
  };
  return (
    <form ref={form} onSubmit={submit}>
      {children}
      <Failure id={dialogFailureId} message={action.failure} />
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" class="primary" data-again disabled={action.isBusy}>
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
  const buttons = useFailureFocus<HTMLDivElement>(action);
  const go = () =>
    action.run(async () => {
      await work();
      onClose();
    });
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <Failure message={action.failure} />
      <div ref={buttons} class="buttons">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          class="danger"
          data-again
          disabled={action.isBusy}
          onClick={() => void go()}
        >
          {verb}
        </button>
      </div>
    </Dialog>
  );
}
