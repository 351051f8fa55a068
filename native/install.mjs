// Install step of the package: takes the prebuild that fits, else builds the addon from source.
//
// node-gyp would fetch Node's headers from the network; the ones that came with this Node are right
// and need none, so they are named when they are there and nobody named others.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const require = createRequire(import.meta.url);
const prefix = dirname(dirname(process.execPath));
const env = { ...process.env };
if (!env.npm_config_nodedir && existsSync(join(prefix, "include/node/node_api.h"))) {
  env.npm_config_nodedir = prefix;
}
const program = join(dirname(require.resolve("node-gyp-build/package.json")), "bin.js");
const { status, error } = spawnSync(process.execPath, [program], { stdio: "inherit", env });
if (status !== 0) {
  console.error(
    "shredway: the native addon could not be built: expected a C++20 compiler (g++ 12 or clang 16 " +
      `and newer), make and python3${error ? `; ${error.message}` : ""}`,
  );
}
process.exit(status ?? 1);
