// sendAlt with fallback: which routes send after partners refused, and when.

import { expect, it } from "vitest";
import type { RouteEvent, SubmitRequest } from "../../../src/gateway/submission/types.ts";
import { Harness } from "./harness.ts";

const routes = [
  { name: "alt", kind: "alt-partner", leaders: new Set(["A"]) },
  { name: "alt-2", kind: "alt-partner", leaders: new Set(["A"]) },
  { name: "swqos-1" },
] as const;

async function sent(harness: Harness, some: Partial<SubmitRequest["options"]>): Promise<void> {
  const request = harness.request(harness.facts(), some);
  void harness.pipeline.submit({ ...request, method: "sendAlt" });
  await harness.clock.advance(100);
}

function refuse(harness: Harness, which: number, isFinal = false): void {
  const atNs = harness.clock.nowNs();
  const refused: RouteEvent = { kind: "refused", atNs, reason: "lost", isFinal };
  harness.outbound[which]?.report({ kind: "sent", atNs, bytes: 1 });
  harness.outbound[which]?.report(refused);
}

it.each([true, false])(
  "uses the other routes immediately when the last partner refused: %s",
  async (is) => {
    const harness = new Harness({}, { routes });
    await sent(harness, { enableFallback: true });
    refuse(harness, 0, is);
    await harness.clock.advance(200);
    expect(harness.routesUsed).toEqual(["alt", "alt-2"]); // one of them may still accept it
    refuse(harness, 1, is);
    await harness.clock.advance(50);
    expect(harness.routesUsed.slice(2)).toEqual(is ? ["swqos-1"] : ["alt", "alt-2", "swqos-1"]);
    const count = harness.routesUsed.length;
    for (let i = count - 1; i > 1; i--) refuse(harness, i);
    await harness.clock.advance(1_500);
    expect(harness.routesUsed.length).toBe(count); // from now on like any other submission
  },
);

it("uses the other routes immediately when the partner refuses during the offer", async () => {
  const harness = new Harness({}, { routes: [routes[0], routes[2]] });
  harness.answer = (outbound) => {
    if (harness.routesUsed.length > 1) return;
    outbound.report({
      kind: "refused",
      atNs: harness.clock.nowNs(),
      reason: "lost",
      isFinal: true,
    });
  };
  await sent(harness, { enableFallback: true });
  expect(harness.routesUsed).toEqual(["alt", "swqos-1"]);
});

it("uses no other route immediately without fallback or resends", async () => {
  const harness = new Harness({}, { routes });
  await sent(harness, { enableFallback: false });
  await sent(harness, { enableFallback: true, resendsMax: 0 });
  for (let i = 0; i < 4; i++) refuse(harness, i);
  await harness.clock.advance(1_500);
  expect(harness.routesUsed).toEqual(["alt", "alt-2", "alt", "alt-2"]);
});

it("uses no route when it is submitted again in another slot, and reports that", async () => {
  const harness = new Harness({}, { routes });
  const request = {
    ...harness.request(harness.facts(), { enableFallback: false }),
    method: "sendAlt",
  } as const;
  const first = harness.pipeline.submit(request);
  await harness.clock.advance(100);
  await first;
  const { length } = harness.routesUsed;
  harness.leaders = { slot: 8n, current: "B", next: "A" };
  await expect(harness.pipeline.submit(request)).rejects.toMatchObject({
    reason: "non_partner_slot",
  });
  expect(harness.routesUsed.length).toBe(length);
  harness.leaders = { slot: 12n, current: "A", next: "B" };
  const repeated = harness.pipeline.submit(request);
  await harness.clock.advance(100);
  await repeated;
  expect(harness.routesUsed.slice(length)).toEqual(["alt", "alt-2"]);
});
