// How long an attempt may wait in the queue of its route, on a pipeline.

import { expect, it } from "vitest";
import type { LeaderContext } from "../../../src/gateway/submission/types.ts";
import { Harness } from "./harness.ts";

const partner = { name: "alt", kind: "alt-partner", leaders: new Set(["A"]) } as const;
const other = { name: "swqos-1", leaders: null } as const;

/** Slots of 400 ms until the deadline of each attempt, in the order of the routes. */
async function slotsUntilDeadline(leaders: LeaderContext): Promise<number[]> {
  const harness = new Harness({}, { routes: [partner, other] });
  harness.leaders = leaders;
  const beganNs = harness.clock.nowNs();
  await harness.submit(harness.facts());
  return harness.outbound.map(({ deadlineNs }) => Number(deadlineNs - beganNs) / 400e6);
}

it("ends with the partner's window, and with the blockhash elsewhere", async () => {
  expect(await slotsUntilDeadline({ slot: 4n, current: "A", next: "B" })).toEqual([4, 150]);
  expect(await slotsUntilDeadline({ slot: 7n, current: "A", next: "B" })).toEqual([1, 150]);
  // The partner leads from the next slot on.
  expect(await slotsUntilDeadline({ slot: 7n, current: "B", next: "A" })).toEqual([5, 150]);
});

it("lets sendAlt use the other routes as soon as it passed", async () => {
  const harness = new Harness({}, { routes: [partner, other] });
  const request = harness.request(harness.facts(), { enableFallback: true });
  void harness.pipeline.submit({ ...request, method: "sendAlt" });
  await harness.clock.advance(100);
  const [attempt] = harness.outbound;
  harness.leaders = { slot: 8n, current: "B", next: "C" };
  attempt?.report({ kind: "dropped", atNs: harness.clock.nowNs(), reason: "deadline_passed" });
  await harness.clock.advance(50);
  expect(harness.routesUsed).toEqual(["alt", "swqos-1"]);
});
