// One pair of a nonce value at a time: until when, against whom, and what makes way.

import { describe, expect, it } from "vitest";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { Harness } from "./harness.ts";
import { makeFacts } from "./model.ts";
import { landed, sentOf } from "./pair-steps.ts";

describe("a nonce value", () => {
  it("is one pair's until its end, also after a restart; only its own account hears whose", async () => {
    let desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    const [a, b] = pair.map(({ signature }) => signature);
    const other = desk.pair(pair[0]);
    for (const restarts of [0, 1]) {
      if (restarts > 0) desk = await desk.next(...pair);
      const sent = desk.parcels.length;
      const told = await desk.submitPair(other);
      expect(told).toMatch(/^nonce_in_use: durable nonce \w+: expected no other pair/);
      expect([told.includes(`${a} and ${b}`), told.includes("another account")]).toEqual([
        true,
        false,
      ]);
      const half = await desk.submitPair([pair[0], other[0]]);
      expect([half.includes(a ?? ""), half.includes(b ?? "")]).toEqual([false, true]);
      const strange = await desk.submitPair(other, {}, "ben");
      expect([a, b].some((name) => strange.includes(name ?? ""))).toBe(false);
      expect(strange).toMatch(/^nonce_in_use: .*got one of another account$/);
      // Until its end: what was sent again meanwhile is the pair's own.
      expect(sentOf(desk, pair).slice(sent)).not.toContain("?");
    }
    await landed(desk, pair);
    desk.nonce = pubkeyOf(other[0].lifetime);
    expect(await desk.submitPair(desk.pair())).toBe("accepted");
    expect(await desk.submitPair(other)).toMatch(/^no_route: durable nonce .*not used yet/);
  });

  it("may have another pair when the first is not sent any more; both are superseded", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    const better = desk.pair(pair[0]);
    await desk.clock.advance(119_000);
    expect(await desk.submitPair(better)).toMatch(/^nonce_in_use/);
    await desk.clock.advance(2_000);
    expect(await desk.submitPair(better)).toBe("accepted");
    const another = desk.pair(pair[0]);
    expect(await desk.submitPair(another)).toMatch(/^nonce_in_use/);
    await landed(desk, better);
    for (const facts of pair) expect(await desk.state(facts)).toBe("superseded sibling_landed");
  });

  it.each(["left over by full queues", "held for protection"])(
    "is not sent any more after that, though it was %s",
    async (how) => {
      const desk = new Harness();
      const pair = desk.pair();
      const isHeld = how.startsWith("held");
      if (isHeld) desk.leaders = { slot: 8n, current: "bad", next: "bad" };
      else desk.crowded.add(pair[1].signature);
      expect(await desk.submitPair(pair, { mevProtect: isHeld })).toBe("accepted");
      expect(sentOf(desk, pair)).toBe(isHeld ? "" : "A");
      await desk.clock.advance(121_000);
      const before = desk.parcels.length;
      desk.leaders = { slot: 9n, current: "good", next: "good" };
      desk.crowded.clear();
      expect(await desk.submitPair(desk.pair(pair[0]))).toBe("accepted");
      await desk.clock.advance(5_000);
      const names = pair.map(({ signature }) => signature);
      const late = desk.parcels.slice(before).flatMap(({ transactions }) => transactions);
      expect(late.length).toBeGreaterThan(0);
      expect(late.filter(({ signature }) => names.includes(signature))).toEqual([]);
    },
  );

  it("of another nonce, with another authority or after the pair was taken apart is free", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    const { account } = pair[0].nonce ?? { account: new Uint8Array(32) };
    const forged = desk.pair(pair[0]).map((facts) => ({
      ...facts,
      nonce: { account, authority: new Uint8Array(32).fill(1) },
    }));
    expect(await desk.submitPair(forged, {}, "eve")).toBe("accepted");
    expect(await desk.submitPair(desk.pair())).toBe("accepted");
    const lifetime = new Uint8Array(32).fill(3);
    const later = [0, 1].map(() => makeFacts(desk.random, { lifetime, nonceAccount: account }));
    expect(await desk.submitPair(later)).toBe("accepted");
    for (const facts of pair) expect(await desk.submit(facts)).toBe("accepted");
    expect(await desk.submitPair(desk.pair(pair[0]))).toBe("accepted");
  });
});
