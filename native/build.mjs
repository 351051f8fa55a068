#!/usr/bin/env node
// Builds what binding.gyp describes, with no other downloads than npm's.
//
//   node native/build.mjs                   the package's install step: keeps the addon that was built
//                                           from these very sources, else takes the prebuild that
//                                           fits, else builds
//   node native/build.mjs VARIABLE…         the addon and the programs of these gyp variables
//                                           (native_tests, native_bench)
//   node native/build.mjs --prebuild        prebuilds/ for this platform, for a release
//   native/build.mjs rebuild …              what prebuildify asks of its node-gyp: that would throw away
//                                           all objects first, here make keeps those that still hold
//
// node-gyp would fetch Node's headers from the network; those that came with this Node are the right
// ones and need none, so they are named when they are there and nobody named others. Beside every
// result lies the hash of the sources that it was made from: an update must never run new TypeScript
// on an old addon.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL("..", import.meta.url));
const markers = {
  built: join(root, "build/Release/sources.sha256"),
  prebuilt: join(root, "prebuilds/sources.sha256"),
};

function programOf(packageName, file) {
  return join(dirname(require.resolve(`${packageName}/package.json`)), file);
}

/** Hash over names and contents of everything that goes into the addon. */
function sourcesHash() {
  const folders = [
    "addon",
    "clone",
    "crypto",
    "deshred",
    "net",
    "relay",
    "shred",
    "system",
    "transaction",
    "verify",
  ].map((name) => join(root, "native", name));
  const files = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  const hash = createHash("sha256");
  for (const file of [join(root, "binding.gyp"), ...files.toSorted((a, b) => (a < b ? -1 : 1))]) {
    hash
      .update(`${file.slice(root.length)}\0`)
      .update(readFileSync(file))
      .update("\0");
  }
  return hash.digest("hex");
}

function isStale(marker) {
  return existsSync(marker) && readFileSync(marker, "utf8") !== sourcesHash();
}

function mark(marker) {
  if (existsSync(dirname(marker))) writeFileSync(marker, sourcesHash());
}

// node-gyp compiles one file after the other unless it is told.
const env = { JOBS: "max", ...process.env };
const prefix = dirname(dirname(process.execPath));
if (!env.npm_config_nodedir && existsSync(join(prefix, "include/node/node_api.h"))) {
  env.npm_config_nodedir = prefix;
}

/** Runs a Node program; ends this one when it fails. */
function run(program, ...parameters) {
  const { status, error } = spawnSync(process.execPath, [program, ...parameters], {
    stdio: "inherit",
    env,
    cwd: root,
  });
  if (status === 0) return;
  console.error(
    "shredway: the native part could not be built: expected a C++20 compiler (g++ 12 or clang 16 " +
      `and newer), make and python3${error ? `; ${error.message}` : ""}`,
  );
  process.exit(status ?? 1);
}

const nodeGyp = programOf("node-gyp", "bin/node-gyp.js");
const words = process.argv.slice(2);
if (words.includes("--prebuild")) {
  const self = fileURLToPath(import.meta.url);
  run(programOf("prebuildify", "bin.js"), "--napi", "--strip", "--tag-libc", "--node-gyp", self);
  mark(markers.prebuilt);
} else if (words[0] === "rebuild") {
  run(nodeGyp, "configure", "build", ...words.slice(1));
} else if (words.length > 0) {
  run(nodeGyp, "configure", "--", ...words.map((name) => `-D${name}=1`));
  run(nodeGyp, "build");
  mark(markers.built);
} else {
  if (isStale(markers.built) || (!existsSync(markers.built) && isStale(markers.prebuilt))) {
    env.npm_config_build_from_source = "true";
  }
  run(programOf("node-gyp-build", "bin.js"));
  mark(markers.built);
}
