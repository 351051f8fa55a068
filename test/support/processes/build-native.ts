// Builds the addon and the native tests once before all tests, so that no test sees an incomplete
// file.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

export default function buildNative(): void {
  const program = fileURLToPath(new URL("../../../native/build.mjs", import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, "native_tests"], {
    encoding: "utf8",
    maxBuffer: 64 << 20,
  });
  if (status !== 0) throw new Error(`${program} native_tests failed:\n${stdout}${stderr}`);
}
