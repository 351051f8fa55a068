// Output of `shredway stream` on a terminal: the live line below the transactions, and its values.

import { describe, expect, it } from "vitest";
import type { ShownTransaction } from "../../../src/tools/stream/stream-messages.ts";
import { StreamReport } from "../../../src/tools/stream/stream-report.ts";
import { Terminal } from "../../../src/tools/terminal/terminal.ts";

const secondNs = 1_000_000_000n;
const facts = { interruptions: { count: 1, totalMs: 2500 }, unreadable: 0 };

function reportOn(isTTY: boolean, json = false) {
  const written: string[] = [];
  const output = { write: (text: string) => written.push(text), isTTY, columns: 200 };
  const terminal = new Terminal({
    stdout: output,
    stderr: output,
    stopped: new AbortController().signal,
    self: "shredway",
    colours: false,
    movesCursor: true,
  });
  const report = new StreamReport({ dialect: "deshred", json, terminal, startedNs: 0n });
  return { report, written };
}

function transaction(delayNs: bigint): ShownTransaction {
  const createdAtNs = 10n * secondNs - delayNs;
  const place = { slot: 7n, batchIndex: 0n };
  return { kind: "transaction", ...place, signature: "5Tk", isVote: false, createdAtNs };
}

describe("StreamReport", () => {
  it("redraws the live line after each transaction, with the values of the last second", () => {
    const { report, written } = reportOn(true);
    report.add({ kind: "slot", slot: 7n, parent: 6n }, 10n * secondNs);
    report.add({ kind: "slot", slot: 10n, parent: 9n }, 10n * secondNs);
    report.add(transaction(400_000n), 10n * secondNs);
    report.tick(2n * secondNs, facts);
    const live =
      "0:02   0.5/s   delay p50 400 µs p99 400 µs   slot 10   interruptions 1 (2.5 s)   absent slots 2";
    expect(written.splice(0)).toEqual(["7  5Tk  400 µs\n", `\r${live}\u001b[K`]);
    // The clock of the server is ahead.
    report.add(transaction(-2_000_000n), 10n * secondNs);
    expect(written.splice(0)).toEqual(["\r\u001b[K", "7  5Tk  -2.00 ms\n", `\r${live}\u001b[K`]);
    report.tick(3n * secondNs, facts);
    expect(written.join("")).toContain("0:03   1.0/s   delay p50 -2.00 ms p99 -2.00 ms");
  });

  it("writes the live line as a line without a terminal, and not beside JSON", () => {
    const { report, written } = reportOn(false);
    report.tick(secondNs, { ...facts, unreadable: 3 });
    expect(written).toEqual([
      "0:01   0/s   delay -   slot -   interruptions 1 (2.5 s)   absent slots 0   unreadable messages 3\n",
    ]);
    const other = reportOn(false, true);
    other.report.tick(secondNs, facts);
    expect(other.written).toEqual([]);
  });
});
