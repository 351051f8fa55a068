// sendAlt after a partner's auction: when it counts as lost, and what follows.

import { expect, it } from "vitest";
import type { SubmitRequest, TimelineEvent } from "../../../src/gateway/submission/types.ts";
import { Harness } from "./harness.ts";

const routes = [
  { name: "alt", kind: "alt-partner", leaders: new Set(["A"]) },
  { name: "swqos-1" },
] as const;

/** Submits in slot 4, the first of four slots of the partner "A"; every route accepts silently. */
async function submitted(options: Partial<SubmitRequest["options"]>) {
  const harness = new Harness({}, { routes });
  harness.answer = (outbound) => {
    const atNs = harness.clock.nowNs();
    outbound.report({ kind: "sent", atNs, bytes: 1 });
    outbound.report({ kind: "acknowledged", atNs });
  };
  const facts = harness.facts();
  const request = { ...harness.request(facts, options), method: "sendAlt" } as const;
  void harness.pipeline.submit(request);
  await harness.clock.advance(50);
  expect(harness.routesUsed).toEqual(["alt"]);
  const lost = async () => {
    const [status] = await harness.pipeline.statuses("ann", [facts.signature]);
    return (status?.events ?? []).filter(({ kind }: TimelineEvent) => kind === "auction_lost");
  };
  return { harness, facts, lost };
}

it("uses the other routes as soon as the partner no longer leads", async () => {
  const { harness } = await submitted({ enableFallback: true });
  harness.leaders = { slot: 5n, current: "B", next: "B" };
  await harness.clock.advance(50);
  expect(harness.routesUsed).toEqual(["alt", "swqos-1"]);
  await harness.clock.advance(1_500);
  expect(harness.routesUsed).toEqual(["alt", "swqos-1"]); // from now on like any other submission
});

it("uses the other routes after one whole slot of the same partner", async () => {
  const { harness } = await submitted({ enableFallback: true });
  harness.leaders = { slot: 5n, current: "A", next: "B" };
  await harness.clock.advance(300);
  expect(harness.routesUsed).toEqual(["alt"]); // it may have arrived in slot 5
  harness.leaders = { slot: 6n, current: "A", next: "B" };
  await harness.clock.advance(50);
  expect(harness.routesUsed).toEqual(["alt", "alt", "swqos-1"]);
});

it("uses the other routes after two slot lengths if the slot clock does not advance", async () => {
  const { harness } = await submitted({ enableFallback: true });
  await harness.clock.advance(700);
  expect(harness.routesUsed).toEqual(["alt"]);
  await harness.clock.advance(100);
  expect(harness.routesUsed).toEqual(["alt", "alt", "swqos-1"]);
});

it("is not sent again and has not lost if it was observed in a block", async () => {
  const { harness, facts, lost } = await submitted({ enableFallback: true });
  harness.observe(facts, 4n);
  harness.leaders = { slot: 8n, current: "B", next: "B" };
  await harness.clock.advance(1_900);
  expect(harness.routesUsed).toEqual(["alt"]);
  expect(await lost()).toEqual([]);
});

it("without fallback says within a second that the auction is lost, and stays open", async () => {
  const { harness, facts, lost } = await submitted({ enableFallback: false });
  harness.leaders = { slot: 8n, current: "B", next: "A" };
  await harness.clock.advance(50);
  expect(await lost()).toMatchObject([{ kind: "auction_lost", slot: 4n, leader: "A" }]);
  expect(await harness.state(facts)).toBe("open null");
  await harness.clock.advance(10_000);
  expect(harness.routesUsed).toEqual(["alt"]);
  expect(await lost()).toHaveLength(1);
  // The partner still has the bytes: it lands after all, and that is the only end.
  harness.answers.set(facts.signature, { slot: 30n, err: null, commitment: "confirmed" });
  await harness.clock.advance(10_000);
  expect(await harness.state(facts)).toBe("landed confirmed");
});

it("without fallback expires with its blockhash after a lost auction", async () => {
  const { harness, facts } = await submitted({ enableFallback: false });
  harness.leaders = { slot: 8n, current: "B", next: "A" };
  harness.isBlockhashExpired = true;
  await harness.clock.advance(60_000);
  expect(await harness.state(facts)).toBe("expired blockhash_expired");
});
