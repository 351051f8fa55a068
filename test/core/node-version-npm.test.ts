// npm on supported and on other versions of Node.js.

import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { onNode } from "../support/processes/other-node.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

describe("npm ci", () => {
  /** Works in a copy, without installing anything. */
  function dryRun(version: string) {
    const folder = mkdtempSync(join(tmpdir(), "shredway-npm-"));
    try {
      for (const name of ["package.json", "package-lock.json", ".npmrc"]) {
        copyFileSync(join(root, name), join(folder, name));
      }
      const options = ["--dry-run", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"];
      return spawnSync("npm", ["ci", ...options], {
        cwd: folder,
        encoding: "utf8",
        timeout: 60_000,
        env: onNode(version),
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  it.each(["20.19.0", "22.12.0", "24.0.0", "26.0.0"])(
    "accepts every package for Node %s",
    (version) => {
      const { status, stderr } = dryRun(version);
      expect(stderr).not.toContain("EBADENGINE");
      expect(status).toBe(0);
    },
  );

  it.each(["18.20.4", "25.9.0", "27.0.0"])("names the required version on Node %s", (version) => {
    const { status, stderr } = dryRun(version);
    expect(status).toBe(1);
    expect(stderr).toContain("EBADENGINE");
    expect(stderr).toContain('Required: {"node":"^20.19.0 || ^22.12.0 || ^24.0.0 || ^26.0.0"}');
    expect(stderr).toContain(`"node":"v${version}"`);
  });
});
