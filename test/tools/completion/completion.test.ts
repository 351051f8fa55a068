// The completion scripts in the real shells: what each one offers for a line.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { allCommands } from "../../../src/tools/commands.ts";
import { bashCompletion } from "../../../src/tools/completion/bash-completion.ts";
import { fishCompletion } from "../../../src/tools/completion/fish-completion.ts";
import { zshCompletion } from "../../../src/tools/completion/zsh-completion.ts";
import {
  allOptions,
  type Command,
  optionHelp,
  optionsOfAction,
} from "../../../src/tools/terminal/command.ts";
import { CommandRun } from "../../support/processes/command-run.ts";
import { type Candidate, shells } from "../../support/processes/shell-completion.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const generators = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

let commands: readonly Command[] = [];
beforeAll(async () => {
  commands = await allCommands();
});

const text = (name: string): string => `${name}.yaml`;

/** Two files and a folder. */
function folderWithFiles(): string {
  const folder = temporaryFolder();
  for (const name of ["alpha", "beta"]) writeFileSync(join(folder, text(name)), "");
  mkdirSync(join(folder, "archive"));
  return folder;
}

/** The end of each word after "=" and ",", which shells show differently, without short options. */
function namesOf(candidates: readonly Candidate[]): string[] {
  const words = candidates.map(({ word }) => word.replace(/^.*[=,](?=.)/, "").replace(/\/$/, ""));
  return [...new Set(words)].filter((word) => !/^-\w$/.test(word)).toSorted();
}

const lines: readonly (readonly [line: string, expected: readonly string[]])[] = [
  ["shredway ke", ["keys"]],
  ["shredway keys ", ["create", "list", "revoke", "rotate"]],
  ["shredway keys --json r", ["revoke", "rotate"]],
  ["shredway keys --label list cre", ["create"]],
  ["shredway keys --label=list cre", ["create"]],
  ["shredway keys --allow 2001:db8::/32 li", ["list"]],
  ["shredway keys rotate --o", ["--overlap"]],
  ["shredway keys rotate --s", []],
  ["shredway keys rotate ", []],
  ["shredway keys create --scopes ", ["batch", "operate", "read", "shreds", "stream", "submit"]],
  ["shredway keys create --scopes submit,sh", ["shreds"]],
  ["shredway keys create --scopes=submit,sh", ["shreds"]],
  ["shredway sources add ams-a --tier ", ["tier-1", "tier-2"]],
  ["shredway sources find 192.0.2.1 --t", []],
  ["shredway bench --only cost,mi", ["micro"]],
  ["shredway completion ", ["bash", "fish", "zsh"]],
  ["shredway start --config al", ["alpha.yaml"]],
  ["shredway start --config=al", ["alpha.yaml"]],
  ["shredway start --data a", ["archive"]],
  ["shredway race --capture fra=be", ["beta.yaml"]],
  ["shredway race --feed a=192.0.2.1:1@192.0.2.2 --fe", ["--feed"]],
  ["shredway race --verify --verif", []],
  ["shredway keys create --label=--scopes --account x --acc", []],
  ["shredway keys create --account=x --acc", []],
  ["shredway replay al", ["alpha.yaml"]],
  ["shredway replay beta.yaml al", ["alpha.yaml"]],
  ["shredway listen --port ", []],
  ["shredway start --http ", []],
  ["shredway doctor -- --", []],
  ["shredway --v", ["--version"]],
  ["shredway unknown --", []],
];

// Captures and exports often have a time in their names.
it.skipIf(!shells.some(({ name, isInstalled }) => name === "bash" && isInstalled))(
  "completion in bash replaces only the text after a colon, at which bash divides words",
  () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "shreds-18:30.pcap"), "");
    const texts = ["replay shreds-18:3", "replay shreds-18:", "start --config=shreds-18:3"];
    const named = "race --capture fra=shreds-18:3";
    const bash = shells.find(({ name }) => name === "bash");
    const all = [...texts, named].map((words) => `shredway ${words}`);
    const offered = bash?.complete(bashCompletion(commands), all, folder);
    expect(offered?.map((each) => each.map(({ word }) => word))).toEqual(
      all.map(() => ["30.pcap"]),
    );
  },
);

