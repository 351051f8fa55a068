// docs/gateway.md lists exactly the methods and reasons of the gateway.

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { errorTable, type Reason, reasons } from "../../../../src/core/errors.ts";
import { readMethodNames } from "../../../../src/gateway/endpoints/read-methods.ts";
import { methods } from "../../../../src/gateway/methods/method-table.ts";

function pathOf(relative: string): string {
  return fileURLToPath(new URL(`../../../../${relative}`, import.meta.url));
}

const text = readFileSync(pathOf("docs/gateway.md"), "utf8");

function rowsOf(heading: string): Map<string, string[]> {
  const section = text.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const rows = [...section.matchAll(/^\| `(\w+)` \| (.*) \|$/gm)];
  return new Map(rows.map(([, name = "", cells = ""]) => [name, cells.split(" | ")]));
}

/** Reasons that the gateway's files throw. */
function thrownReasons(): Set<string> {
  const folders = ["accounts", "endpoints", "methods", "schema"].map(
    (name) => `src/gateway/${name}`,
  );
  const sources = folders.flatMap((folder) =>
    readdirSync(pathOf(folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => `${folder}/${name}`),
  );
  const words = sources.flatMap((path) => [
    ...readFileSync(pathOf(path), "utf8").matchAll(/(?:ShredwayError|refusalAnswer)\(\s*"(\w+)"/g),
  ]);
  return new Set(words.map(([, word = ""]) => word));
}

describe("docs/gateway.md", () => {
  const listed = (from: string) =>
    (text.match(new RegExp(`^${from}: ([^.]*)\\.`, "m"))?.[1] ?? "").split(", ").toSorted();

  it("lists every method", () => {
    expect(listed("Methods")).toEqual(Object.keys(methods).toSorted());
    for (const name of Object.keys(methods)) expect(text).toContain(`\n| ${name} | `);
  });

  it("lists every forwarded read method", () => {
    const passage = /^Passed on to the node[^;]*/m.exec(text)?.[0] ?? "";
    const named = [...passage.matchAll(/`(get\w+|is\w+|simulate\w+)`/g)].map(([, name]) => name);
    expect(named).toEqual([...readMethodNames]);
  });

  it("lists every reason with its code", () => {
    const rows = rowsOf("Errors");
    for (const [name, [code]] of rows) {
      const reason = reasons.find((each): each is Reason => each === name);
      expect(reason, name).toBeDefined();
      if (reason) expect(code, name).toBe(String(errorTable[reason].jsonRpcCode));
    }
    for (const name of thrownReasons()) expect([...rows.keys()]).toContain(name);
  });
});
