// Documents: every link has a target, and every command and option exists.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readMethodNames } from "../src/gateway/endpoints/read-methods.ts";
import { methods } from "../src/gateway/methods/method-table.ts";
import { allCommands, commands } from "../src/tools/commands.ts";
import type { Command } from "../src/tools/terminal/command.ts";
import { leftOutLine } from "./support/vitest/scope-reporter.ts";

const root = fileURLToPath(new URL("../", import.meta.url));

function markdownBelow(folder: string): string[] {
  if (!existsSync(join(root, folder))) return [];
  const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".md")).map((name) => join(folder, name));
}

const documents = [
  "README.md",
  "CHANGELOG.md",
  ...markdownBelow("docs"),
  ...markdownBelow("examples"),
].filter((path) => !path.includes("node_modules"));

function textOf(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** Without fenced blocks, which may resemble links or headings. */
function proseOf(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```/gm, "");
}

/** The anchors that GitHub and GitLab derive from headings. */
function anchorsOf(path: string): Set<string> {
  const headings = [...proseOf(textOf(path)).matchAll(/^#{1,6} +(.+)$/gm)];
  return new Set(
    headings.map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{Letter}\p{Number}\s_-]/gu, "")
        .trim()
        .replaceAll(/\s/g, "-"),
    ),
  );
}

function brokenLinks(path: string, text: string): string[] {
  const targets = [...proseOf(text).matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)];
  return targets
    .map(([, link, source]) => link ?? source ?? "")
    .filter((target) => !/^(https?|mailto):/.test(target))
    .filter((target) => {
      const [file = "", anchor] = target.split("#");
      const found = file === "" ? path : join(dirname(path), file);
      if (!existsSync(join(root, found))) return true;
      if (anchor === undefined || statSync(join(root, found)).isDirectory()) return false;
      return found.endsWith(".md") && !anchorsOf(found).has(anchor);
    });
}

/**
 * Calls of the command inside code, each with its arguments, up to a pipe or the end of the line.
 */
function callsIn(text: string): string[][] {
  const joined = text.replaceAll(/\\\n\s*/g, " ");
  const code = [...joined.matchAll(/^```(?:sh|bash|console)?\n([\s\S]*?)^```|`([^`\n]+)`/gm)];
  return code
    .flatMap(([, block, span]) => (block ?? span ?? "").split("\n"))
    .flatMap((line) => {
      const found = /^\s*(?:\$ )?(?:npx )?(?:node dist\/tools\/shredway\.js|shredway) (.+)$/.exec(
        line,
      );
      const words =
        found?.[1]
          ?.split(/[|;&>#]/)[0]
          ?.trim()
          .split(/\s+/) ?? [];
      return words.length > 0 ? [words] : [];
    });
}

function unknownWords(words: readonly string[], known: ReadonlyMap<string, Command>): string[] {
  const [first = "", ...rest] = words;
  const name = first.replace(/[:,.]$/, "");
  if (/^(--?[a-z]|[<{(…])/.test(name)) return [];
  const command = known.get(name);
  if (!command) return [`shredway ${name}`];
  return rest
    .flatMap((word) => /^\[?--([a-z][a-z0-9-]*)/.exec(word)?.[1] ?? [])
    .filter((option) => option !== "help" && !Object.hasOwn(command.options, option))
    .map((option) => `shredway ${name} --${option}`);
}

/** The section of docs/command-line.md about a command, without the other sections. */
function sectionOf(name: string): string {
  return textOf("docs/command-line.md").split(`\n## ${name}\n`)[1]?.split("\n## ")[0] ?? "";
}

/** Actions and options that the section of a command does not contain. */
function undescribed({ name, actions = {}, options }: Command): string[] {
  const text = sectionOf(name);
  const words = [
    ...Object.keys(actions).map((action) => `${name} ${action}`),
    ...Object.keys(options).map((option) => `--${option}`),
  ];
  return words.filter((word) => !text.includes(word)).map((word) => `${name}: ${word}`);
}

describe("documents", () => {
  it.each(documents)("%s: its links lead somewhere", (path) => {
    expect(brokenLinks(path, textOf(path))).toEqual([]);
  });

  it("links that lead nowhere are found", () => {
    expect(
      brokenLinks("README.md", "[a](docs/none.md) [b](docs/relay.md#none) [c](docs/relay.md)"),
    ).toEqual(["docs/none.md", "docs/relay.md#none"]);
  });

  it("README.md shows the last line of npm test, without counts that change with each test", () => {
    const readme = textOf("README.md");
    expect(readme.replaceAll(/\s+/g, " ")).toContain(leftOutLine("…", "…"));
    expect(readme).not.toMatch(/\d+ (passed|skipped)/);
  });

  it("show commands and options that exist", async () => {
    const known = new Map<string, Command>();
    for (const [name, load] of Object.entries(commands)) known.set(name, await load());
    const found = documents.flatMap((path) =>
      callsIn(textOf(path)).flatMap((words) =>
        unknownWords(words, known).map((word) => `${path}: ${word}`),
      ),
    );
    expect(found).toEqual([]);
    expect(unknownWords(["listen", "--port", "1", "--none"], known)).toEqual([
      "shredway listen --none",
    ]);
    expect(callsIn("```sh\nnode dist/tools/shredway.js lisp --port 1 | head\n```")).toEqual([
      ["lisp", "--port", "1"],
    ]);
  });

  it("describe every command, action and option", async () => {
    const all = await allCommands();
    expect(all.flatMap(undescribed)).toEqual([]);
    const rows = all.map(({ name, summary }) => `| [\`${name}\`](#${name}) | ${summary} |`);
    const text = textOf("docs/command-line.md");
    expect(rows.filter((row) => !text.includes(`\n${row}\n`))).toEqual([]);
  });

  it("call methods that exist", () => {
    const names = new Set([
      ...Object.keys(methods),
      ...readMethodNames,
      "requestAirdrop",
      "sendNothing",
    ]);
    const found = documents.flatMap((path) =>
      [...textOf(path).matchAll(/"method": ?"(\w+)"/g)]
        .filter(([, name = ""]) => !names.has(name) && !name.endsWith("Subscribe"))
        .map(([, name]) => `${path}: ${name}`),
    );
    expect(found).toEqual([]);
  });
});
