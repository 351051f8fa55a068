// How a shell completes the value of an option or an argument, derived from the command table.
//
// Used by the scripts of all shells, which therefore complete the same values.

import type { Command, OptionSpec } from "../terminal/command.ts";

export type CompletedValue =
  | { readonly kind: "nothing" }
  | { readonly kind: "choice" | "list"; readonly choices: readonly string[] }
  /** `hasName`: the path follows another name, as in NAME=FILE. */
  | { readonly kind: "file" | "directory"; readonly hasName: boolean };

/** A path for the names FILE and DIRECTORY; nothing for addresses, numbers and other texts. */
function valueNamed(name: string): CompletedValue {
  const path = /^(?<owner>\w+=)?(?<type>FILE|DIRECTORY)$/.exec(name)?.groups;
  if (path === undefined) return { kind: "nothing" };
  const kind = path["type"] === "FILE" ? "file" : "directory";
  return { kind, hasName: path["owner"] !== undefined };
}

/** Undefined for a switch without value. */
export function valueOfOption({ value, choices, isList }: OptionSpec): CompletedValue | undefined {
  if (value === undefined) return undefined;
  if (choices === undefined) return valueNamed(value);
  return { kind: isList === true ? "list" : "choice", choices };
}

/** The arguments of a command without actions. */
export function valueOfArguments({ positional }: Command): CompletedValue {
  return positional === undefined ? { kind: "nothing" } : valueNamed(positional);
}
