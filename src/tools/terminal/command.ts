// Definition of a command: actions, options, help text, and typed access to arguments.
//
// Used by shredway.ts (dispatch) and by each command file. The help text, the completion of the
// shells and the man page are generated from this definition. Does no I/O. Every error is a
// ShredwayError "usage" with the expected and the received value.

import { parseArgs } from "node:util";
import { formatEndpoint, parseEndpoint } from "../../core/addresses/addresses.ts";
import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import { didYouMean } from "../../core/near-names.ts";
import { wrapped, wrappedParagraphs } from "./formatting.ts";
import type { Terminal } from "./terminal.ts";

/** Wrong usage, exit code 2. The message contains the expected and the received value. */
export function usageError(message: string): ShredwayError {
  return new ShredwayError("usage", message);
}

export const exitCodes = { ok: 0, failed: 1 } as const;

export interface OptionSpec {
  /**
   * Name of the value in the help text; undefined for a switch without value. Shells complete paths
   * for FILE and DIRECTORY, also after another name: "NAME=FILE".
   */
  readonly value?: string;
  /** Values that shells complete: the permitted ones, or the usual ones. */
  readonly choices?: readonly string[];
  /** Whether the value is a list of `choices`, separated by commas. */
  readonly isList?: boolean;
  readonly short?: string;
  /** Whether the option may occur several times (`Arguments.texts`). */
  readonly repeated?: boolean;
  /** The only actions that accept the option; undefined: every action. */
  readonly actions?: readonly string[];
  readonly help: string;
}

/** One action of a command that has several: `shredway keys rotate ID`. */
export interface ActionSpec {
  /** Name of its argument, e.g. "ID"; undefined if it takes none. */
  readonly argument?: string;
  readonly help: string;
}

export interface Command {
  readonly name: string;
  /** One line for `shredway --help`. */
  readonly summary: string;
  /** Each form of the synopsis in one line, without the leading "shredway". */
  readonly usage: readonly string[];
  /** Longer text of `shredway <command> --help`. */
  readonly description: string;
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** The first argument is one of these names. */
  readonly actions?: Readonly<Record<string, ActionSpec>>;
  /** Name of the positional arguments of a command without actions, e.g. "FILE". */
  readonly positional?: string;
  readonly examples: readonly string[];
  /** Whether these arguments run a service, on which customers depend. Absent: they never do. */
  isService?(args: Arguments): boolean;
  /** Resolves to the exit code. */
  run(args: Arguments, terminal: Terminal): Promise<number>;
}

type Values = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** Arguments of a command, checked to contain only its options. */
export class Arguments {
  readonly positionals: readonly string[];
  readonly #values: Values;

  constructor(values: Values, positionals: readonly string[]) {
    this.#values = values;
    this.positionals = positionals;
  }

  given(name: string): boolean {
    return this.#values[name] !== undefined;
  }

  flag(name: string): boolean {
    return this.#values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === "string" ? value : undefined;
  }

  /** Values of a repeatable option; empty if it is absent. */
  texts(name: string): readonly string[] {
    const value = this.#values[name];
    return Array.isArray(value) ? value : [];
  }

  /** Parses "ip:port". A host name or any other text is wrong usage. */
  endpoint(name: string, options: { allowPortZero?: boolean } = {}): string | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    try {
      return formatEndpoint(parseEndpoint(text, options));
    } catch (error) {
      throw usageError(`--${name}: ${messageOf(error)}`);
    }
  }

  required(name: string, example: string): string {
    const value = this.text(name);
    if (value === undefined) {
      throw usageError(`missing option --${name}; for example --${name} ${example}`);
    }
    return value;
  }

  /** Parses an integer within [min, max]. */
  integer(name: string, { min, max }: { min: number; max: number }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw usageError(
        `--${name}: invalid value ${quote(text)}; expected an integer from ${min} to ${max}`,
      );
    }
    return value;
  }

  /** Parses a number above 0 and at most `max`. */
  positive(name: string, max: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = decimal(text);
    if (!(value > 0) || value > max) {
      throw usageError(
        `--${name}: invalid value ${quote(text)}; expected a number above 0 and at most ${max}`,
      );
    }
    return value;
  }

  /** Parses a share from 0 to 1. */
  share(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = decimal(text);
    if (!(value >= 0 && value <= 1)) {
      throw usageError(`--${name}: invalid value ${quote(text)}; expected a share from 0 to 1`);
    }
    return value;
  }

  /** Rejects more than one of these options. */
  exclusive(...names: readonly string[]): void {
    const given = names.filter((name) => this.given(name));
    if (given.length > 1) {
      throw usageError(
        `${given.map((name) => `--${name}`).join(" and ")} exclude each other; expected at most one of ${names.map((name) => `--${name}`).join(", ")}`,
      );
    }
  }
}

function decimal(text: string): number {
  return /^\d+(\.\d+)?$|^\.\d+$/.test(text) ? Number(text) : Number.NaN;
}

