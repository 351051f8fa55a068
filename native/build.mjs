// Builds what binding.gyp describes, with no other downloads than npm's.
//
//   node native/build.mjs                  the package's install step: takes the prebuild that fits,
//                                          else builds the addon
//   node native/build.mjs native_tests     the addon and the programs of these gyp variables
//
// node-gyp would fetch Node's headers from the network; those that came with this Node are the right
// ones and need none, so they are named when they are there and nobody named others.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const prefix = dirname(dirname(process.execPath));
const env = { ...process.env };
if (!env.npm_config_nodedir && existsSync(join(prefix, "include/node/node_api.h"))) {
  env.npm_config_nodedir = prefix;
}

function programOf(packageName, file) {
  return join(dirname(require.resolve(`${packageName}/package.json`)), file);
}

function buildSteps() {
  const nodeGyp = programOf("node-gyp", "bin/node-gyp.js");
  return [
    [nodeGyp, "configure", "--", ...variables.map((name) => `-D${name}=1`)],
    [nodeGyp, "build", "-j", "max"],
  ];
}

const variables = process.argv.slice(2);
const commands = variables.length === 0 ? [[programOf("node-gyp-build", "bin.js")]] : buildSteps();
const cwd = fileURLToPath(new URL("..", import.meta.url));
for (const command of commands) {
  const { status, error } = spawnSync(process.execPath, command, { stdio: "inherit", env, cwd });
  if (status === 0) continue;
  console.error(
    "shredway: the native part could not be built: expected a C++20 compiler (g++ 12 or clang 16 " +
      `and newer), make and python3${error ? `; ${error.message}` : ""}`,
  );
  process.exit(status ?? 1);
}
