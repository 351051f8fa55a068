// Times of an attempt in the timeline: another process or thread may send it while the offers still go on.

import { expect, it, vi } from "vitest";
import { Harness } from "./harness.ts";

it("is queued at its offer, before it is sent by another process meanwhile", async () => {
  const harness = new Harness();
  const facts = harness.facts();
  const offeredNs = harness.clock.nowNs();
  harness.answer = () => {
    vi.spyOn(harness.clock, "nowNs").mockReturnValue(offeredNs + 10_000_000n);
  };
  await harness.submit(facts);
  harness.outbound[0]?.report({ kind: "sent", atNs: offeredNs + 1n, bytes: 200 });
  const [status] = await harness.pipeline.statuses("ann", [facts.signature]);
  const times = (status?.events ?? []).map(({ kind, atNs }) => [kind, atNs - offeredNs]);
  expect(times).toEqual([
    ["received", 0n],
    ["queued", 0n],
    ["sent", 1n],
  ]);
});
