// Vitest reporter: after the results, one block names what the run left out, and how to include it.

import type { Reporter, TestCase, TestModule } from "vitest/node";
import { filesOfFullRun, isFullRun } from "./test-scope.ts";

/** Debian packages by a word in the name of a skipped suite or its file. */
const packages: readonly (readonly [pattern: RegExp, remedy: string])[] = [
  [/postgres/i, "apt-get install postgresql"],
  [/namespace|regions|partition|network/i, "run as root, apt-get install iproute2"],
  [/chromium|page of a large/i, "apt-get install chromium"],
  [/prometheus|promtool/i, "apt-get install prometheus"],
  [/tshark/i, "apt-get install tshark ethtool"],
  [/completion in/i, "apt-get install bash zsh fish"],
  [/on Btrfs/i, "apt-get install btrfs-progs"],
  [/mandoc/i, "apt-get install mandoc"],
  [/capture|real transactions|formats/i, "set SHREDWAY_TESTDATA to the folder of recorded shreds"],
  [/engine uws/i, "uWebSockets.js has no binary for this version of Node.js"],
  [/QUIC|leader/i, "npm install --include=optional"],
  [/curl|shell|health|docs\//i, "apt-get install curl"],
];

/** Names of files on the command line: the run is limited to them. */
const chosen = process.argv.slice(2).filter((word) => word !== "run" && !word.startsWith("-"));

/** The outermost skipped suite, or the test itself. */
function skippedName(test: TestCase): string {
  const { parent } = test;
  return parent.type === "suite" ? parent.fullName : test.name;
}

function remedyOf(name: string): string {
  return packages.find(([pattern]) => pattern.test(name))?.[1] ?? "see the file";
}

/** Last line of `npm test`. */
export function leftOutLine(tests: string, patterns: string): string {
  return (
    `Left out: ${tests} tests, and files of ${patterns} patterns, that need a database server, root, a browser or ` +
    "other programs, or that kill processes. npm run test:all runs them."
  );
}

export default class ScopeReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = new Map<string, number>();
    for (const module of modules) {
      for (const test of module.children.allTests("skipped")) {
        const name = `${module.relativeModuleId} > ${skippedName(test)}`;
        skipped.set(name, (skipped.get(name) ?? 0) + 1);
      }
    }
    if (isFullRun) {
      const lines = [...skipped].map(([name, count]) => `  ${name} (${count}): ${remedyOf(name)}`);
      if (lines.length > 0) process.stdout.write(`Skipped:\n${lines.join("\n")}\n`);
      return;
    }
    if (chosen.length > 0) {
      if (modules.length > 0) return;
      const files = chosen.join(" ");
      process.stdout.write(
        `No test of npm test matches. For the full run: SHREDWAY_TESTS=all npx vitest run ${files}\n`,
      );
      return;
    }
    const tests = [...skipped.values()].reduce((sum, count) => sum + count, 0);
    process.stdout.write(`${leftOutLine(String(tests), String(filesOfFullRun.length))}\n`);
  }
}