for (const shell of shells) {
  describe.skipIf(!shell.isInstalled)(`completion in ${shell.name}`, () => {
    const script = (): string => generators[shell.name](commands);

    it("offers names, options and values", () => {
      const texts = lines.map(([line]) => line);
      const offered = shell.complete(script(), texts, folderWithFiles()).map(namesOf);
      expect(offered.map((words, i) => [texts[i], words])).toEqual(lines);
    });

    it("offers every command with its summary", () => {
      const [offered = []] = shell.complete(script(), ["shredway "], folderWithFiles());
      expect(namesOf(offered)).toEqual(commands.map(({ name }) => name).toSorted());
      if (shell.name === "bash") return;
      const summaries = Object.fromEntries(offered.map((each) => [each.word, each.description]));
      expect(summaries).toEqual(
        Object.fromEntries(commands.map(({ name, summary }) => [name, summary])),
      );
    });

    it("offers every option of every command and action", () => {
      const cases = commands.flatMap((command) =>
        [undefined, ...Object.keys(command.actions ?? {})].map((action) => {
          const names = Object.keys(optionsOfAction(command, action)).map((name) => `--${name}`);
          const words = ["shredway", command.name, ...(action === undefined ? [] : [action]), "--"];
          return [words.join(" "), names.toSorted()] as const;
        }),
      );
      const texts = cases.map(([line]) => line);
      const offered = shell.complete(script(), texts, folderWithFiles()).map(namesOf);
      expect(offered.map((words, i) => [texts[i], words])).toEqual(cases);
    });

    it("shows hostile descriptions unchanged and executes no part of them", () => {
      const folder = folderWithFiles();
      const hostile = [
        `it's "quoted" \`touch made\` $(touch made) $HOME \${HOME}`,
        "a: b:c [d] (e) {f} <g> *?~#!%&;|",
        "back\\slash \\n \\\\ end\\",
        ".TH a",
        "'br b",
        "]:x:(touch made)",
        "-- a -b --c",
        "ünïcode … →",
      ];
      const command: Command = {
        name: "probe",
        summary: hostile.join(" "),
        usage: ["probe [options]"],
        description: "A command for this test.",
        options: Object.fromEntries(
          hostile.map((help, i) => [`option-${i}`, { value: "a:[b]'\"\\", help }]),
        ),
        actions: Object.fromEntries(hostile.map((help, i) => [`action-${i}`, { help }])),
        examples: [],
        run: async () => 0,
      };
      const made = generators[shell.name]([command]);
      const texts = ["shredway pro", "shredway probe ", "shredway probe --o"];
      const all = shell.complete(made, [...texts, "shredway probe --option-1 "], folder);
      const words = all.map((each) => each.map(({ word }) => word.replace(/=$/, "")).toSorted());
      expect(words).toEqual([
        ["probe"],
        hostile.map((_, i) => `action-${i}`),
        hostile.map((_, i) => `--option-${i}`),
        [],
      ]);
      expect(readdirSync(folder)).not.toContain("made");
      if (shell.name === "bash") return; // bash shows no descriptions
      const shown = all.map((each) => each.map(({ description }) => description).toSorted());
      expect(shown).toEqual([[command.summary], hostile.toSorted(), hostile.toSorted(), []]);
    });
  });
}

describe("shredway completion", () => {
  it.each(["bash", "zsh", "fish"] as const)("prints the script for %s", async (name) => {
    const command = commands.find((each) => each.name === "completion");
    if (!command) throw new Error("expected the command completion");
    const run = new CommandRun(command, [name]);
    expect(await run.code).toBe(0);
    expect(run.stdout).toBe(generators[name](commands));
    await expect(new CommandRun(command, ["tcsh"]).code).rejects.toThrow(
      'unknown action "tcsh"; expected one of bash, zsh, fish',
    );
  });

  it("names options that only exist in the table", () => {
    for (const command of commands) {
      const actions = Object.keys(command.actions ?? {});
      for (const option of Object.values(allOptions(command))) {
        for (const action of option.actions ?? []) expect(actions).toContain(action);
        expect(optionHelp(option)).not.toMatch(/[\n\t]/);
      }
    }
  });

  it("completes the parts of the benchmark", () => {
    const program = readFileSync("bench/run.ts", "utf8");
    const names = Array.from(
      program.matchAll(/^ {2,4}(?:\{ )?name: "([\w-]+)"/gm),
      ([, name]) => name,
    );
    const bench = commands.find(({ name }) => name === "bench");
    expect(names).toEqual(bench?.options["only"]?.choices);
  });
});
