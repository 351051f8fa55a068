import { expect, it } from "vitest";
import { ProofRetries, storeRetryMs } from "../../../src/shreds/destinations/proof-retries.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

function opened() {
  const clock = new ManualClock();
  const lines: string[] = [];
  const log = { warn: (line: unknown) => void lines.push(String(line)) };
  const retries = new ProofRetries({ clock, log });
  const called: string[] = [];
  const fail = (address: string, name = address): void =>
    retries.failed(address, new Error("no space"), () => called.push(name));
  return { clock, lines, retries, called, fail };
}

it("calls one retry for each address, however often its proof fails, and logs each failure", async () => {
  const { clock, lines, called, fail } = opened();
  for (let i = 0; i < 100; i++) fail("1.2.3.4:5", `first ${i}`);
  fail("1.2.3.4:6");
  expect(clock.pending).toBe(2);
  await clock.advance(storeRetryMs);
  expect(called).toEqual(["first 0", "1.2.3.4:6"]);
  expect(lines).toHaveLength(101);
  expect(lines[0]).toBe("destinations: the proof of 1.2.3.4:5 could not be stored: no space");
  fail("1.2.3.4:5", "again");
  await clock.advance(storeRetryMs);
  expect(called.at(-1)).toBe("again");
});

it("leaves no timer when it is closed, and starts none afterwards", () => {
  const { clock, retries, fail } = opened();
  fail("1.2.3.4:5");
  retries.close();
  fail("1.2.3.4:5");
  expect(clock.pending).toBe(0);
});
