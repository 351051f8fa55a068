// Vite plugin: modules of src that start a process or a thread start the compiled one, as in production.
//
// From source they would start it with tsx, which transforms every source again: a second of CPU time for each.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Plugin } from "vitest/config";
import { compiledSource, isCompiled, root } from "../processes/compiled-source.ts";

const starters = ["gateway/tpu/start-quic-process.ts", "platform/store/sqlite/thread.ts"].map(
  (name) => join(root, "src", name),
);

export const compiledChildren: Plugin = {
  name: "compiled children",
  transform(code, id) {
    const compiled = compiledSource(id);
    if (!isCompiled() || compiled === null || !starters.includes(id)) return undefined;
    return code.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(compiled).href));
  },
};
