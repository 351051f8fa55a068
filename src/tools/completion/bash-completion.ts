// The completion script of bash. It contains the command table as `case` branches, so that a Tab
// starts no program.
//
// The functions read the words of the line as shredway does: an option with a value takes the next
// word, "--name=value" is one word, and "--" ends the options.

import {
  allOptions,
  type Command,
  type OptionSpec,
  optionsOfAction,
  programOptions,
} from "../terminal/command.ts";
import { type CompletedValue, valueOfArguments, valueOfOption } from "./completed-value.ts";

/** A word of bash or zsh that stands for exactly this text. */
export function quotedForBash(text: string): string {
  return /^[\w.,:/@+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function words(texts: readonly string[]): string {
  return `(${texts.map(quotedForBash).join(" ")})`;
}

function branch(subjects: readonly string[], action: string): string {
  return `    ${subjects.join(" | ")}) ${action} ;;`;
}

function flags(name: string, { short }: OptionSpec): string[] {
  return short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`];
}

function assignment(value: CompletedValue): string {
  switch (value.kind) {
    case "nothing":
      return "kind=nothing";
    case "choice":
    case "list":
      return `kind=${value.kind} choices=${words(value.choices)}`;
    case "file":
    case "directory":
      return `kind=${value.kind}${value.hasName ? " named=1" : ""}`;
  }
}

/** One branch for all options with the same value. */
function valueBranches(commands: readonly Command[]): string[] {
  const subjects = new Map<string, string[]>();
  for (const command of commands) {
    for (const [name, option] of Object.entries(allOptions(command))) {
      const value = valueOfOption(option);
      if (value === undefined) continue;
      const same = subjects.get(assignment(value)) ?? [];
      same.push(...flags(name, option).map((flag) => `'${command.name} ${flag}'`));
      subjects.set(assignment(value), same);
    }
  }
  return Array.from(subjects, ([action, of]) => branch(of, action));
}

function optionBranch(subject: string, options: Readonly<Record<string, OptionSpec>>): string {
  const isRepeated = ([, { repeated }]: readonly [string, OptionSpec]): boolean =>
    repeated === true;
  const all = Object.entries(options);
  const names = (given: typeof all): string => words(given.map(([name]) => `--${name}`));
  const repeated = all.filter(isRepeated);
  const once = `options=${names(all.filter((option) => !isRepeated(option)))}`;
  return branch([subject], repeated.length === 0 ? once : `${once} repeated=${names(repeated)}`);
}

function optionBranches(command: Command): string[] {
  const actions = Object.keys(command.actions ?? {});
  return [
    ...actions.map((name) =>
      optionBranch(`'${command.name} ${name}'`, optionsOfAction(command, name)),
    ),
    optionBranch(`'${command.name} '*`, allOptions(command)),
  ];
}

/** Values of the first argument after the command, and of the others. */
function argumentBranches(command: Command): string[] {
  if (!command.actions) {
    const value = valueOfArguments(command);
    return value.kind === "nothing" ? [] : [branch([`'${command.name} '*`], assignment(value))];
  }
  const withArgument = Object.entries(command.actions).filter(([, { argument }]) => argument);
  return [
    branch([`'${command.name} '`], `kind=choice choices=${words(Object.keys(command.actions))}`),
    ...withArgument.map(([name]) => branch([`'${command.name} ${name}'`], "kind=nothing")),
  ];
}

const head = `# Completion of shredway for bash, written by \`shredway completion bash\`.

# Sets kind, choices and named for the value of "COMMAND OPTION"; fails for an option without value.
_shredway_value() {
  case "$1" in`;

const options = `    *) return 1 ;;
  esac
}

# Sets options and repeated for "COMMAND ACTION".
_shredway_options() {
  case "$1" in`;

const argumentsOfCommand = `  esac
}

# Sets kind and choices for the next argument after "COMMAND ACTION"; fails if none is accepted.
_shredway_argument() {
  case "$1" in`;

const tail = `    *) return 1 ;;
  esac
}

# Offers the candidates that begin with the word, or options that are not on the line yet.
_shredway_offer() {
  local candidate
  for candidate in "$@"; do
    [[ $candidate == "$value"* ]] && COMPREPLY+=("$prefix$candidate")
  done
}

_shredway_offer_options() {
  local option word
  local -a options=() repeated=() unused=()
  _shredway_options "$command $action"
  for option in "\${options[@]}"; do
    for word in "\${words[@]}"; do
      [[ $word == "$option" || $word == "$option="* ]] && continue 2
    done
    unused+=("$option")
  done
  _shredway_offer "\${unused[@]}" "\${repeated[@]}"
}

_shredway_offer_values() {
  if [[ $named ]]; then
    [[ $value == *=* ]] || return
    value=\${value#*=}
  fi
  [[ $kind == list ]] && value=\${value##*,}
  prefix=\${current%"$value"}
  local path
  case $kind in
    choice) _shredway_offer "\${choices[@]}" ;;
    list)
      compopt -o nospace 2>/dev/null
      _shredway_offer "\${choices[@]}"
      ;;
    file | directory)
      compopt -o filenames 2>/dev/null
      while IFS= read -r path; do
        COMPREPLY+=("$prefix$path")
      done < <(compgen "-\${kind:0:1}" -- "$value")
      ;;
  esac
  # bash replaces only the text after the last "=", ":" or "@" that divides words.
  [[ \${piece//["$COMP_WORDBREAKS"]/} ]] || piece=
  local lead=\${current%"$piece"} i
  for i in "\${!COMPREPLY[@]}"; do
    COMPREPLY[i]=\${COMPREPLY[i]#"$lead"}
  done
}

_shredway() {
  local word rest=$COMP_LINE before i command= action= option= ended= prefix= count=0
  local kind= named= current value piece=\${COMP_WORDS[COMP_CWORD]}
  local -a words=() choices=()
  COMPREPLY=()
  # COMP_WORDS divides words also at "=", ":" and "@": join the pieces without space between them.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    before=\${rest%%[![:space:]]*}
    rest=\${rest#"$before"}
    rest=\${rest#"$word"}
    if [[ $i -gt 0 && ! $before ]]; then
      words[\${#words[@]} - 1]+=$word
    else
      words+=("$word")
    fi
  done
  current=\${words[\${#words[@]} - 1]}
  value=$current
  unset "words[\${#words[@]} - 1]"
  for word in "\${words[@]:1}"; do
    if [[ $option ]]; then
      option=
    elif [[ ! $ended && $word == -- ]]; then
      ended=1
    elif [[ ! $ended && $word == -?* ]]; then
      _shredway_value "$command $word" && option=$word
    elif [[ ! $command ]]; then
      command=$word
    else
      [[ $action ]] || action=$word
      ((count++))
    fi
  done
  kind= named= choices=()
  if [[ ! $option && ! $ended && $current == --*=* ]]; then
    option=\${current%%=*}
    value=\${current#*=}
  fi
  if [[ $option ]]; then
    _shredway_value "$command $option" && _shredway_offer_values
  elif [[ ! $ended && $current == -* ]]; then
    _shredway_offer_options
  elif _shredway_argument "$command $action" && [[ $kind != nothing || $count -lt 2 ]]; then
    _shredway_offer_values
  elif [[ ! $ended && ! $current ]]; then
    _shredway_offer_options
  fi
}

complete -F _shredway shredway
`;

export function bashCompletion(commands: readonly Command[]): string {
  const names = words(commands.map(({ name }) => name));
  return [
    head,
    ...valueBranches(commands),
    options,
    ...commands.flatMap(optionBranches),
    optionBranch("' '", programOptions),
    argumentsOfCommand,
    branch(["' '"], `kind=choice choices=${names}`),
    ...commands.flatMap(argumentBranches),
    tail,
  ].join("\n");
}
