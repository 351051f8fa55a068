// Removes compiled files whose source no longer exists, so that an old path cannot start an old
// program.
//
// Run by `npm run compile` after the compiler. It leaves all other files in dist/ in place, because
// a service may be running from them. The portal's build script removes the portal's old files.

import { existsSync, readdirSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const output = join(root, "dist");
const page = join("platform", "portal", "page");

function hasSource(path) {
  const stem = path.replace(/(\.d)?\.m?[jt]s$/, "");
  return [".ts", ".mjs"].some((ending) => existsSync(join(root, "src", `${stem}${ending}`)));
}

function removeStale(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const name = relative(output, path);
    if (name === page) continue;
    if (entry.isDirectory()) removeStale(path);
    else if (!hasSource(name)) rmSync(path);
  }
  if (folder !== output && readdirSync(folder).length === 0) rmSync(folder, { recursive: true });
}

removeStale(output);
