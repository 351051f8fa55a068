// The project's own files as text, for tests of code rules.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface SourceFile {
  /** Path from the root of the project, with "/". */
  readonly path: string;
  readonly text: string;
}

const skippedFolders: readonly string[] = ["node_modules", "build", "dist", "corpus", "coverage"];

/** All files under `folder` whose names end in one of `endings`, in the order of their paths. */
export function sourceFiles(folder: string, endings: readonly string[]): SourceFile[] {
  return readdirSync(folder, { withFileTypes: true })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry): SourceFile[] => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) {
        return skippedFolders.includes(entry.name) ? [] : sourceFiles(path, endings);
      }
      const isWanted = endings.some((ending) => entry.name.endsWith(ending));
      return isWanted ? [{ path, text: readFileSync(path, "utf8") }] : [];
    });
}

/**
 * Modules that a TypeScript file imports, loads or re-exports, as written. Comments do not count.
 */
export function importsOf(text: string): string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  const forms = /\b(?:from|import|import\(|require\(|require\.resolve\()\s*"([^"]+)"/g;
  return Array.from(code.matchAll(forms), (match) => match[1] ?? "");
}

/** Files that a C++ file includes: `"…"` and `<…>`, without the marks. */
export function includesOf(text: string): string[] {
  return Array.from(text.matchAll(/^#\s*include\s*["<]([^">]+)[">]/gm), (match) => match[1] ?? "");
}
