// The real shells bash, zsh and fish: the candidates that each one offers for lines, by a script.
//
// bash runs the function of the script with the variables that a Tab sets. zsh runs interactively in a
// pseudo terminal with a recording `compadd`. fish has a command for it.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Candidate {
  readonly word: string;
  /** "" if the shell shows none. */
  readonly description: string;
}

export interface Shell {
  readonly name: "bash" | "zsh" | "fish";
  readonly isInstalled: boolean;
  /** Candidates for the last word of each line, from one start of the shell in `folder`. */
  complete(script: string, lines: readonly string[], folder: string): Candidate[][];
}

const widest = 10_000;
/** Ends the candidates of one line. */
const separator = "\u001e";

function isInstalled(program: string): boolean {
  return ["/usr/bin", "/bin", "/usr/local/bin"].some((path) => existsSync(join(path, program)));
}

interface Files {
  /** Writes the candidates of each line to $RECORD. */
  readonly driver: string;
  readonly [name: string]: string;
}

/** Runs `words` on the file `driver`; all files are in the folder $FILES. Returns the candidates. */
function run(words: readonly string[], files: Files, folder: string): string[][] {
  const place = mkdtempSync(join(tmpdir(), "shredway-shell-"));
  const record = join(place, "record");
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(place, name), text);
    const [program = "", ...rest] = words;
    const { status, stderr } = spawnSync(program, [...rest, join(place, "driver")], {
      cwd: folder,
      encoding: "utf8",
      timeout: 100_000,
      env: {
        PATH: process.env["PATH"],
        HOME: place,
        TERM: "dumb",
        LC_ALL: "C.UTF-8",
        FILES: place,
        RECORD: record,
      },
    });
    if (status !== 0 || stderr !== "")
      throw new Error(`${program} ended with ${status}: ${stderr}`);
    const parts = readFileSync(record, "utf8").split(separator).slice(0, -1);
    return parts.map((part) => part.split("\n").filter((line) => line !== ""));
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** Splits a line like readline: a separator of COMP_WORDBREAKS is a word of its own. */
function bashWords(line: string): string[] {
  const pieces = line.match(/[^\s=:@]+|[=:@]+/g) ?? [];
  return /\s$/.test(line) ? [...pieces, ""] : pieces;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function bashCall(line: string): string {
  const words = bashWords(line);
  return `COMP_LINE=${quoted(line)} COMP_POINT=${line.length}
COMP_WORDS=(${words.map(quoted).join(" ")}) COMP_CWORD=${words.length - 1}
_shredway
for word in "\${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done
printf '${separator}'
`;
}

const bash: Shell = {
  name: "bash",
  isInstalled: isInstalled("bash"),
  complete: (script, lines, folder) => {
    const driver = `set -u
exec > "$RECORD"
source "$FILES/script"
COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:'
${lines.map(bashCall).join("")}`;
    const all = run(["bash", "--norc", "--noprofile"], { script, driver }, folder);
    return all.map((words) => words.map((word) => ({ word, description: "" })));
  },
};

const fish: Shell = {
  name: "fish",
  isInstalled: isInstalled("fish"),
  complete: (script, lines, folder) => {
    const calls = lines.map((line) => {
      const text = line.replaceAll(/[\\']/g, (character) => `\\${character}`);
      return `complete -C '${text}' >> $RECORD\nprintf '${separator}' >> $RECORD\n`;
    });
    const driver = `source $FILES/script\n${calls.join("")}`;
    const all = run(["fish", "--no-config"], { script, driver }, folder);
    return all.map((texts) =>
      texts.map((text) => {
        const [word = "", description = ""] = text.split("\t");
        return { word, description };
      }),
    );
  },
};

/** Runs in the pseudo terminal. Every call of compadd that adds matches is recorded. */
const zshSetup = `PROMPT=
autoload -U compinit && compinit -u -D
source "$FILES/script"
compadd() {
  if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\\ * ]]; then
    builtin compadd "$@"
    return
  fi
  local -a found texts
  local -i at=\${@[(I)-d]} i
  if (( at )); then
    if [[ \${@[at+1]} == \\(* ]]; then
      eval "texts=\${@[at+1]}"
    else
      texts=("\${(@P)\${@[at+1]}}")
    fi
  fi
  builtin compadd -A found -D texts "$@"
  for (( i = 1; i <= $#found; i++ )); do
    print -r -- "$found[i]"$'\\t'"$texts[i]" >> "$RECORD"
  done
  builtin compadd "$@"
}
zle -C list-matches list-choices _main_complete
record-matches() {
  local line
  for line in "\${(@f)$(<$FILES/lines)}"; do
    BUFFER=$line CURSOR=$#line
    zle list-matches
    print -n '${separator}' >> "$RECORD"
  done
  BUFFER=
  print E"ND"
}
zle -N record-matches
bindkey '^T' record-matches
print REA"DY"
`;

const zshDriver = `zmodload zsh/zpty
zpty shell "stty cols ${widest}; exec zsh -f -i"
zpty -w shell 'source "$FILES/setup"'
zpty -r shell output "*READY*" || exit 1
zpty -w -n shell $'\\x14'
zpty -r shell output "*END*" || exit 1
zpty -d shell
`;

const zsh: Shell = {
  name: "zsh",
  isInstalled: isInstalled("zsh"),
  complete: (script, lines, folder) => {
    const files = { script, driver: zshDriver, setup: zshSetup, lines: lines.join("\n") };
    return run(["zsh", "-f"], files, folder).map((texts) =>
      texts.map((text) => {
        const [word = "", shown = ""] = text.split("\t");
        return { word, description: shown.slice(word.length).replace(/^ *-- /, "") };
      }),
    );
  },
};

export const shells: readonly Shell[] = [bash, zsh, fish];
