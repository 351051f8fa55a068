// The soak test: its verdict on generated samples, and a few seconds of the real run.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { CallCounts } from "../../bench/soak/call-counts.ts";
import { Ledger } from "../../bench/soak/ledger.ts";
import { type SoakResult, soakTables, violations } from "../../bench/soak/report.ts";
import { longestSilence, trendOf } from "../../bench/soak/samples.ts";
import { ShredwayCallError } from "../../src/client/index.ts";
import { programWords } from "../support/processes/shredway.ts";

const mib = 1 << 20;
const seconds = 2000;
const numbers = Array.from({ length: seconds }, (_, i) => i);

function ledger(states: readonly string[]): Ledger {
  const made = new Ledger();
  made.add(states.map((_, i) => `signature ${i}`));
  for (const [i, state] of states.entries()) {
    if (state === "landed" || state === "expired") made.note(`signature ${i}`, { state });
    // Twice: the first answer may be earlier than the acknowledgement.
    if (state === "unknown") {
      made.note(`signature ${i}`, null);
      made.note(`signature ${i}`, null);
    }
  }
  return made;
}

function resultWith(changes: Partial<SoakResult> & { readonly growth?: number }): SoakResult {
  const { growth = 0, ...rest } = changes;
  return {
    seconds,
    // Memory of a start that is over after a quarter of the run, then a trend.
    processSamples: numbers.map((at) => ({
      seconds: at,
      rssBytes: (100 + Math.min(at, 500) / 4) * mib + at * growth,
      threads: 12,
      descriptors: 40 + (at % 3),
      heapBytes: 50 * mib,
    })),
    feedSamples: numbers.map((at) => ({
      seconds: at,
      sent: at * 10,
      received: new Map([["tier-1", at * 10]]),
      fault: "none",
    })),
    feeds: [{ name: "tier-1", sent: 100, received: 100, duplicates: 0, kernelDrops: 0 }],
    verdicts: new Map(),
    calls: new Map(),
    sockets: new Map(),
    ledgers: new Map([["transactions", ledger(["landed", "expired"])]]),
    faults: new Map(),
    leftOut: [],
    unexpectedExit: null,
    exit: 0,
    ...rest,
  };
}

describe("the verdict of a soak test", () => {
  it("fits a line through the last three quarters", () => {
    const trend = trendOf(numbers.map((at) => ({ seconds: at, value: at < 200 ? 0 : 5 + 2 * at })));
    expect(trend).toMatchObject({ first: 0, last: 4003, max: 4003, count: 1500 });
    expect(trend.rise).toBeCloseTo(2 * (1999 - 1999 / 4), 6);
  });

  it("accepts memory that is flat after the start, and refuses growth", () => {
    expect(violations(resultWith({}))).toEqual([]);
    const [found = "", ...more] = violations(resultWith({ growth: 0.05 * mib }));
    expect(more).toEqual([]);
    expect(found).toMatch(/^resident memory is not flat: it rises by 7\d\.\d MiB/);
  });

  it("does not judge memory in a short run", () => {
    const short = resultWith({ growth: mib, seconds: 60 });
    expect(violations(short)).toEqual([]);
    expect(soakTables(short)[0]?.rows[0]?.at(-1)).toBe("run too short");
  });

  it("refuses a gap of the feed, unless the kernel dropped it", () => {
    const feed = { name: "tier-1", sent: 100, received: 98, duplicates: 0, kernelDrops: 0 };
    expect(violations(resultWith({ feeds: [feed] }))).toEqual([
      "destination tier-1 misses 2 of 100 shreds",
    ]);
    expect(violations(resultWith({ feeds: [{ ...feed, kernelDrops: 2 }] }))).toEqual([]);
    expect(violations(resultWith({ feeds: [{ ...feed, received: 101, duplicates: 3 }] }))).toEqual([
      "destination tier-1 got 1 shreds that no source sent",
      "destination tier-1 got 3 shreds twice",
    ]);
  });

  it("refuses an interruption of the feed, and names the fault", () => {
    const feedSamples = numbers.map((at) => ({
      seconds: at,
      sent: at * 10,
      received: new Map([["tier-1", (at >= 500 && at < 505 ? 499 : at) * 10]]),
      fault: at >= 490 && at < 510 ? "disk full" : "none",
    }));
    expect(longestSilence(feedSamples, "tier-1")).toEqual({ seconds: 5, fault: "disk full" });
    expect(violations(resultWith({ feedSamples }))).toEqual([
      "the feed of tier-1 was interrupted for 5.00 s (fault: disk full)",
    ]);
  });

  it("refuses acknowledged submissions that are unknown or have no end", () => {
    const ledgers = new Map([["transactions", ledger(["landed", "open", "unknown"])]]);
    expect(violations(resultWith({ ledgers }))).toEqual([
      "1 acknowledged transactions are unknown: signature 2 …",
      "2 acknowledged transactions have no end: signature 1 …",
    ]);
  });

  it("refuses an end of the service", () => {
    expect(violations(resultWith({ unexpectedExit: "SIGSEGV", exit: "SIGSEGV" }))).toEqual([
      "the service ended during the run with SIGSEGV",
    ]);
    expect(violations(resultWith({ exit: 1 }))).toEqual([
      "the service ended with 1 after SIGTERM; expected 0",
    ]);
  });
});

describe("the report of a soak test", () => {
  it("shows the last message of each reason", async () => {
    const counts = new CallCounts();
    for (const message of ["all routes are down", "two routes are down"]) {
      const failing = () => Promise.reject(new ShredwayCallError(message, { reason: "no_route" }));
      expect(await counts.run("sendIdeal", failing)).toBeUndefined();
    }
    const tables = soakTables(resultWith({ calls: counts.kinds }));
    const { rows } = tables.find(({ title }) => title === "Last message of each reason") ?? {};
    expect(rows).toEqual([
      ["sendIdeal", "no_route", expect.stringContaining("two routes are down")],
    ]);
  });
});

const runFile = fileURLToPath(new URL("../../bench/soak/run.ts", import.meta.url));
const [program = ""] = programWords;

describe.skipIf(programWords.length > 1)("npm run soak", () => {
  it("runs a few seconds of the real service under load and faults", () => {
    const words = ["--minutes", "0.05", "--fault-ms", "300", "--program", program];
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", "tsx", runFile, ...words],
      { encoding: "utf8" },
    );
    expect(`${stdout}\n${stderr}`).toContain("Result: passed");
    expect(status).toBe(0);
    for (const title of ["Process of the service", "Feed at the destinations", "Calls", "Faults"]) {
      expect(stdout).toContain(title);
    }
  }, 300_000);

  it("refuses a wrong option with its usage", () => {
    const { status, stderr } = spawnSync(
      process.execPath,
      ["--import", "tsx", runFile, "--minutes", "0"],
      { encoding: "utf8" },
    );
    expect(stderr).toContain("--minutes: expected a number above 0, got 0");
    expect(status).toBe(1);
  });
});
