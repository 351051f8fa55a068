// Builds the addon once before all tests, so that no test sees an incomplete file. After `npm ci` there
// is nothing to do.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../../../native/build.mjs", import.meta.url));

async function build(...targets: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [program, ...targets], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  }
  const [status]: unknown[] = await once(child, "close");
  if (status !== 0) throw new Error(`${[program, ...targets].join(" ")} failed:\n${output}`);
}

export default (): Promise<void> => build();

/** Builds the native tests beside the running tests. It does not change the addon. */
export const buildNativeTests = (): Promise<void> => build("native_tests");
