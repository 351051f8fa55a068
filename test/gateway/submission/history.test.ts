// Timelines of an account's transactions.

import { expect, it } from "vitest";
import { Harness } from "./harness.ts";

it("timelines list events in the order of their times, with the end last", async () => {
  const harness = new Harness();
  const facts = harness.facts();
  await harness.submit(facts);
  const sentNs = harness.clock.nowNs();
  await harness.clock.advance(200);
  harness.observe(facts, 5n);
  const [outbound] = harness.outbound;
  // The report of a route in another process is late.
  outbound?.report({ kind: "sent", atNs: sentNs, bytes: 1 });
  harness.answers.set(facts.signature, { slot: 5n, err: null, commitment: "confirmed" });
  const answeredNs = harness.clock.nowNs() + 10_000_000_000n; // by a clock that was set back since
  outbound?.report({ kind: "acknowledged", atNs: answeredNs });
  await harness.clock.advance(1_000);
  const [status] = await harness.pipeline.statuses("ann", [facts.signature]);
  const kinds = status?.events.map(({ kind }) => kind);
  expect(kinds).toEqual(["received", "queued", "sent", "seen", "acknowledged", "landed"]);
});
