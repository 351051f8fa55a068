import { describe, expect, it } from "vitest";
import { checkDatabase, type DatabaseFact } from "../../../src/platform/doctor/database-checks.ts";

const healthy: DatabaseFact = {
  problems: [],
  version: 5,
  newest: 5,
  node: "fra",
  isNameTaken: false,
  differences: [],
  clockProblem: null,
  unusableKeys: [],
};

function levels(changes: Partial<DatabaseFact>, isServiceHere = false): string[] {
  return checkDatabase({ ...healthy, ...changes }, isServiceHere).map(
    ({ check, level }) => `${check} ${level}`,
  );
}

describe("checkDatabase", () => {
  it.each<[string, Partial<DatabaseFact>, boolean, string[]]>([
    [
      "a usable database",
      {},
      false,
      ["database ok", "node-name ok", "nodes ok", "database-clock ok"],
    ],
    [
      "a schema to migrate",
      { version: 4 },
      false,
      ["database ok", "node-name ok", "nodes ok", "database-clock ok"],
    ],
    [
      "a refused start",
      { problems: [{ text: "newer", remedy: "install" }] },
      false,
      ["database fail"],
    ],
    [
      "a name in use elsewhere",
      { isNameTaken: true },
      false,
      ["database ok", "node-name fail", "nodes ok", "database-clock ok"],
    ],
    [
      "a name in use here",
      { isNameTaken: true },
      true,
      ["database ok", "node-name ok", "nodes ok", "database-clock ok"],
    ],
    [
      "a wrong clock",
      { clockProblem: "the clock is 300 s ahead" },
      false,
      ["database ok", "node-name ok", "nodes ok", "database-clock warn"],
    ],
    [
      "differences",
      {
        differences: [
          { text: "tiers", isGrave: true },
          { text: "hours", isGrave: false },
        ],
      },
      false,
      ["database ok", "node-name ok", "nodes fail", "nodes warn", "database-clock ok"],
    ],
  ])("grades %s", (_, changes, isServiceHere, expected) => {
    expect(levels(changes, isServiceHere)).toEqual(expected);
  });

  it("gives each problem a remedy and a way to verify it", () => {
    const [finding] = checkDatabase({ ...healthy, isNameTaken: true }, false).slice(1);
    expect(finding?.remedy).toContain("set data.node");
    expect(finding?.measure).toBe("shredway doctor");
  });
});
