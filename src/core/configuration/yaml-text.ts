// YAML text of a configuration: parses it, and explains the parser's errors to operators.
//
// Called by configuration.ts before the file's values are checked.

import { type Document, Lexer, LineCounter, Parser, parseDocument } from "yaml";
import { messageOf, ShredwayError } from "../errors.ts";

/** The deepest key needs 8 levels of the YAML parser. */
const nestingMax = 64;
const problemsShownMax = 20;
/** Texts for errors whose message in the library names its own functions. */
const textsByCode: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: "expected one document, got another one after ---; remove this line",
};

export interface Located {
  /** Line number from 1; undefined: the problem has no position in the text. */
  readonly line: number | undefined;
  readonly text: string;
}

interface YamlFile {
  readonly document: Document;
  readonly lines: LineCounter;
  /** The content as plain values. */
  readonly file: unknown;
}

/** An error with one line of text for each problem. */
export function refusal(path: string, problems: readonly Located[]): ShredwayError {
  const lines = problems
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    .slice(0, problemsShownMax)
    .map(({ line, text }) => `${path}${line === undefined ? "" : `:${line}`}: ${text}`);
  if (problems.length > problemsShownMax) {
    lines.push(`${path}: and ${problems.length - problemsShownMax} more`);
  }
  return new ShredwayError("config_invalid", lines.join("\n"), {
    details: { path, problems: problems.length },
  });
}

/**
 * Whether the text is nested more deeply than any valid configuration. The composer of the YAML
 * library recurses, and a stack overflow there can end the process. This check therefore runs
 * first; the parser uses its own stack, not recursion.
 */
function nestsTooDeeply(text: string): boolean {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    // Runs the parser over the lexeme. The resulting tokens are not needed.
    Array.from(parser.next(lexeme));
    if (parser.stack.length > nestingMax) return true;
  }
  return false;
}

/** An address such as [2001:db8::1]:9000 without quotes: YAML reads its bracket as a list. */
const unquotedIpv6 = /(?:^|[\s,{[:])(\[[0-9a-fA-F.]*:[0-9a-fA-F:.]*\](?::\d{1,5})?)(?=[\s,}\]]|$)/;

function withoutComment(line: string): string {
  return line.replace(/(^|\s)#.*$/, "");
}

/** One problem for each line; lines that begin with a tab are one problem together. */
function explain(faults: readonly (Located & { code: string })[], text: string): Located[] {
  const source = text.split("\n");
  const tabs = new Set<number | undefined>();
  const byLine = new Map<number | undefined, Located>();
  for (const { line, text: message, code } of faults) {
    const written = withoutComment(source[(line ?? 0) - 1] ?? "");
    const address = unquotedIpv6.exec(written)?.[1];
    if (code === "TAB_AS_INDENT" || /^ *\t/.test(written)) tabs.add(line);
    else if (byLine.has(line)) continue;
    else if (address === undefined) byLine.set(line, { line, text: `invalid YAML: ${message}` });
    else {
      const wrong = `invalid YAML: ${address} without quotes is read as a list`;
      byLine.set(line, { line, text: `${wrong}; expected it in quotes: "${address}"` });
    }
  }
  if (tabs.size === 0) return [...byLine.values()];
  // Without the indentation, the parser's other errors are consequences.
  const [first] = tabs;
  const more = source.filter((line) => /^ *\t/.test(line)).length - 1;
  const others = more > 0 ? `; ${more} more lines do` : "";
  const message = `invalid YAML: the line is indented with a tab${others}; expected spaces`;
  return [{ line: first, text: message }];
}

/** Throws ShredwayError "config_invalid". */
export function parseYaml(text: string, path: string): YamlFile {
  const lines = new LineCounter();
  try {
    if (nestsTooDeeply(text)) {
      const message = `expected at most ${nestingMax} levels of nesting, got more`;
      throw refusal(path, [{ line: undefined, text: message }]);
    }
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
    // A warning means a tag or directive that this program would ignore.
    const faults = [...document.errors, ...document.warnings];
    if (faults.length > 0) {
      const located = faults.map((fault) => ({
        line: lines.linePos(fault.pos[0]).line,
        text: textsByCode[fault.code] ?? fault.message,
        code: fault.code,
      }));
      throw refusal(path, explain(located, text));
    }
    const file: unknown = document.toJS({ maxAliasCount: 100 });
    return { document, lines, file };
  } catch (cause) {
    if (cause instanceof ShredwayError) throw cause;
    // The text has too many aliases, or exceeds the parser's stack.
    throw refusal(path, [{ line: undefined, text: `invalid YAML: ${messageOf(cause)}` }]);
  }
}
