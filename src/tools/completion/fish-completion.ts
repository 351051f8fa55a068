// The completion script of fish: one line of `complete` for each option and name of the command table.
//
// Conditions read the words before the cursor as shredway does, so the value of an option is never
// taken for a command or an action.

import {
  allOptions,
  type Command,
  type OptionSpec,
  optionHelp,
  programOptions,
} from "../terminal/command.ts";
import { type CompletedValue, valueOfArguments, valueOfOption } from "./completed-value.ts";

function quoted(text: string): string {
  return `'${text.replaceAll(/[\\']/g, (character) => `\\${character}`)}'`;
}

/** Items of `complete -a`, which are quoted twice: fish evaluates this text. */
function listOf(items: readonly string[]): string {
  return items.map((item) => (/^[\w.,:/@+-]+$/.test(item) ? item : quoted(item))).join(" ");
}

/** Without the name of the option in "--data=FOLDER". */
const directories =
  "(__fish_complete_directories (commandline -ct | string replace -r '^--[^=]*=' ''))";

function candidates(value: CompletedValue): string {
  switch (value.kind) {
    case "nothing":
      return "";
    case "choice":
      return ` -a ${quoted(listOf(value.choices))}`;
    case "list":
      return ` -a ${quoted(`(__fish_append , ${listOf(value.choices)})`)}`;
    case "file":
      return " -F";
    case "directory":
      return ` -a ${quoted(directories)}`;
  }
}

function optionLine(condition: string, name: string, option: OptionSpec): string {
  const value = valueOfOption(option);
  const requirement = value === undefined ? "" : value.kind === "file" ? " -r" : " -x";
  const short = option.short === undefined ? "" : ` -s ${option.short}`;
  const description = quoted(optionHelp(option));
  const taken = value === undefined ? "" : `${requirement}${candidates(value)}`;
  return `complete -c shredway -n ${quoted(condition)}${short} -l ${name}${taken} -d ${description}`;
}

function nameLine(condition: string, name: string, help: string): string {
  return `complete -c shredway -n ${quoted(condition)} -a ${quoted(listOf([name]))} -d ${quoted(help)}`;
}

function linesOf(command: Command): string[] {
  const { name, actions } = command;
  const names = Object.entries(actions ?? {}).map(([action, { help }]) =>
    nameLine(`__shredway_at ${name} ''`, action, help),
  );
  const options = Object.entries(allOptions(command)).map(([option, spec]) => {
    // All options are offered before the action.
    const only = spec.actions ? ` '' ${spec.actions.join(" ")}` : "";
    return optionLine(`__shredway_at ${name}${only}`, option, spec);
  });
  const value = valueOfArguments(command);
  const line = `complete -c shredway -n ${quoted(`__shredway_at ${name}`)}${candidates(value)}`;
  return [...names, ...options, ...(value.kind === "nothing" ? [] : [line])];
}

/** "COMMAND OPTION" for each option that takes the next word. */
function optionsWithValue(command: Command): string[] {
  return Object.entries(allOptions(command))
    .filter(([, { value }]) => value !== undefined)
    .flatMap(([name, { short }]) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])])
    .map((flag) => quoted(`${command.name} ${flag}`));
}

const functions = `# Prints the command and its arguments before the cursor, without options and their values.
function __shredway_arguments
    set -l words (commandline -opc)
    set -l command ''
    set -l is_value 0
    set -l has_ended 0
    for word in $words[2..-1]
        if test $is_value = 1
            set is_value 0
        else if test $has_ended = 0 -a "x$word" = x--
            set has_ended 1
        else if test $has_ended = 0; and string match -q -- '-?*' $word
            contains -- "$command $word" $__shredway_with_value; and set is_value 1
        else
            test -n "$command"; or set command $word
            echo $word
        end
    end
end

# Whether the command is the first word, and the action one of the others, if any; '' stands for none.
function __shredway_at
    set -l given (__shredway_arguments)
    test "x$given[1]" = "x$argv[1]"; or return
    set -q argv[2]; or return 0
    contains -- "$given[2]" $argv[2..-1]
end

complete -c shredway -e
complete -c shredway -f`;

export function fishCompletion(commands: readonly Command[]): string {
  const options = Object.entries(programOptions);
  return [
    "# Completion of shredway for fish, written by `shredway completion fish`.",
    "",
    '# Options that take the next word, as "COMMAND OPTION".',
    `set -g __shredway_with_value ${commands.flatMap(optionsWithValue).join(" ")}`,
    "",
    functions,
    ...commands.map(({ name, summary }) => nameLine("__shredway_at ''", name, summary)),
    ...options.map(([name, option]) => optionLine("__shredway_at ''", name, option)),
    ...commands.flatMap(linesOf),
    "",
  ].join("\n");
}
