// Before any test: builds the addon and the native tests from the sources as they are, with the
// toolchain and objects of `npm ci` (node-gyp). Once, so that no test meets a half-written file.

import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const nodeGyp = join(
  dirname(createRequire(import.meta.url).resolve("node-gyp/package.json")),
  "bin/node-gyp.js",
);

export default function buildNative(): void {
  for (const step of [
    ["configure", "--", "-Dnative_tests=1"],
    ["build", "-j", "max"],
  ]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [nodeGyp, ...step], {
      cwd: root,
      encoding: "utf8",
      maxBuffer: 64 << 20,
    });
    if (status !== 0) throw new Error(`node-gyp ${step.join(" ")} failed:\n${stdout}${stderr}`);
  }
}
