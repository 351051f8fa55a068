// The completion script of zsh, for a file `_shredway` in a folder of fpath, or for `source`.
//
// Each command is one function with a call of `_arguments`. A command with actions has one such call
// for its own options and one for each action.

import {
  allOptions,
  type Command,
  type OptionSpec,
  optionHelp,
  optionsOfAction,
  programOptions,
} from "../terminal/command.ts";
import { quotedForBash } from "./bash-completion.ts";
import { type CompletedValue, valueOfArguments, valueOfOption } from "./completed-value.ts";

/** Characters that end a part of a specification, or an item of a list in one. */
function escaped(text: string, characters: RegExp): string {
  return text.replaceAll(characters, (character) => `\\${character}`);
}

function message(text: string): string {
  return escaped(text, /[\\:]/g);
}

function actionOf(value: CompletedValue): string {
  switch (value.kind) {
    case "nothing":
      return " ";
    case "choice":
      return `(${value.choices.map((choice) => escaped(choice, /[^\w.,/@+-]/g)).join(" ")})`;
    case "list":
      return `_sequence compadd - ${value.choices.map(quotedForBash).join(" ")}`;
    case "file":
    case "directory": {
      const files = value.kind === "file" ? "_files" : "_files -/";
      return value.hasName ? `{ compset -P "*=" && ${files} }` : files;
    }
  }
}

/** A specification of `_arguments`: "*--name=[description]:VALUE:action". */
function optionWord(name: string, option: OptionSpec): string {
  const value = valueOfOption(option);
  const { short, repeated } = option;
  const description = `[${escaped(optionHelp(option), /[\\[\]]/g)}]`;
  const rest =
    value === undefined ? "" : `:${message(option.value ?? "")}:${escaped(actionOf(value), /:/g)}`;
  const equals = value === undefined ? "" : "=";
  if (repeated === true) return quotedForBash(`*--${name}${equals}${description}${rest}`);
  const same = short === undefined ? [`--${name}`] : [`-${short}`, `--${name}`];
  // Nothing else is useful together with --help.
  const excluded = `(${value === undefined && short !== undefined ? "- *" : same.join(" ")})`;
  return same
    .map((flag) => {
      const isLong = flag.startsWith("--");
      return quotedForBash(`${excluded}${flag}${isLong ? equals : ""}${description}${rest}`);
    })
    .join(" ");
}

function optionWords(options: Readonly<Record<string, OptionSpec>>): string[] {
  return Object.entries(options).map(([name, option]) => optionWord(name, option));
}

function call(name: string, words: readonly string[], indent: string): string {
  return `${indent}${name} \\\n${words.map((word) => `${indent}  ${word}`).join(" \\\n")}`;
}

/** An array of names with descriptions, in the form of `_describe`. */
function describedNames(rows: readonly (readonly [string, string])[]): string {
  const items = rows.map(
    ([name, help]) => `    ${quotedForBash(`${message(name)}:${escaped(help, /\\/g)}`)}\n`,
  );
  return `(\n${items.join("")}  )`;
}

/** A function that offers names, and after one of them calls the branch of that name. */
function dispatch(
  options: readonly string[],
  tag: string,
  names: readonly (readonly [string, string])[],
  branches: readonly string[],
): string[] {
  return [
    '  local curcontext="$curcontext" state',
    "  local -a line names",
    `  names=${describedNames(names)}`,
    call("_arguments -C -S", [...options, "'1: :->name'", "'*:: :->rest'"], "  "),
    '  case "$state" in',
    `    name) _describe -t ${tag}s ${tag} names ;;`,
    "    rest)",
    '      case "$line[1]" in',
    ...branches,
    "      esac",
    "      ;;",
    "  esac",
  ];
}

function functionOf(command: Command): string {
  const { name, actions } = command;
  const lines = actions
    ? dispatch(
        optionWords(allOptions(command)),
        "action",
        Object.entries(actions).map(([action, { help }]) => [action, help]),
        Object.entries(actions).map(([action, { argument }]) => {
          const options = optionWords(optionsOfAction(command, action));
          const rest = argument === undefined ? [] : [quotedForBash(`1:${message(argument)}: `)];
          return `        ${action})\n${call("_arguments -S", [...options, ...rest], "          ")}\n          ;;`;
        }),
      )
    : [
        call(
          "_arguments -S",
          [...optionWords(allOptions(command)), ...positionalWord(command)],
          "  ",
        ),
      ];
  return `_shredway_${name}() {\n${lines.join("\n")}\n}\n`;
}

function positionalWord(command: Command): string[] {
  const { positional } = command;
  if (positional === undefined) return [];
  const action = escaped(actionOf(valueOfArguments(command)), /:/g);
  return [quotedForBash(`*:${message(positional)}:${action}`)];
}

export function zshCompletion(commands: readonly Command[]): string {
  const main = dispatch(
    optionWords(programOptions),
    "command",
    commands.map(({ name, summary }) => [name, summary]),
    commands.map(({ name }) => `        ${name}) _shredway_${name} ;;`),
  );
  return `#compdef shredway
# Completion of shredway for zsh, written by \`shredway completion zsh\`.

${commands.map(functionOf).join("\n")}
_shredway() {
${main.join("\n")}
}

# From fpath, zsh runs this file as the function; \`source\` registers it.
if [[ "$funcstack[1]" == _shredway ]]; then
  _shredway "$@"
else
  compdef _shredway shredway
fi
`;
}
