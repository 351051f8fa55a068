// Wording rules of the documents and comments. Each list of exceptions only shrinks: an entry that is
// not needed any more fails.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type SourceFile, sourceFiles } from "./support/source/source-tree.ts";
import {
  bannedPhrasesIn,
  bannedPhrasesInCode,
  fragmentComments,
  longSentences,
  pageLinesMax,
  proseOfCode,
  sentencesOf,
} from "./support/source/wording.ts";

const pages: readonly SourceFile[] = [
  ...sourceFiles("docs", [".md"]),
  ...["README.md", "CHANGELOG.md"].map((path) => ({ path, text: readFileSync(path, "utf8") })),
];

/** References are as long as what they describe; programs write most of them. */
const references: readonly string[] = [
  "CHANGELOG.md",
  "docs/api.md",
  "docs/benchmarks.md",
  "docs/command-line.md",
  "docs/configuration.md",
  "docs/metrics.md",
  "docs/proof.md",
];

const pagesWithBannedPhrases: readonly string[] = [];
const pagesWithLongSentences: readonly string[] = ["docs/api.md", "docs/sandbox.md"];
const pagesWithManyLines: readonly string[] = [];

const codeFolders = ["src", "native", "test", "bench", "examples"] as const;

/** The rule itself names what it bans. */
const rulesFiles: readonly string[] = [
  "test/wording.test.ts",
  "test/support/source/wording.ts",
  "test/code-rules.test.ts",
];

type Check = (file: SourceFile) => readonly string[];

function violations(check: Check, exceptions: readonly string[]): string[] {
  return pages
    .filter(({ path }) => !exceptions.includes(path))
    .flatMap((page) => check(page).map((text) => `${page.path}: ${text}`));
}

function unneeded(check: Check, exceptions: readonly string[]): string[] {
  return exceptions.filter((path) => {
    const page = pages.find((each) => each.path === path);
    return page === undefined || check(page).length === 0;
  });
}

const checks: readonly [name: string, Check, exceptions: readonly string[]][] = [
  ["contain no banned phrase", ({ text }) => bannedPhrasesIn(text), pagesWithBannedPhrases],
  ["have sentences of at most 30 words", ({ text }) => longSentences(text), pagesWithLongSentences],
  [
    `have at most ${pageLinesMax} lines`,
    ({ path, text }) => {
      const lines = text.trimEnd().split("\n").length;
      return lines <= pageLinesMax || references.includes(path) ? [] : [`${lines} lines`];
    },
    pagesWithManyLines,
  ],
];

describe("documents", () => {
  it("are found", () => {
    expect(pages.length).toBeGreaterThan(20);
    expect(pages.map(({ path }) => path)).toContain("README.md");
  });

  it.each(checks)("%s", (_name, check, exceptions) => {
    expect(violations(check, exceptions)).toEqual([]);
  });

  it.each(checks)("%s: every exception is needed", (_name, check, exceptions) => {
    expect(unneeded(check, exceptions)).toEqual([]);
  });
});

describe.each(codeFolders)("the code in %s", (folder) => {
  const files = sourceFiles(folder, [".ts", ".tsx", ".mjs", ".cc", ".h"]).filter(
    ({ path }) => !rulesFiles.includes(path),
  );

  it.each([
    ["has comments that begin with a whole phrase", fragmentComments],
    ["has no banned phrase in comments and texts", bannedPhrasesInCode],
  ] as const)("%s", (_name, check) => {
    expect(files.length).toBeGreaterThan(0);
    expect(
      files.flatMap(({ path, text }) => check(text).map((line) => `${path}: ${line}`)),
    ).toEqual([]);
  });
});

describe("the checks find", () => {
  it("banned phrases, but not in code", () => {
    expect(bannedPhrasesIn("It says what became\nof it.").length).toBe(1);
    expect(
      bannedPhrasesIn("The account is no nonce account. Whoever has it, keeps it.").length,
    ).toBe(2);
    expect(bannedPhrasesIn("| a | he waits |\n").length).toBe(1);
    expect(
      bannedPhrasesIn("There is no key. It is no longer `whoever`.\n```\nwhoever\n```\n"),
    ).toEqual([]);
  });

  it("long sentences, in paragraphs, lists and tables", () => {
    const words = (count: number) => Array.from({ length: count }, () => "word").join(" ");
    expect(longSentences(`A ${words(29)}. B ${words(29)}.`)).toEqual([]);
    expect(longSentences(`A ${words(15)}\n${words(15)}.`).length).toBe(1);
    expect(longSentences(`- A ${words(20)}\n- B ${words(20)}\n`)).toEqual([]);
    expect(longSentences(`- A ${words(20)}\n  ${words(20)}\n`).length).toBe(1);
    expect(longSentences(`| ${words(31)} | ${words(30)} |`).length).toBe(1);
    expect(longSentences(`## ${words(10)}\n${words(25)} \`a b c d e f\` [x](y).`)).toEqual([]);
  });

  it("the ends of sentences", () => {
    expect(sentencesOf("One, e.g. This. Two (see 1.5). 3 is third! `x` is no end.")).toEqual([
      "One, e.g This.",
      "Two (see 1.5).",
      "3 is third!",
      "CODE is no end.",
    ]);
  });

  it("the comments and texts of code", () => {
    const text = `// One comment on
// two lines.
const a = "a text"; // at the end
/**
 * A docstring
 * on two lines.
 */
log(\`a template\`, "single", 'another text');
`;
    expect(proseOfCode(text)).toEqual([
      "One comment on two lines.",
      "a text",
      "at the end",
      "A docstring on two lines.",
      "a template",
      "another text",
    ]);
    expect(bannedPhrasesInCode("// Nobody knows what\n// became of it.").length).toBe(1);
  });

  it("comments that begin with a fragment", () => {
    const text = `// Of all.
// Those of the second line do not count.
const a = 1;
/** Who calls. */
/**
 * What is sent.
 */
  // By hand.
  const b = 1; // Those at the end of a line do not count.
// By default, it is whole.
// Offers a key.
`;
    expect(fragmentComments(text)).toEqual([
      "Of all.",
      "Who calls. */",
      "What is sent.",
      "By hand.",
    ]);
  });
});
