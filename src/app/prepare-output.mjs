// Prepares dist/ for the compiler: removes compiled files whose source no longer exists, so that an old path cannot
// start an old program. If a compiled file is missing, also removes what the compiler knows of its last run, because
// it would not write that file again.
//
// Run by `npm run compile` before the compiler. It leaves all other files in dist/ in place, because
// a service may be running from them. The portal's build script removes the portal's old files.

import { existsSync, readdirSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const source = join(root, "src");
const output = join(root, "dist");
const page = join("platform", "portal", "page");
/** The file in which the compiler keeps what it knows: `tsBuildInfoFile` in tsconfig.json. */
const lastRun = join(output, ".tsbuildinfo");

function hasSource(name) {
  const stem = name.replace(/(\.d)?\.m?[jt]s$/, "");
  return [".ts", ".mjs"].some((ending) => existsSync(join(source, `${stem}${ending}`)));
}

function removeStale(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const name = relative(output, path);
    if (name === page || path === lastRun) continue;
    if (entry.isDirectory()) removeStale(path);
    else if (!hasSource(name)) rmSync(path);
  }
  if (folder !== output && readdirSync(folder).length === 0) rmSync(folder, { recursive: true });
}

/** Whether each source has both of its compiled files: program and types. */
function isComplete() {
  return readdirSync(source, { recursive: true })
    .filter((name) => /\.(ts|mjs)$/.test(name) && !name.startsWith(page))
    .map((name) => join(output, name))
    .every((path) => {
      const isScript = path.endsWith(".mjs");
      const stem = path.replace(/\.(ts|mjs)$/, "");
      return (
        existsSync(isScript ? path : `${stem}.js`) &&
        existsSync(`${stem}${isScript ? ".d.mts" : ".d.ts"}`)
      );
    });
}

if (existsSync(output)) {
  removeStale(output);
  if (!isComplete()) rmSync(lastRun, { force: true });
}
