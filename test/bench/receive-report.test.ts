import { describe, expect, it } from "vitest";
import { parseLine } from "../../bench/report/lines.ts";
import { receiveSection } from "../../bench/sections/receive-section.ts";

const line = (way: string, round: number, ns: number) =>
  parseLine(
    JSON.stringify({
      kind: "receive",
      way,
      burst: 8,
      round,
      cpu_ns: ns * 100,
      datagrams: 100,
      lost: 1,
    }),
  );
const lines = [1, 2, 3].flatMap((round) => [
  line("dropped", round, 1000 + round),
  line("socket", round, 3000 + round),
  line("xdp", round, 2000 + round),
]);

describe("ways in, in the report", () => {
  it("compares AF_XDP with sockets without the part of the sender", () => {
    const section = receiveSection(lines);
    expect(section.tables[0]?.rows).toEqual([["8", "1,002", "3,002", "–", "–", "2,002", "0.500"]]);
    expect(section.findings).toMatchObject([{ verdict: "met", value: { median: 0.5 } }]);
    expect(section.notes.at(-1)).toContain("did not arrive: 9.");
  });

  it("reports what was skipped", () => {
    const skipped = parseLine(
      JSON.stringify({ kind: "transmit_skipped", what: "everything", why: "no namespace" }),
    );
    expect(receiveSection([skipped])).toMatchObject({ tables: [], findings: [] });
    expect(receiveSection([skipped]).notes[0]).toBe("Skipped: everything (no namespace).");
  });
});
