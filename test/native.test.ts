// The native tests, one by one: runs the program that test/support/processes/build-native.ts built, once, and
// reports every native test under its own name.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const program = fileURLToPath(new URL("../build/Release/shredway_native_test", import.meta.url));
const { status, stdout, stderr, error } = spawnSync(program, {
  encoding: "utf8",
  maxBuffer: 64 << 20,
});
const output = `${stdout}${stderr}${error?.message ?? ""}`;
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
