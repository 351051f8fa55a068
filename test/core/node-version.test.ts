// Supported versions of Node.js: package.json and the messages for users.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodeVersionError, supportedNode } from "../../src/core/node-version.mjs";
import { onNode } from "../support/processes/other-node.ts";
import { programWords } from "../support/processes/shredway.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const words = "Node 20 (from 20.19), Node 22 (from 22.12), Node 24 or Node 26";
const remedy = `expected ${words}; install one of these, then run npm ci`;

function run(version: string, program: readonly string[]) {
  return spawnSync(process.execPath, program, {
    cwd: root,
    encoding: "utf8",
    timeout: 30_000,
    env: onNode(version),
  });
}

describe("supported versions of Node.js", () => {
  it("are those of package.json", () => {
    expect(supportedNode()).toBe(words);
    expect(nodeVersionError()).toBeNull();
    expect(supportedNode("^24.1.2")).toBe("Node 24 (from 24.1.2)");
  });

  it.each(["README.md", "docs/first-hour.md", "docs/operations.md"])("are named by %s", (path) => {
    expect(readFileSync(join(root, path), "utf8")).toContain(supportedNode());
  });

  it.each(["20.19.0", "20.20.2", "22.12.0", "22.23.3", "24.0.0", "26.10.0"])(
    "include %s",
    (version) => {
      expect(nodeVersionError(version)).toBeNull();
    },
  );

  it.each(["18.20.4", "20.18.3", "21.7.3", "22.11.0", "23.11.0", "25.9.0", "27.0.0"])(
    "exclude %s, with a message that has the running and the supported versions",
    (version) => {
      expect(nodeVersionError(version)).toBe(`unsupported Node.js version ${version}: ${remedy}`);
    },
  );

  it("begin with the lowest version of each line and end with the line", () => {
    const number = fc.integer({ min: 0, max: 40 });
    const three = fc.tuple(number, number, number);
    fc.assert(
      fc.property(three, number, number, ([line, minor, patch], major, other) => {
        const range = `^${line}.${minor}.${patch}`;
        const isIn = major === line && other >= minor;
        expect(nodeVersionError(`${major}.${other}.${patch}`, range) === null).toBe(isIn);
        if (patch > 0) {
          const before = `${line}.${minor}.${patch - 1}`;
          expect(nodeVersionError(before, range)).toContain(`version ${before}: expected Node`);
        }
      }),
    );
  });

  it("are rejected in any form other than a list of release lines", () => {
    expect(() => supportedNode(">=20")).toThrow(
      'engines.node: expected a range such as "^20.19.0 || ^22.12.0"',
    );
  });
});

describe("on an unsupported version", () => {
  const line = `shredway: unsupported Node.js version 25.9.0: ${remedy}\n`;

  it.each([
    ["npm start, before it compiles", ["src/core/node-version.mjs"]],
    ["shredway start", [...programWords, "start", "--data", "/nonexistent/data"]],
    ["shredway start --config", [...programWords, "start", "--config", "/nonexistent.yaml"]],
  ])("%s reports this in one line and ends with exit code 1", (_, program) => {
    const { status, stdout, stderr } = run("25.9.0", program);
    expect({ status, stdout, stderr }).toEqual({ status: 1, stdout: "", stderr: line });
  });

  it("shredway --version still answers", () => {
    const { version }: { version: string } = JSON.parse(
      readFileSync(join(root, "package.json"), "utf8"),
    );
    const { status, stdout } = run("25.9.0", [...programWords, "--version"]);
    expect([status, stdout]).toEqual([0, `${version}\n`]);
  });
});
