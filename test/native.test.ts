// The native tests, one by one: builds their program, runs it once, and reports every native test under
// its own name.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { buildNativeTests } from "./support/processes/build-native.ts";

const program = fileURLToPath(new URL("../build/Release/shredway_native_test", import.meta.url));

interface Run {
  readonly status: number | string;
  readonly output: string;
}

function run(): Promise<Run> {
  return new Promise((resolve) => {
    execFile(program, { maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      const status = error ? (error.code ?? error.signal ?? "unknown") : 0;
      resolve({ status, output: `${stdout}${stderr}${error?.message ?? ""}` });
    });
  });
}

if (!process.env["SHREDWAY_PREBUILD"]) await buildNativeTests();
const { status, output } = await run();
const results = Array.from(
  output.matchAll(/^(ok|FAILED|skipped) +([a-z0-9_]+)(.*)$/gm),
  ([, result, name, rest]) => ({ result, name: name ?? "", rest: (rest ?? "").replace(/^: /, "") }),
);

describe("native", () => {
  it.for(results)("$name", ({ result, rest }, { skip }) => {
    skip(result === "skipped", rest);
    expect(result, output).toBe("ok");
  });

  it("ran to its end", () => {
    expect(status, output).toBe(0);
    expect(results.length).toBeGreaterThan(50);
  });
});
