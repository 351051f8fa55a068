// Finds violations of the project's wording rules: banned phrases, long sentences, and comments that
// begin with a fragment. It works on text only; test/wording.test.ts chooses the files.

export const sentenceWordsMax = 30;
export const pageLinesMax = 250;

export interface BannedPhrase {
  readonly pattern: RegExp;
  /** The replacement to suggest. */
  readonly write: string;
}

/** Add each wrong phrase that a review finds. Patterns ignore case and match within one sentence. */
export const bannedPhrases: readonly BannedPhrase[] = [
  { pattern: /\b(?:he|him|his|she|her)\b/i, write: "the operator, the client, or the plural" },
  { pattern: /\bwho(?:m?ever)\b/i, write: "any caller that …, the user that …" },
  { pattern: /\b(?:any|every)body\b/i, write: "every caller, any client, the public" },
  { pattern: /\bwhat (?:became|becomes|comes|came|come) of\b/i, write: "the result of …" },
  { pattern: /\b(?:came|comes) to be\b/i, write: "the cause or the result" },
  { pattern: /\bof which\b/i, write: "a sentence of its own" },
  {
    pattern: /(?<!\bthere )\b(?:is|are) no (?!longer|more|less|later|other)/i,
    write: "is not a …",
  },
  { pattern: /\b(?:is|are) none\b/i, write: "is not a …, is missing" },
  { pattern: /\bcan(?:not| be) be had\b|\bto be had\b/i, write: "is (not) available" },
  { pattern: /\bnot of its kind\b/i, write: "invalid value" },
  { pattern: /\bsignatures? that holds?\b/i, write: "valid signature" },
  { pattern: /\bnames no \w+|\bnaming no \w+/i, write: "no … is configured" },
  { pattern: /\bnothing older\b/i, write: "no older entries" },
  { pattern: /\bhow (?:whole|late)\b/i, write: "completeness, arrival delay" },
  { pattern: /\bof the moment\b|\bmoment's\b/i, write: "ephemeral, current" },
  { pattern: /\b(?:within|for) a moment\b/i, write: "within a second" },
  { pattern: /\bafter a rest\b/i, write: "burst size" },
  { pattern: /\ball the same\b/i, write: "still" },
  { pattern: /\bas ever\b/i, write: "unchanged" },
  { pattern: /\bst(?:and|ood|ands|anding) still\b/i, write: "does not change, is frozen" },
  { pattern: /\btaken? up again\b|\btaken up\b|\btakes? up\b/i, write: "resumed" },
  { pattern: /\b(?:is|are|was|were|be|been) told\b|\btells\b/i, write: "notified, reports" },
  { pattern: /\bhouse[ _-]keeping\b/i, write: "housekeeping" },
  { pattern: /\bsight(?:s|ings?)?\b/i, write: "observation, arrival" },
  { pattern: /\bkeepers?\b|\bthe keeping of\b/i, write: "leader, writer" },
  { pattern: /\b(?:parcels?|desks?|bells?|seats?)\b/i, write: "the thing's standard name" },
  { pattern: /\bfront keys?\b/i, write: "don't-front marker" },
  { pattern: /\bdirect route\b/i, write: "TPU route" },
  { pattern: /\bmend(?:s|ed|ing)?\b/i, write: "fix, repair" },
  { pattern: /\blately\b/i, write: "recently" },
  { pattern: /\banew\b|\bafresh\b/i, write: "again" },
  { pattern: /\bbesides\b/i, write: "also, in addition" },
  { pattern: /\bthere and then\b|\bhere and there\b/i, write: "immediately, in some places" },
  {
    pattern:
      /\bunproved (?:address|destination)|\b(?:address|destination|it|one that) is (?:not )?proved\b|\bas (?:un)?proved\b/i,
    write: "verified",
  },
  { pattern: /\bout of itself\b|\bby itself alone\b/i, write: "alone" },
];

/** The text that people read: no fenced blocks, targets of links or HTML; a code span is one word. */
function proseOf(markdown: string): string {
  return markdown
    .replaceAll(/^```[\s\S]*?^```/gm, "\n")
    .replaceAll(/<!--[\s\S]*?-->|<[^>\n]+>/g, " ")
    .replaceAll(/``[^`]+``|`[^`]*`/g, "CODE")
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/\*\*|(?<=\s)[_*](?=\w)/g, "");
}

/** A paragraph, a list item, a heading or a table cell each, without line breaks. */
function blocksOf(markdown: string): string[] {
  const lines = proseOf(markdown)
    .split("\n")
    .flatMap((line) => {
      if (/^\s*\|/.test(line))
        return ["", ...line.split(/(?<!\\)\|/).flatMap((cell) => [cell, ""])];
      if (/^#{1,6} /.test(line)) return ["", line, ""];
      return /^\s*(?:[-*>]|\d+\.)\s/.test(line)
        ? ["", line.replace(/^\s*(?:[-*>]|\d+\.)\s+/, "")]
        : [line];
    });
  return lines
    .map((line) => line.trim())
    .join("\n")
    .split(/\n{2,}/)
    .map((block) => block.replaceAll(/\s+/g, " ").trim())
    .filter((block) => block !== "");
}

export function sentencesOf(markdown: string): string[] {
  return blocksOf(markdown).flatMap((block) =>
    block
      .replaceAll(/\b(?:e\.g|i\.e|vs|approx)\./g, (short) => short.slice(0, -1))
      .split(/(?<=[.!?]["')]?)\s+(?=["'(]?[\p{Lu}\d…])/u),
  );
}

function excerpt(sentence: string): string {
  return sentence.length <= 80 ? sentence : `${sentence.slice(0, 79)}…`;
}

export function longSentences(markdown: string): string[] {
  return sentencesOf(markdown).flatMap((sentence) => {
    const words = sentence.split(/\s+/).filter((word) => /[\p{L}\d]/u.test(word)).length;
    return words > sentenceWordsMax ? [`${words} words: ${excerpt(sentence)}`] : [];
  });
}

function bannedPhrasesOf(sentence: string): string[] {
  return bannedPhrases.flatMap(({ pattern, write }) => {
    const found = pattern.exec(sentence)?.[0];
    return found === undefined ? [] : [`"${found}", write: ${write} (${excerpt(sentence)})`];
  });
}

export function bannedPhrasesIn(markdown: string): string[] {
  return sentencesOf(markdown).flatMap(bannedPhrasesOf);
}

/** Banned phrases in the comments and texts of TypeScript or C++. */
export function bannedPhrasesInCode(text: string): string[] {
  return proseOfCode(text).flatMap(bannedPhrasesOf);
}

/** "By default" begins a whole sentence; the others of this list begin a fragment. */
const fragment = /^(?:Of|Those|Who|Whose|Whoever|What|Whatever|That|By(?! default))\b/;

/** The first line of each comment in TypeScript or C++ that begins with a fragment. */
export function fragmentComments(text: string): string[] {
  const comments = text.matchAll(
    /^[ \t]*\/\*\*?\s*(?:\*\s*)?(.*)|^(?![ \t]*\/\/).*\n[ \t]*\/\/+ ?(.*)/gm,
  );
  const first = /^\/\/+ ?(.*)/.exec(text)?.[1] ?? "";
  return [first, ...Array.from(comments, (found) => found[1] ?? found[2] ?? "")].filter((line) =>
    fragment.test(line),
  );
}

/** Comments and texts (string literals with a space) of TypeScript or C++; adjoining comment lines are one. */
export function proseOfCode(text: string): string[] {
  const blocks: string[] = [];
  let comment: string[] = [];
  const endComment = () => {
    if (comment.length > 0) blocks.push(comment.join(" ").trim());
    comment = [];
  };
  for (const line of text.split("\n")) {
    const commented = /^\s*(?:\/\/+|\/\*+|\*(?!\/))\s?(.*?)(?:\*\/)?$/.exec(line)?.[1];
    if (commented !== undefined) {
      comment.push(commented.trim());
      continue;
    }
    endComment();
    const texts = line.matchAll(
      /\s\/\/ (.*)$|"((?:[^"\\]|\\.)*\s(?:[^"\\]|\\.)*)"|'([^']*\s[^']*)'|`([^`]*\s[^`]*)`/g,
    );
    for (const found of texts) blocks.push(found.slice(1).find((each) => each !== undefined) ?? "");
  }
  endComment();
  return blocks;
}