/** Options of every command. */
const helpOption = { help: { short: "h", help: "show this text" } } satisfies Record<
  string,
  OptionSpec
>;

export const programSummary = "A low-latency shred relay and transaction gateway for Solana.";

/** Options of the program itself, instead of a command. */
export const programOptions = {
  help: { short: "h", help: "show this text; after a command, show its options and examples" },
  version: { short: "v", help: "show the version" },
} satisfies Record<string, OptionSpec>;

export function allOptions(command: Command): Readonly<Record<string, OptionSpec>> {
  return { ...command.options, ...helpOption };
}

/** The options that an action accepts; undefined: those of any action. */
export function optionsOfAction(
  command: Command,
  action?: string,
): Readonly<Record<string, OptionSpec>> {
  const accepted = Object.entries(allOptions(command)).filter(
    ([, { actions }]) => action === undefined || !actions || actions.includes(action),
  );
  return Object.fromEntries(accepted);
}

/**
 * Parses the arguments of one command; returns `"help"` for --help. Throws ShredwayError "usage"
 * for an unknown option, a missing value, or an unexpected argument.
 */
export function parseArguments(command: Command, given: readonly string[]): Arguments | "help" {
  const options = allOptions(command);
  const { values, positionals } = parseStrictly(command, given, options);
  const { help } = values;
  if (help === true) return "help";
  if (!command.actions && command.positional === undefined && positionals.length > 0) {
    throw usageError(`unexpected argument ${quote(positionals[0] ?? "")}; expected only options`);
  }
  return new Arguments(values, positionals);
}

function parseStrictly(
  command: Command,
  given: readonly string[],
  options: Record<string, OptionSpec>,
): { values: Values; positionals: string[] } {
  try {
    const parsed = parseArgs({
      args: withNegativeValues(given, options),
      allowPositionals: true,
      strict: true,
      tokens: true,
      options: Object.fromEntries(
        Object.entries(options).map(([name, { value, short, repeated = false }]) => [
          name,
          {
            type: value === undefined ? "boolean" : "string",
            multiple: repeated,
            ...(short && { short }),
          } as const,
        ]),
      ),
    });
    const names = parsed.tokens.flatMap((token) => (token.kind === "option" ? token.name : []));
    refuseRepeated(names.filter((name) => options[name]?.repeated !== true));
    return { values: onlyTexts(parsed.values), positionals: parsed.positionals };
  } catch (error) {
    if (error instanceof ShredwayError) throw error;
    throw usageError(explain(command, given, options, error));
  }
}

/**
 * Rewrites `--port -1` to `--port=-1`, so that the option's own check reports the permitted
 * range.
 */
function withNegativeValues(
  given: readonly string[],
  options: Record<string, OptionSpec>,
): string[] {
  const end = given.indexOf("--");
  const joined: string[] = [];
  for (const [i, text] of given.entries()) {
    const before = joined.at(-1) ?? "";
    const isOption = (end < 0 || i < end) && before.startsWith("--");
    if (isOption && options[before.slice(2)]?.value !== undefined && /^-[\d.]/.test(text))
      joined[joined.length - 1] = `${before}=${text}`;
    else joined.push(text);
  }
  return joined;
}

function refuseRepeated(names: readonly string[]): void {
  const repeated = names.find((name, i) => names.indexOf(name) !== i);
  if (repeated !== undefined)
    throw usageError(`--${repeated} is given more than once; expected once`);
}

/** Narrows the types: only options with a value are repeatable, so lists contain strings. */
function onlyTexts(values: Record<string, unknown>): Values {
  const texts = Object.entries(values).map(([name, value]) => {
    if (Array.isArray(value)) return [name, value.map(String)];
    return [name, typeof value === "string" || typeof value === "boolean" ? value : undefined];
  });
  return Object.fromEntries(texts);
}

// Rewrites the messages of parseArgs, which are meant for programmers, with the permitted
// options.
function explain(
  command: Command,
  given: readonly string[],
  options: Record<string, OptionSpec>,
  error: unknown,
): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const known = Object.keys(options).map((name) => `--${name}`);
  if (code === "ERR_PARSE_ARGS_UNKNOWN_OPTION") {
    const unknown = given.find((text) => isUnknown(text, options)) ?? "an unknown option";
    const hint = didYouMean(unknown.replace(/=.*/, ""), known);
    return `unknown option ${unknown}; expected one of ${known.join(", ")}${hint}`;
  }
  const [message = ""] = messageOf(error).split("\n");
  const [, name = ""] = /^Option '(?:-\w, )?--([\w-]+)/.exec(message) ?? [];
  const option = options[name];
  if (code !== "ERR_PARSE_ARGS_INVALID_OPTION_VALUE" || option === undefined) return message;
  if (option.value === undefined) return `--${name}: unexpected value; expected --${name} only`;
  // Only the longer text, for a value like an option, suggests "=".
  const hint = messageOf(error).includes("=-")
    ? `; a value that begins with "-" follows "=": --${name}=VALUE`
    : "";
  return `--${name}: missing value; for example --${name} ${exampleValue(command, name) ?? option.value}${hint}`;
}

