// sendAlt with fallback: who has it when the partners do not take it, and when?

import { expect, it } from "vitest";
import type { RouteEvent, SubmitRequest } from "../../../src/gateway/submission/types.ts";
import { Harness } from "./harness.ts";

const routes = [
  { name: "alt", kind: "alt-partner", leaders: new Set(["A"]) },
  { name: "alt-2", kind: "alt-partner", leaders: new Set(["A"]) },
  { name: "swqos-1" },
] as const;

async function sent(desk: Harness, some: Partial<SubmitRequest["options"]>): Promise<void> {
  const request = desk.request(desk.facts(), some);
  void desk.pipeline.submit({ ...request, method: "sendAlt" });
  await desk.clock.advance(100);
}

function refuse(desk: Harness, which: number, isFinal = false): void {
  const atNs = desk.clock.nowNs();
  const refused: RouteEvent = { kind: "refused", atNs, reason: "lost", isFinal };
  desk.parcels[which]?.report({ kind: "sent", atNs, bytes: 1 });
  desk.parcels[which]?.report(refused);
}

it.each([true, false])(
  "the other routes, at once when the last partner refused: %s",
  async (is) => {
    const desk = new Harness({}, { routes });
    await sent(desk, { enableFallback: true });
    refuse(desk, 0, is);
    await desk.clock.advance(200);
    expect(desk.ways).toEqual(["alt", "alt-2"]); // one of them may take it yet
    refuse(desk, 1, is);
    await desk.clock.advance(50);
    expect(desk.ways.slice(2)).toEqual(is ? ["swqos-1"] : ["alt", "alt-2", "swqos-1"]);
    const count = desk.ways.length;
    for (let i = count - 1; i > 1; i--) refuse(desk, i);
    await desk.clock.advance(1_500);
    expect(desk.ways.length).toBe(count); // from now on as everything else
  },
);

it("the other routes, at once also when the partner refuses in the moment of the offer", async () => {
  const desk = new Harness({}, { routes: [routes[0], routes[2]] });
  desk.answer = (parcel) => {
    if (desk.ways.length > 1) return;
    parcel.report({ kind: "refused", atNs: desk.clock.nowNs(), reason: "lost", isFinal: true });
  };
  await sent(desk, { enableFallback: true });
  expect(desk.ways).toEqual(["alt", "swqos-1"]);
});

it("nobody else at once, without fallback or without leave to send again", async () => {
  const desk = new Harness({}, { routes });
  await sent(desk, { enableFallback: false });
  await sent(desk, { enableFallback: true, resendsMax: 0 });
  for (let i = 0; i < 4; i++) refuse(desk, i);
  await desk.clock.advance(1_500);
  expect(desk.ways).toEqual(["alt", "alt-2", "alt", "alt-2"]);
});

it("nobody when it is sent once more in another slot, and the caller is told so", async () => {
  const desk = new Harness({}, { routes });
  const request = {
    ...desk.request(desk.facts(), { enableFallback: false }),
    method: "sendAlt",
  } as const;
  const first = desk.pipeline.submit(request);
  await desk.clock.advance(100);
  await first;
  const { length } = desk.ways;
  desk.leaders = { slot: 8n, current: "B", next: "A" };
  await expect(desk.pipeline.submit(request)).rejects.toMatchObject({ reason: "non_partner_slot" });
  expect(desk.ways.length).toBe(length);
  desk.leaders = { slot: 12n, current: "A", next: "B" };
  const again = desk.pipeline.submit(request);
  await desk.clock.advance(100);
  await again;
  expect(desk.ways.slice(length)).toEqual(["alt", "alt-2"]);
});
