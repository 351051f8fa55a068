// Vite plugin: modules of src that start a process or a thread start the compiled one, as in production.
//
// From source they would start it with tsx, which transforms every source again: a second of CPU time for each.

import { join, relative, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Plugin } from "vitest/config";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const sources = join(root, "src");
const starters = ["gateway/tpu/start-quic-process.ts", "platform/store/sqlite/thread.ts"];

export const compiledChildren: Plugin = {
  name: "compiled children",
  transform(code, id) {
    // Set by ../processes/build-program.ts: without it, nothing may be compiled.
    if (process.env["SHREDWAY_TEST_PROGRAM"] === undefined) return undefined;
    const name = relative(sources, id).replaceAll(sep, "/");
    if (!starters.includes(name)) return undefined;
    const compiled = pathToFileURL(join(root, "dist", name.replace(/ts$/, "js"))).href;
    return code.replaceAll("import.meta.url", JSON.stringify(compiled));
  },
};
