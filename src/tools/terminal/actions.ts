// Reads the action of a command that has several, with its argument.
//
// Used by commands with `actions`. Does no I/O. Every error is a ShredwayError "usage".

import { quote } from "../../core/errors.ts";
import { didYouMean } from "../../core/near-names.ts";
import { type ActionSpec, type Arguments, type OptionSpec, usageError } from "./command.ts";

interface Actions<T extends string> {
  /** Name of the command. */
  readonly name: string;
  readonly actions: Readonly<Record<T, ActionSpec>>;
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** Names the argument in messages: "id of a key", with an example. */
  readonly argument?: { readonly what: string; readonly example: string };
}

function hasAction<T extends string>(
  actions: Readonly<Record<T, ActionSpec>>,
  name: string | undefined,
): name is T {
  return name !== undefined && Object.hasOwn(actions, name);
}

/** Returns the action, and its argument or "". Throws a usage error. */
export function readAction<T extends string>(
  args: Arguments,
  { name, actions, options, argument }: Actions<T>,
): { readonly action: T; readonly argument: string } {
  const [given, ...rest] = args.positionals;
  if (!hasAction(actions, given)) {
    const known = Object.keys(actions);
    const expected = `expected one of ${known.join(", ")}`;
    if (given === undefined) throw usageError(`missing action; ${expected}`);
    const hint = didYouMean(given, known, `shredway ${name} `);
    throw usageError(`unknown action ${quote(given)}; ${expected}${hint}`);
  }
  for (const [option, { actions: owners }] of Object.entries(options)) {
    if (args.given(option) && owners && !owners.includes(given)) {
      const expected = owners.map((owner) => `${name} ${owner}`).join(" or ");
      throw usageError(`--${option} is not allowed with ${given}; it is an option of ${expected}`);
    }
  }
  const expected = actions[given].argument;
  const [value, extra] = expected === undefined ? [undefined, rest[0]] : rest;
  if (expected !== undefined && value === undefined) {
    const { what, example } = argument ?? { what: expected, example: expected };
    throw usageError(`${given}: missing ${what}; for example shredway ${name} ${given} ${example}`);
  }
  if (extra !== undefined) throw usageError(`${given}: unexpected argument ${quote(extra)}`);
  return { action: given, argument: value ?? "" };
}
