// TypeScript programs of the tests that run in a process of their own.
//
// tsx transforms every source again in each process, in a thread of its own. Here, the test's own sources are
// bundled once, and the bundle imports the compiled sources of the service.

import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { build, type Plugin } from "esbuild";
import { compiledSource, isCompiled, root } from "./compiled-source.ts";

/** Below the project, so that the bundle finds its packages. */
const folder = join(root, "node_modules/.cache/shredway-tests");

const compiledSources: Plugin = {
  name: "compiled sources",
  setup(bundling) {
    bundling.onResolve({ filter: /^\..*\.ts$/ }, ({ path, resolveDir }) => {
      const file = compiledSource(resolve(resolveDir, path));
      return file === null ? undefined : { path: file, external: true };
    });
  },
};

async function bundle(program: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [program],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    packages: "external",
    plugins: [compiledSources],
  });
  const file = join(folder, relative(root, program).replace(/ts$/, "mjs"));
  const unfinished = `${file}.${process.pid}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(unfinished, outputFiles[0]?.contents ?? "");
  renameSync(unfinished, file); // another test file may bundle the same program
  return file;
}

const bundles = new Map<string, Promise<string>>();

/** Arguments of `node` that run the program, a file. Uses tsx where nothing is compiled. */
export async function childProgramWords(program: string): Promise<readonly string[]> {
  if (!isCompiled()) return ["--import", "tsx", program];
  const file = bundles.get(program) ?? bundle(program);
  bundles.set(program, file);
  return [await file];
}
