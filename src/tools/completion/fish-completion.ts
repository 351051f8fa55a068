// The completion script of fish: one line of `complete` for each option and name of the command table.
//
// Conditions read the words before the cursor as shredway does, so the value of an option is never
// taken for a command or an action. fish itself offers an option again that is already on the line, which
// shredway refuses, so each option that may occur once has a condition of its own.

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

/** The words for the option on a command line. */
function flagsOf(name: string, { short }: OptionSpec): string[] {
  return [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
}

function optionLine(place: string, name: string, option: OptionSpec): string {
  const isOnce = option.repeated !== true;
  const once = isOnce ? `; and __shredway_lacks ${flagsOf(name, option).join(" ")}` : "";
  const condition = `${place}${once}`;
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
    .flatMap(([name, option]) => flagsOf(name, option))
    .map((flag) => quoted(`${command.name} ${flag}`));
}

const functions = `# Prints words before the cursor: with "options" the options whose values are complete, otherwise the command
# and its arguments.
function __shredway_words
    set -l words (commandline -opc)
    set -l command ''
    set -l waiting ''
    set -l has_ended 0
    for word in $words[2..-1]
        set -l option ''
        if test -n "$waiting"
            set option $waiting
            set waiting ''
        else if test $has_ended = 0 -a "x$word" = x--
            set has_ended 1
        else if test $has_ended = 0; and string match -q -- '-?*' $word
            if contains -- "$command $word" $__shredway_with_value
                set waiting $word
            else
                set option (string replace -r -- '=.*' '' $word)
            end
        else
            test -n "$command"; or set command $word
            test "x$argv[1]" = xoptions; or printf '%s\\n' $word
        end
        test -n "$option"; and test "x$argv[1]" = xoptions; and printf '%s\\n' $option
    end
end

# Whether the command is the first word, and the action one of the others, if any; '' stands for none.
function __shredway_at
    set -l given (__shredway_words)
    test "x$given[1]" = "x$argv[1]"; or return
    set -q argv[2]; or return 0
    contains -- "$given[2]" $argv[2..-1]
end

# Whether none of these options is before the cursor.
function __shredway_lacks
    set -l given (__shredway_words options)
    for option in $argv
        contains -- $option $given; and return 1
    end
    return 0
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
