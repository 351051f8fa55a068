// Compiles the program before all tests, for the tests that run it as a child process. TypeScript's
// own loader would transform everything again at each of several hundred starts.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export default function buildProgram(): void {
  const root = fileURLToPath(new URL("../../..", import.meta.url));
  const { status, stdout, stderr } = spawnSync("npm", ["run", "--silent", "compile"], {
    cwd: root,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`npm run compile failed:\n${stdout}${stderr}`);
  process.env["SHREDWAY_TEST_PROGRAM"] = `${root}dist/tools/shredway.js`; // the workers inherit it
}
