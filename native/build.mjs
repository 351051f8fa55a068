#!/usr/bin/env node
// Builds the targets of binding.gyp, without downloads other than npm's.
//
//   node native/build.mjs                   the package's install step: keeps an addon that was built
//                                           from these sources; otherwise uses a matching prebuild;
//                                           otherwise builds
//   node native/build.mjs VARIABLE…         builds the addon and the programs of these gyp variables
//                                           (native_tests, native_bench)
//   node native/build.mjs --prebuild [--arch arm64]
//                                           builds prebuilds/ for this processor or for another one
//                                           with Debian's cross compiler, for a release
//   native/build.mjs rebuild …              called by prebuildify instead of node-gyp, which would delete
//                                           all objects first; here make reuses current objects
//
// node-gyp would download Node's headers. The headers that came with this Node.js are used instead, if
// they exist and no others are configured. The hash of the sources is stored beside every result: an
// update must never run new TypeScript on an old addon.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { coreFolders } from "./core-folders.mjs";

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL("..", import.meta.url));
const builtMarker = join(root, "build/Release/sources.sha256");
const prebuiltMarker = (arch) => join(root, `prebuilds/linux-${arch}/sources.sha256`);
// Names of the cross compilers, by Node's name of the processor: Debian's g++-aarch64-linux-gnu.
const crossPrefixes = { arm64: "aarch64-linux-gnu-" };

function programOf(packageName, file) {
  return join(dirname(require.resolve(`${packageName}/package.json`)), file);
}

/** Hash over names and contents of all sources of the addon. */
function sourcesHash() {
  const folders = ["addon", ...coreFolders].map((name) => join(root, "native", name));
  const files = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
  const recipes = ["binding.gyp", "native/units.mjs"].map((name) => join(root, name));
  const hash = createHash("sha256");
  for (const file of [...recipes, ...files.toSorted((a, b) => (a < b ? -1 : 1))]) {
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

// node-gyp compiles one file after the other unless JOBS is set.
const env = { JOBS: "max", ...process.env };
const prefix = dirname(dirname(process.execPath));
if (!env.npm_config_nodedir && existsSync(join(prefix, "include/node/node_api.h"))) {
  env.npm_config_nodedir = prefix;
}

/** Runs a Node.js program in the current folder; exits if it fails. */
function run(program, ...parameters) {
  const { status, error } = spawnSync(process.execPath, [program, ...parameters], {
    stdio: "inherit",
    env,
  });
  if (status === 0) return;
  console.error(
    "shredway: native build failed: expected a C++20 compiler (g++ 12 or clang 16 and newer), make " +
      `and python3; install them and run npm install again${error ? `; ${error.message}` : ""}`,
  );
  process.exit(status ?? 1);
}

/**
 * Prepares a build for another processor. It gets a folder of its own with links to the sources,
 * because node-gyp always builds in build/, whose objects and addon are those of this processor.
 */
function enterCrossBuild(arch) {
  const crossPrefix = crossPrefixes[arch];
  if (!crossPrefix) {
    const known = [process.arch, ...Object.keys(crossPrefixes)].join(" or ");
    console.error(`shredway: cannot build for processor "${arch}": expected ${known}`);
    process.exit(1);
  }
  const tools = { CC: "gcc", CXX: "g++", AR: "ar", PREBUILD_STRIP_BIN: "strip" };
  for (const [name, tool] of Object.entries(tools)) env[name] = crossPrefix + tool;
  const folder = join(root, `build-addon-${arch}`);
  mkdirSync(folder, { recursive: true });
  for (const name of ["binding.gyp", "native", "node_modules", "package.json"]) {
    if (!existsSync(join(folder, name))) symlinkSync(join("..", name), join(folder, name));
  }
  process.chdir(folder);
}

function prebuild(arch) {
  if (arch !== process.arch) enterCrossBuild(arch);
  const self = fileURLToPath(import.meta.url);
  const options = ["--napi", "--strip", "--tag-libc", "--node-gyp", self, "--out", root];
  run(programOf("prebuildify", "bin.js"), ...options, "--arch", arch);
  mark(prebuiltMarker(arch));
}

/** Only for builds in the checkout: an installed package has no node-gyp of its own. */
const nodeGyp = () => programOf("node-gyp", "bin/node-gyp.js");
const words = process.argv.slice(2);
if (words[0] !== "rebuild") process.chdir(root); // prebuildify calls in the folder of the build
if (words.includes("--prebuild")) {
  prebuild(words.includes("--arch") ? words[words.indexOf("--arch") + 1] : process.arch);
} else if (words[0] === "rebuild") {
  run(nodeGyp(), "configure", "build", ...words.slice(1));
} else if (words.length > 0) {
  run(nodeGyp(), "configure", "--", ...words.map((name) => `-D${name}=1`));
  run(nodeGyp(), "build");
  mark(builtMarker);
} else {
  if (isStale(builtMarker) || (!existsSync(builtMarker) && isStale(prebuiltMarker(process.arch)))) {
    env.npm_config_build_from_source = "true";
  }
  run(programOf("node-gyp-build", "bin.js"));
  mark(builtMarker);
}
