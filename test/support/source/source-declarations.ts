// Declarations in the project's files: exports and imports of TypeScript, types of both languages,
// and functions of C++ with their lengths. For tests of code rules; these are not full parsers.

/**
 * Replaces every character that `pattern` covers by a blank, so that offsets and lines do not
 * change.
 */
function blank(text: string, pattern: RegExp): string {
  return text.replaceAll(pattern, (match) => match.replaceAll(/[^\n]/g, " "));
}

/** C++ or TypeScript without comments; offsets and lines do not change. Strings keep their text. */
export function withoutComments(text: string): string {
  const parts = /"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;
  return text.replaceAll(parts, (part) =>
    part.startsWith("/") ? part.replaceAll(/[^\n]/g, " ") : part,
  );
}

/** C++ without comments, literals and preprocessor lines; offsets and lines stay. */
function cppStructure(text: string): string {
  const literals = /R"\(([\s\S]*?)\)"|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'/g;
  return blank(blank(withoutComments(text), literals), /^[ \t]*#(?:[^\n]*\\\n)*[^\n]*/gm);
}

export interface CppFunction {
  readonly name: string;
  /** From its declaration to its closing brace; blank lines and comments do not count. */
  readonly lines: number;
}

/** Position of the brace that closes the one at `at`. */
function closingBrace(code: string, at: number): number {
  let depth = 0;
  for (let i = at; i < code.length; i++) {
    if (code[i] === "{") depth++;
    else if (code[i] === "}" && --depth === 0) return i;
  }
  return code.length;
}

/** Functions with a body, in order. Lambdas and local classes belong to the function around them. */
export function cppFunctions(text: string): CppFunction[] {
  const code = cppStructure(text);
  const found: CppFunction[] = [];
  /** Start of the declaration before the next brace, and the nesting depth of the body. */
  let head = 0;
  let depth = 0;
  let opened = { name: "", at: 0 };
  for (let at = 0; at < code.length; at++) {
    const mark = code[at];
    if (mark === "{") {
      const words = code.slice(head, at);
      if (depth === 0 && /\([\s\S]*\w$/.test(words)) {
        at = closingBrace(code, at); // a member that a constructor initialises: "size_{1}"
        continue;
      }
      const name = /((?:[\w~]+::)*(?:operator\W{1,3}|~?\w+))\s*\(/.exec(words)?.[1];
      if (depth > 0) depth++;
      else if (name !== undefined) {
        depth = 1;
        opened = { name, at: head + words.length - words.trimStart().length };
      }
      if (depth === 0) head = at + 1;
    } else if (mark === "}") {
      if (depth === 1) {
        const body = code.slice(opened.at, at + 1).split("\n");
        found.push({ name: opened.name, lines: body.filter((line) => line.trim() !== "").length });
      }
      if (depth > 0) depth--;
      if (depth === 0) head = at + 1;
    } else if (mark === ";" && depth === 0) {
      head = at + 1;
    }
  }
  return found;
}

/** Types, functions and constants that a TypeScript or C++ file declares by name. */
export function declaredNames(text: string): string[] {
  const forms =
    /^[ \t]*(?:export )?(?:declare )?(?:abstract )?(?:async )?(?:class|interface|struct|union|enum(?: class)?|type|using|function\*?) (\w+)/gm;
  return Array.from(withoutComments(text).matchAll(forms), (match) => match[1] ?? "");
}

/** Names that a TypeScript file exports, including re-exports; "default" for its default. */
export function exportedNames(text: string): string[] {
  const code = withoutComments(text);
  const declared =
    /^export (?:declare )?(?:abstract )?(?:async )?(?:class|interface|enum|type|function\*?|const|let)[ ](\w+)/gm;
  const patterns = /^export const [{[]([^=]*?)[}\]]\s*=/gm;
  const clauses = /^export (?:type )?\{([^}]*)\}/gm;
  const lists = [...code.matchAll(clauses), ...code.matchAll(patterns)].flatMap((match) =>
    (match[1] ?? "").split(",").map((item) => /(\w+)\s*$/.exec(item)?.[1] ?? ""),
  );
  const standard = /^export default /m.test(code) ? ["default"] : [];
  const names = Array.from(code.matchAll(declared), (match) => match[1] ?? "");
  return [...names, ...lists.filter((name) => name !== ""), ...standard];
}

export interface ImportClause {
  /** As written: "./a.ts". */
  readonly from: string;
  /** Names in the other file; null: all of them, as with `import *` and `import()`. */
  readonly names: readonly string[] | null;
}

/** Imports of a TypeScript file with their sources, including re-exports and `import()`. */
export function importClauses(text: string): ImportClause[] {
  const code = withoutComments(text);
  const statics = /\b(?:import|export)\s+(?:type\s+)?([\w*{}\s,]*?)\s*\bfrom\s*"([^"]+)"/g;
  const found = Array.from(code.matchAll(statics), (match): ImportClause => {
    const [, clause = "", from = ""] = match;
    if (clause.includes("*")) return { from, names: null };
    const braces = /\{([^}]*)\}/.exec(clause)?.[1] ?? "";
    const named = braces
      .split(",")
      .map((item) => item.trim().replace(/^type\s+/, ""))
      .map((item) => item.split(/\s+as\s+/)[0] ?? "");
    const standard = /^\w+/.test(clause) ? ["default"] : [];
    return { from, names: [...named.filter((name) => name !== ""), ...standard] };
  });
  const calls = /\b(?:import|importOriginal<typeof import|require)\(\s*"([^"]+)"/g;
  const whole = Array.from(code.matchAll(calls), (match): ImportClause => {
    return { from: match[1] ?? "", names: null };
  });
  return [...found, ...whole];
}
