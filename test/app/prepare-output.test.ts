import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { root } from "../support/processes/compiled-source.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const script = "src/app/prepare-output.mjs";
/** Compiled files of `src/tool.ts` and of the script itself. */
const compiled = ["dist/tool.js", "dist/tool.d.ts", "dist/app/prepare-output.mjs"];
const types = "dist/app/prepare-output.d.mts";
const lastRun = "dist/.tsbuildinfo";

/** Runs the script in a project that also has these files. */
function prepare(files: readonly string[]): string {
  const folder = temporaryFolder();
  for (const name of ["src/tool.ts", ...files]) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), "");
  }
  cpSync(join(root, script), join(folder, script));
  execFileSync(process.execPath, [join(folder, script)]);
  return folder;
}

describe("prepare-output", () => {
  test("removes compiled files without a source, and folders that are empty then", () => {
    const folder = prepare([...compiled, types, lastRun, "dist/old/program.js", "dist/gone.d.ts"]);
    expect(existsSync(join(folder, "dist/old"))).toBe(false);
    expect(existsSync(join(folder, "dist/gone.d.ts"))).toBe(false);
    for (const name of [...compiled, types, lastRun])
      expect([name, existsSync(join(folder, name))]).toEqual([name, true]);
  });

  test.each(["dist/tool.js", "dist/tool.d.ts", types])(
    "lets the compiler write everything if %s is missing",
    (missing) => {
      const present = [...compiled, types].filter((name) => name !== missing);
      const folder = prepare([...present, lastRun]);
      expect(existsSync(join(folder, lastRun))).toBe(false);
      for (const name of present) expect(existsSync(join(folder, name))).toBe(true);
    },
  );

  test("leaves the portal's files", () => {
    const page = "dist/platform/portal/page/app-1.js";
    const folder = prepare([...compiled, types, lastRun, page]);
    expect(existsSync(join(folder, page))).toBe(true);
    expect(existsSync(join(folder, lastRun))).toBe(true);
  });

  test("does nothing before the first compilation", () => {
    expect(existsSync(join(prepare([]), "dist"))).toBe(false);
  });
});
