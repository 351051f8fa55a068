// node --import test/simulation/load.mjs: loads TypeScript for long runs of the simulation.
//
// tsx keeps the names of all functions: each closure then gets its name again whenever it is made, which takes a
// third of a run's time.

import { readFile } from "node:fs/promises";
import { register } from "node:module";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";
import { transform } from "esbuild";

if (isMainThread) register(import.meta.url);

/** The hook of Node.js for the source of a module. */
export async function load(url, context, nextLoad) {
  if (!url.startsWith("file:") || !url.endsWith(".ts")) return nextLoad(url, context);
  const source = await readFile(fileURLToPath(url), "utf8");
  const { code } = await transform(source, {
    loader: "ts",
    format: "esm",
    target: "node20",
    sourcemap: "inline",
    sourcefile: url,
  });
  return { format: "module", source: code, shortCircuit: true };
}