/** The value of an option in the command's examples. */
function exampleValue({ examples }: Command, name: string): string | undefined {
  return examples
    .flatMap((line) => line.split(" "))
    .find((_, i, words) => words[i - 1] === `--${name}`);
}

function isUnknown(text: string, options: Record<string, OptionSpec>): boolean {
  if (text.startsWith("--")) {
    const name = text.slice(2).split("=")[0] ?? "";
    return name !== "" && options[name] === undefined;
  }
  if (!text.startsWith("-") || text === "-") return false;
  return !Object.values(options).some(({ short }) => short === text[1]);
}

/** "-h, --help", "--config FILE". */
export function optionTitle(name: string, { short, value }: OptionSpec): string {
  return `${short ? `-${short}, ` : ""}--${name}${value === undefined ? "" : ` ${value}`}`;
}

/** Description of an option, beginning with the actions that accept it. */
export function optionHelp({ actions, help }: OptionSpec): string {
  return actions ? `${actions.join(", ")}: ${help}` : help;
}

export function actionTitle(name: string, { argument }: ActionSpec): string {
  return argument === undefined ? name : `${name} ${argument}`;
}

/** Words of a synopsis: text in brackets is one word, an option is one word with its value. */
function synopsisWords(line: string): string[] {
  const words: string[] = [];
  let depth = 0;
  for (const word of line.split(" ")) {
    const before = words.at(-1);
    const isValue = before !== undefined && /^--\S+$/.test(before) && !/^[[-]/.test(word);
    if (before !== undefined && (depth > 0 || isValue)) words[words.length - 1] += ` ${word}`;
    else words.push(word);
    depth += word.split("[").length - word.split("]").length;
  }
  return words;
}

/** Synopsis of a command in lines of at most `width` characters. Further lines are indented. */
export function synopsisOf({ name, usage }: Command, width: number): string[] {
  const indent = " ".repeat(`shredway ${name}`.length);
  return usage.flatMap((line) => {
    const lines = ["shredway"];
    for (const word of synopsisWords(line)) {
      const longer = `${lines.at(-1)} ${word}`;
      if (longer.length <= width) lines[lines.length - 1] = longer;
      else lines.push(`${indent} ${word}`);
    }
    return lines;
  });
}

/** Widths of help texts, in characters. Text without a terminal has the greatest one. */
const helpColumns = { least: 60, most: 100 };

/** The width of help texts on a terminal of so many columns. */
export function helpWidth(columns = helpColumns.most): number {
  return Math.min(Math.max(columns, helpColumns.least), helpColumns.most);
}

interface Section {
  readonly title: string;
  readonly rows: readonly (readonly [string, string])[];
  readonly width: number;
}

/** A titled list with aligned descriptions; nothing for an empty list. */
function section({ title, rows, width }: Section): string[] {
  if (rows.length === 0) return [];
  const nameWidth = Math.max(...rows.map(([name]) => name.length));
  const indent = nameWidth + 4;
  const lines = rows.flatMap(([name, help]) =>
    wrapped(help, width - indent).map((line, i) =>
      i === 0 ? `  ${name.padEnd(nameWidth)}  ${line}` : `${" ".repeat(indent)}${line}`,
    ),
  );
  return ["", `${title}:`, ...lines];
}

/** Examples are not wrapped, so that they can be copied. */
export function helpOf(command: Command, width = helpWidth()): string {
  const indent = " ".repeat("Usage: ".length);
  const synopsis = synopsisOf(command, width - indent.length);
  const actions = Object.entries(command.actions ?? {});
  const options = Object.entries(allOptions(command));
  return [
    ...synopsis.map((line, i) => `${i === 0 ? "Usage: " : indent}${line}`),
    "",
    ...wrappedParagraphs(command.description.trim(), width),
    ...section({
      title: "Actions",
      rows: actions.map(([name, action]) => [actionTitle(name, action), action.help]),
      width,
    }),
    ...section({
      title: "Options",
      rows: options.map(([name, option]) => [optionTitle(name, option), optionHelp(option)]),
      width,
    }),
    "",
    "Examples:",
    ...command.examples.map((line) => `  ${line}`),
    "",
  ].join("\n");
}

/** The text of `shredway --help`. */
export function programHelp(commands: readonly Command[], width = helpWidth()): string {
  return [
    "Usage: shredway <command> [options]",
    "",
    programSummary,
    ...section({
      title: "Commands",
      rows: commands.map(({ name, summary }) => [name, summary]),
      width,
    }),
    ...section({
      title: "Options",
      rows: Object.entries(programOptions).map(([name, option]) => [
        optionTitle(name, option),
        option.help,
      ]),
      width,
    }),
    "",
    ...wrapped(
      "Exit codes: 0 ok, 1 failed, 2 wrong usage; of audit also 3, not everything could be checked.",
      width,
    ),
    "",
  ].join("\n");
}
