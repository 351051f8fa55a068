// One pair per nonce value at a time: duration, conflicts and exceptions.

import { describe, expect, it } from "vitest";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { Harness } from "./harness.ts";
import { makeFacts } from "./model.ts";
import { landed, sentOf } from "./pair-steps.ts";

describe("a nonce value", () => {
  it("is reserved by one pair until its end, also after a restart; only its account learns which", async () => {
    let harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    const [a, b] = pair.map(({ signature }) => signature);
    const other = harness.pair(pair[0]);
    for (const restarts of [0, 1]) {
      if (restarts > 0) harness = await harness.next(...pair);
      const sent = harness.outbound.length;
      const outcome = await harness.submitPair(other);
      expect(outcome).toMatch(/^nonce_in_use: durable nonce \w+: another pair with this value/);
      expect([outcome.includes(`${a} and ${b}`), outcome.includes("another account")]).toEqual([
        true,
        false,
      ]);
      const half = await harness.submitPair([pair[0], other[0]]);
      expect([half.includes(a ?? ""), half.includes(b ?? "")]).toEqual([false, true]);
      const strange = await harness.submitPair(other, {}, "ben");
      expect([a, b].some((name) => strange.includes(name ?? ""))).toBe(false);
      expect(strange).toMatch(/^nonce_in_use: .*\(of another account\)$/);
      // Until its end; resends belong to the pair.
      expect(sentOf(harness, pair).slice(sent)).not.toContain("?");
    }
    await landed(harness, pair);
    harness.nonce = pubkeyOf(other[0].lifetime);
    expect(await harness.submitPair(harness.pair())).toBe("accepted");
    expect(await harness.submitPair(other)).toMatch(
      /^no_route: durable nonce .*read the new value/,
    );
  });

  it("can have another pair when the first is no longer sent; both are superseded", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    const better = harness.pair(pair[0]);
    await harness.clock.advance(119_000);
    expect(await harness.submitPair(better)).toMatch(/^nonce_in_use/);
    await harness.clock.advance(2_000);
    expect(await harness.submitPair(better)).toBe("accepted");
    const another = harness.pair(pair[0]);
    expect(await harness.submitPair(another)).toMatch(/^nonce_in_use/);
    await landed(harness, better);
    for (const facts of pair) expect(await harness.state(facts)).toBe("superseded sibling_landed");
  });

  it.each(["left over by full queues", "held for protection"])(
    "is not sent after that, although it was %s",
    async (how) => {
      const harness = new Harness();
      const pair = harness.pair();
      const isHeld = how.startsWith("held");
      if (isHeld) harness.leaders = { slot: 8n, current: "bad", next: "bad" };
      else harness.full.add(pair[1].signature);
      expect(await harness.submitPair(pair, { mevProtect: isHeld })).toBe("accepted");
      expect(sentOf(harness, pair)).toBe(isHeld ? "" : "A");
      await harness.clock.advance(121_000);
      const before = harness.outbound.length;
      harness.leaders = { slot: 9n, current: "good", next: "good" };
      harness.full.clear();
      expect(await harness.submitPair(harness.pair(pair[0]))).toBe("accepted");
      await harness.clock.advance(5_000);
      const names = pair.map(({ signature }) => signature);
      const late = harness.outbound.slice(before).flatMap(({ transactions }) => transactions);
      expect(late.length).toBeGreaterThan(0);
      expect(late.filter(({ signature }) => names.includes(signature))).toEqual([]);
    },
  );

  it("is free for another nonce or authority, or after the pair was separated", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    const { account } = pair[0].nonce ?? { account: new Uint8Array(32) };
    const forged = harness.pair(pair[0]).map((facts) => ({
      ...facts,
      nonce: { account, authority: new Uint8Array(32).fill(1) },
    }));
    expect(await harness.submitPair(forged, {}, "eve")).toBe("accepted");
    expect(await harness.submitPair(harness.pair())).toBe("accepted");
    const lifetime = new Uint8Array(32).fill(3);
    const later = [0, 1].map(() => makeFacts(harness.random, { lifetime, nonceAccount: account }));
    expect(await harness.submitPair(later)).toBe("accepted");
    for (const facts of pair) expect(await harness.submit(facts)).toBe("accepted");
    expect(await harness.submitPair(harness.pair(pair[0]))).toBe("accepted");
  });
});
