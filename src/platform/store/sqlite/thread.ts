// Starts the threads of SQLite files. Called by driver.ts and ../snapshot.ts.

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";

/** `file`: name in this folder without its extension. */
export function startThread(file: string, workerData: object): Worker {
  const settings = { name: "store", workerData, execArgv: [] };
  if (import.meta.url.endsWith(".js")) {
    return new Worker(new URL(`./${file}.js`, import.meta.url), settings);
  }
  // From source (tests, tsx), because a thread has no TypeScript loader of its own.
  const loader = JSON.stringify(createRequire(import.meta.url).resolve("tsx/cjs"));
  const source = JSON.stringify(fileURLToPath(new URL(`./${file}.ts`, import.meta.url)));
  return new Worker(`require(${loader}); require(${source});`, { ...settings, eval: true });
}
