// The test files that may share processes, by what they load.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sourceFiles } from "../source/source-tree.ts";

/** Modules that open sockets, start processes or threads, or use a database. */
const ownProcessModules =
  /^(node:(child_process|cluster|dgram|dns|dns\/promises|http|http2|https|net|readline|tls|worker_threads)|@grpc\/.+|@triton-one\/.+|pg|playwright-core|uWebSockets\.js|ws)$/;

/** Start threads of the addon. */
const threadStarters = /^src\/relay\/data-plane\/(relay|native-(fast-path|first-packets))\.ts$/;

/** These change their process: replaced modules and variables of the environment outlive the file. */
const processChanges = /\bvi\.(doMock|mock|stubEnv|stubGlobal|useFakeTimers)\(|\bprocess\.chdir\(/;

/** Modules that a TypeScript file loads when it runs: imports and re-exports, without those of types only. */
function loadedModules(text: string): string[] {
  const forms =
    /^(?:import|export)\s+(?!type\b)(?:([^;"]*?)\sfrom\s+)?"([^"]+)"|\bimport\("([^"]+)"\)/gm;
  return Array.from(text.matchAll(forms), ([, names = "", module, loaded]) => {
    const isOfTypes = /^\{(\s*type [^,}]+,?)+\s*\}$/.test(names);
    return isOfTypes ? "" : (module ?? loaded ?? "");
  }).filter((module) => module !== "");
}

interface Loaded {
  /** Paths of the project's files that it loads. */
  readonly files: readonly string[];
  readonly needsOwnProcess: boolean;
}

const read = new Map<string, Loaded>();

/** Loads of one file, without those of the files that it loads. */
function loadedBy(path: string): Loaded {
  let loaded = read.get(path);
  if (!loaded) {
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    const modules = loadedModules(text);
    loaded = {
      files: modules
        .filter((name) => name.startsWith("."))
        .map((name) => join(dirname(path), name)),
      needsOwnProcess:
        threadStarters.test(path) ||
        processChanges.test(text) ||
        modules.some((name) => ownProcessModules.test(name)),
    };
    read.set(path, loaded);
  }
  return loaded;
}

/** Whether this file, or one that it loads directly or indirectly, needs a process of its own. */
function needsOwnProcess(path: string, seen = new Set<string>()): boolean {
  if (seen.has(path)) return false;
  seen.add(path);
  const loaded = loadedBy(path);
  return loaded.needsOwnProcess || loaded.files.some((file) => needsOwnProcess(file, seen));
}

/** Paths of the test files that need no process of their own, from the root of the project. */
export function filesOfSharedProcesses(): string[] {
  return sourceFiles("test", [".test.ts"])
    .map(({ path }) => path)
    .filter((path) => !needsOwnProcess(path));
}
