// Fields of a form that the service has refused: which one, its attributes, and the focus.
//
// Screen readers announce a field with the text that describes it. The focus would otherwise be lost:
// the button that had it is disabled while the form is sent.

import { useEffect, useRef } from "preact/hooks";
import type { Action } from "../hooks.ts";

type Outcome = Pick<Action, "failure" | "isBusy" | "isInputRefused">;

/** The field that the failure names first, or the first one; null: no value was refused. */
export function refusedField<Name extends string>(
  { failure, isInputRefused }: Outcome,
  names: readonly [Name, ...Name[]],
): Name | null {
  if (failure === null || !isInputRefused) return null;
  let [found] = names;
  let foundAt = failure.length;
  for (const name of names) {
    const at = failure.search(new RegExp(`\\b${name}\\b`));
    if (at >= 0 && at < foundAt) [found, foundAt] = [name, at];
  }
  return found;
}

/** `failureId` and `noteId`: elements with the failure and with a note about the field. */
export function fieldAttributes(isRefused: boolean, failureId: string, noteId?: string) {
  const texts = [isRefused ? failureId : undefined, noteId].filter((id) => id !== undefined);
  return {
    "aria-invalid": isRefused,
    ...(texts.length > 0 && { "aria-describedby": texts.join(" ") }),
  };
}

/** Focuses the refused field after a failure, or the button that tries again. */
export function useFailureFocus<T extends HTMLElement>({ failure, isBusy }: Outcome) {
  const form = useRef<T>(null);
  const isFailed = failure !== null && !isBusy;
  useEffect(() => {
    if (!isFailed) return;
    const field = form.current?.querySelector<HTMLElement>('[aria-invalid="true"]');
    const button = form.current?.querySelector<HTMLElement>("button[data-again]");
    (field ?? button)?.focus();
  }, [isFailed]);
  return form;
}
