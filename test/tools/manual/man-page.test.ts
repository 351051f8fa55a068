// The man page, as mandoc reads it.

import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { allCommands } from "../../../src/tools/commands.ts";
import { manPage } from "../../../src/tools/manual/man-page.ts";
import {
  actionTitle,
  allOptions,
  type Command,
  optionHelp,
  optionTitle,
} from "../../../src/tools/terminal/command.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const release = { version: "1.2.3", date: "2026-11-23" };

let commands: readonly Command[] = [];
beforeAll(async () => {
  commands = await allCommands();
});

function mandoc(page: string, ...options: readonly string[]): string {
  const path = join(temporaryFolder(), "shredway.1");
  writeFileSync(path, page);
  const { stdout, stderr } = spawnSync("mandoc", [...options, path], { encoding: "utf8" });
  return `${stdout}${stderr}`;
}

/** The page as text, with single spaces, and without the overprinting that makes bold letters. */
function shown(page: string): string {
  const pieces = mandoc(page, "-T", "utf8", "-O", "width=900").split("\b");
  const letters = pieces.map((piece, i) => (i < pieces.length - 1 ? piece.slice(0, -1) : piece));
  return letters.join("").replaceAll(/\s+/g, " ");
}

describe.skipIf(!existsSync("/usr/bin/mandoc"))("the man page in mandoc", () => {
  it("has no warnings", () => {
    expect(mandoc(manPage(commands, release), "-T", "lint", "-W", "warning")).toBe("");
  });

  it("contains every command, action, option and example", () => {
    const text = shown(manPage(commands, release));
    for (const section of ["NAME", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"]) {
      expect(text).toContain(` ${section} `);
    }
    for (const command of commands) {
      for (const example of command.examples) expect(text).toContain(example);
      for (const [name, action] of Object.entries(command.actions ?? {})) {
        expect(text).toContain(`${actionTitle(name, action)} ${action.help}`);
      }
      for (const [name, option] of Object.entries(allOptions(command))) {
        expect(text).toContain(`${optionTitle(name, option)} ${optionHelp(option)}`);
      }
    }
  });

  it("explains every environment variable and exit code that a command mentions", () => {
    const text = shown(manPage(commands, release));
    const [, exitStatus = ""] = text.split(" EXIT STATUS ");
    const [codes = "", environment = ""] = exitStatus.split(" ENVIRONMENT ");
    const mentioned = commands.flatMap((command) => {
      const options = Object.values(allOptions(command)).map(optionHelp);
      return [command.description, ...options].join("\n").match(/\bSHREDWAY_[A-Z_]+/g) ?? [];
    });
    expect(mentioned).toContain("SHREDWAY_API_KEY");
    for (const name of mentioned) expect(` ${environment}`).toContain(` ${name} `);
    expect(codes).toContain("3 Only of audit:");
  });

  it("shows every text unchanged", () => {
    const hostile = [
      ".TH at the beginning",
      "'br at the beginning",
      'it\'s "quoted" `code` ^ ~ - -- $HOME',
      "back\\slash \\fBbold\\fR \\n \\\\ end\\",
      "a: b [c] (d) {e} <f> ünïcode … →",
    ];
    const page = manPage(
      [
        {
          name: "probe",
          summary: "a command for this test",
          usage: ["probe [options]"],
          description: hostile.join("\n\n"),
          actions: Object.fromEntries(hostile.map((help, i) => [`action-${i}`, { help }])),
          options: Object.fromEntries(hostile.map((help, i) => [`option-${i}`, { help }])),
          examples: hostile,
          run: async () => 0,
        },
      ],
      release,
    );
    expect(mandoc(page, "-T", "lint", "-W", "warning")).toBe("");
    const text = shown(page);
    for (const [i, each] of hostile.entries()) {
      expect(text).toContain(`action-${i} ${each}`);
      expect(text).toContain(`--option-${i} ${each}`);
      expect(text.split(each).length - 1).toBe(4);
    }
  });
});
