// Supported versions of Node.js; package.json (`engines`) is the only source.
//
// Used by the command line, the doctor and the web server's loader. `npm start` runs this file as a
// program before it compiles anything: on an unsupported version it writes one line to standard
// error and exits with code 1. Plain JavaScript without dependencies, because it must run without
// node_modules and without the compiler. The build copies it to dist/ unchanged.

import { readFileSync, realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** @returns {string} */
function enginesOfPackage() {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return JSON.parse(text).engines.node;
}

/**
 * @param {string} range "^20.19.0 || ^22.12.0"; only this form is understood
 * @returns {number[][]} [major, least minor, least patch] for each release line
 */
function releaseLines(range) {
  return range.split("||").map((part) => {
    const found = /^\^(\d+)\.(\d+)\.(\d+)$/.exec(part.trim());
    if (!found) {
      throw new Error(
        `package.json: engines.node: expected a range such as "^20.19.0 || ^22.12.0", got "${range}"`,
      );
    }
    return found.slice(1).map(Number);
  });
}

/**
 * The supported versions as text: "Node 20 (from 20.19), Node 22 (from 22.12) or Node 24".
 *
 * @param {string} [range] default: that of package.json
 */
export function supportedNode(range = enginesOfPackage()) {
  const lines = releaseLines(range).map(([major, minor, patch]) =>
    minor || patch
      ? `Node ${major} (from ${major}.${minor}${patch ? `.${patch}` : ""})`
      : `Node ${major}`,
  );
  return [lines.slice(0, -1).join(", "), lines.at(-1)].filter(Boolean).join(" or ");
}

/**
 * The error text for an unsupported version of Node, in one line with the remedy; null if it is
 * supported.
 *
 * @param {string} [version] "22.14.0"; default: the running version
 * @param {string} [range] default: that of package.json
 * @returns {string | null}
 */
export function nodeVersionError(version = process.versions.node, range = enginesOfPackage()) {
  const [major = 0, minor = 0, patch = 0] = version
    .split(".")
    .map((part) => Number.parseInt(part, 10));
  const isSupported = releaseLines(range).some(
    ([line, leastMinor = 0, leastPatch = 0]) =>
      line === major && (minor > leastMinor || (minor === leastMinor && patch >= leastPatch)),
  );
  if (isSupported) return null;
  return (
    `unsupported Node.js version ${version}: expected ${supportedNode(range)}; ` +
    "install one of these, then run npm ci"
  );
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const wrong = nodeVersionError();
  if (wrong !== null) {
    process.stderr.write(`shredway: ${wrong}\n`);
    process.exitCode = 1;
  }
}
