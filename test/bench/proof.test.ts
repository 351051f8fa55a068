// The page of evidence: it follows from the stored results, and a result that does not show the claim is refused.

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { proofDocument } from "../../bench/proof/document.ts";
import { proofEntries } from "../../bench/proof/entries.ts";
import { landOutcome, readResults, testsOutcome } from "../../bench/proof/results.ts";
import { readStoredReport } from "../../bench/report/stored-report.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const example = {
  table: { title: "Senders", columns: ["sender", "sent"], rows: [["near", "60"]] },
  sentences: ["near landed 60 of 60."],
};

describe("docs/proof.md", () => {
  it("is made from the stored results", () => {
    const page = readFileSync(`${root}/docs/proof.md`, "utf8");
    expect(page).toBe(proofDocument(readStoredReport(), readResults()));
  });

  it("has stored results of every entry whose command runs on any machine", () => {
    const wanted = proofEntries.filter(({ kind }) => kind !== "benchmark").map(({ name }) => name);
    expect(Object.keys(readResults()).toSorted()).toEqual(wanted.toSorted());
  });

  it("names test files that exist", () => {
    const files = proofEntries.flatMap(({ command }) => command.match(/\btest\/\S+/g) ?? []);
    expect(files.length).toBeGreaterThan(5);
    expect(files.filter((file) => !existsSync(`${root}/${file}`))).toEqual([]);
  });

  it("shows the result, its time and its machine, or that it is missing", () => {
    const result = {
      takenAt: "2026-01-02T03:04:05.000Z",
      commit: "0123456789ab",
      machine: "4 CPUs",
      seconds: 754,
      ...example,
    };
    const page = proofDocument({ runs: [], sections: [] }, { landing: result });
    for (const text of [
      "| Landing of transactions | 13 min |",
      "| near | 60 |",
      "```\nnear landed 60 of 60.\n```",
      "Taken on 2026-01-02, commit 0123456789ab. Machine: 4 CPUs.",
    ])
      expect(page).toContain(text);
    expect(page.split("There is no stored result yet").length - 1).toBe(proofEntries.length - 1);
  });
});

describe("results", () => {
  const reportOf = (...statuses: string[]) =>
    JSON.stringify({
      testResults: [
        {
          name: "/project/test/a.test.ts",
          assertionResults: statuses.map((status) => ({
            fullName: "a test",
            status,
            duration: 1234,
          })),
        },
      ],
    });

  it("of tests are their names and durations", () => {
    expect(testsOutcome(reportOf("passed")).table.rows).toEqual([
      ["a test (`test/a.test.ts`)", "1.23"],
    ]);
  });

  it("of tests are refused if one failed or was skipped, and without any test", () => {
    expect(() => testsOutcome(reportOf("passed", "failed"))).toThrow("got failed: a test");
    expect(() => testsOutcome(reportOf("pending"))).toThrow("got pending: a test");
    expect(() => testsOutcome(reportOf())).toThrow("expected tests, got none");
  });

  it("of a landing benchmark are those of its last line", () => {
    const estimate = { value: 60_300_000, interval: { low: 47_400_000, high: 104_000_000 } };
    const report = {
      final: true,
      verdict: ["near landed 60 of 60."],
      senders: [
        {
          name: "near",
          sent: 60,
          landed: 60,
          landedShare: { value: 1, interval: { low: 0.94, high: 1 } },
          timeNs: { p50: estimate, p90: { value: null, interval: null } },
        },
      ],
    };
    const output = `${JSON.stringify({ final: false })}\n${JSON.stringify(report)}\n`;
    expect(landOutcome(output)).toMatchObject({
      table: {
        rows: [["near", "60", "60", "100 % (94.0 % to 100 %)", "60.3 (47.4 to 104)", "–"]],
      },
      sentences: ["near landed 60 of 60."],
    });
    expect(() => landOutcome(JSON.stringify({ ...report, final: false }))).toThrow("final report");
  });
});
