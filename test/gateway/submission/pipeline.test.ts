// The pipeline, one promise at a time: what callers, routes, the store and the node can rely on.

import { describe, expect, it } from "vitest";
import type { TimelineEvent } from "../../../src/gateway/submission/types.ts";
import { Harness } from "./harness.ts";

describe("submit", () => {
  it("is in the routes' queues before it returns, and kept before it settles", async () => {
    const desk = new Harness();
    const facts = desk.facts();
    const submitted = desk.pipeline.submit(desk.request(facts));
    expect(desk.parcels.map(({ attempt }) => attempt)).toEqual([1]);
    expect(desk.store.records.size).toBe(0);
    await desk.clock.advance(100);
    await submitted;
    expect([...desk.store.records.values()]).toMatchObject([
      { state: "open", wire: facts.wire, events: [{ kind: "received" }, { kind: "queued" }] },
    ]);
  });

  it("refuses when no queue has room, and keeps nothing", async () => {
    const desk = new Harness();
    desk.takes = false;
    const facts = desk.facts();
    expect(await desk.submit(facts)).toBe(
      "no_route: queues: expected room in one of swqos-1, got none",
    );
    expect([await desk.state(facts), desk.pipeline.snapshot().open]).toEqual(["unknown", 0]);
  });

  it("refuses more than may be open", async () => {
    const desk = new Harness({ openMax: 2 });
    const first = desk.facts();
    expect(await desk.submit(first)).toBe("accepted");
    expect(await desk.submit(desk.facts())).toBe("accepted");
    expect(await desk.submit(desk.facts())).toBe(
      "overloaded: open transactions: expected at most 2, got 2 and 1 more",
    );
    expect(await desk.submit(first)).toBe("accepted"); // nothing new
    expect(desk.parcels.length).toBe(3);
  });

  it("tells when it could not be kept, sends it no more, and takes it when it comes again", async () => {
    const desk = new Harness();
    const facts = desk.facts();
    desk.store.failShare = 1;
    expect(await desk.submit(facts)).toMatch(/^store_failed: database: .* it may have been sent$/);
    await desk.clock.advance(10_000);
    expect(desk.parcels.length).toBe(1);
    expect(desk.warnings.length).toBeGreaterThan(0);
    desk.store.failShare = 0;
    expect(await desk.submit(facts)).toBe("accepted");
    expect(desk.parcels.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(desk.store.records.size).toBe(1);
  });

  it("of the same again is one lifecycle, and another attempt unless it comes too soon", async () => {
    const desk = new Harness();
    const facts = desk.facts();
    const request = desk.request(facts, { resendsMax: 0 });
    const both = [desk.pipeline.submit(request), desk.pipeline.submit(request)];
    expect(desk.parcels.length).toBe(1);
    await desk.clock.advance(100);
    await Promise.all(both);
    expect(await desk.submit(facts, { resendsMax: 0 })).toBe("accepted");
    expect(desk.parcels.map(({ attempt }) => attempt)).toEqual([1, 2]);
    for (let i = 0; i < 100; i++) await desk.submit(facts, { resendsMax: 0 });
    expect(desk.parcels.length).toBe(33); // the first, and 32 more at the account's wish
    expect(desk.store.records.size).toBe(1);
  });

  it("by another account has its own record, timeline and options", async () => {
    const desk = new Harness();
    const facts = desk.facts();
    await desk.submit(facts, { resendsMax: 0 });
    await desk.submit(facts, { resendsMax: 0 }, "ben");
    desk.answers.set(facts.signature, { slot: 8n, err: null, commitment: "finalized" });
    expect(await desk.state(facts, "cat")).toBe("unknown");
    await desk.clock.advance(1_000);
    expect(await desk.state(facts)).toBe("landed finalized");
    expect(await desk.state(facts, "ben")).toBe("landed finalized");
    const [status] = await desk.pipeline.statuses("ben", [facts.signature]);
    expect(status?.events.map(({ kind }) => kind)).toEqual(["received", "queued", "landed"]);
    expect(desk.store.records.size).toBe(2);
    expect(await desk.submit(facts, {}, "cat")).toBe("accepted"); // it has landed
    expect([await desk.state(facts, "cat"), desk.parcels.length]).toEqual(["landed finalized", 2]);
  });

  it("of what can land no more is refused", async () => {
    const desk = new Harness();
    const facts = desk.facts();
    await desk.submit(facts);
    desk.isBlockhashGone = true;
    await desk.clock.advance(60_000);
    expect(await desk.state(facts)).toBe("expired blockhash_expired");
    expect(await desk.submit(facts)).toMatch(
      /^no_route: .* ended as expired \(blockhash_expired\)$/,
    );
  });
});

describe("protection", () => {
  it("holds while a denied leader is near, and lets go within 50 ms", async () => {
    const desk = new Harness();
    desk.leaders = { slot: 4n, current: "A", next: "bad" };
    const facts = desk.facts();
    expect(await desk.submit(facts, { mevProtect: true, resendsMax: 0 })).toBe("accepted");
    await desk.clock.advance(3_000);
    expect([desk.parcels.length, desk.pipeline.snapshot().held]).toEqual([0, 1]);
    desk.leaders = { slot: 9n, current: "C", next: "D" };
    await desk.clock.advance(50);
    expect([desk.parcels.length, desk.pipeline.snapshot().held]).toEqual([1, 0]);
    // Until the window of slots 8 to 11 ends.
    const leftNs = (desk.parcels[0]?.deadlineNs ?? 0n) - desk.clock.nowNs();
    expect(leftNs).toBeLessThanOrEqual(900_000_000n);
    await desk.clock.advance(10_000);
    expect(desk.parcels.length).toBe(1);
  });

  it("holds no more than may be held", async () => {
    const desk = new Harness({ heldMax: 1 });
    desk.leaders = { slot: null, current: null, next: null };
    expect(await desk.submit(desk.facts(), { mevProtect: true })).toBe("accepted");
    expect(await desk.submit(desk.facts(), { mevProtect: true })).toMatch(/^overloaded: held back/);
    expect(await desk.submit(desk.facts())).toBe("accepted");
  });

  it("ends what is held for too long", async () => {
    const desk = new Harness();
    desk.leaders = { slot: 1n, current: "bad", next: "bad" };
    const facts = desk.facts();
    await desk.submit(facts, { mevProtect: true });
    desk.isBlockhashGone = true;
    await desk.clock.advance(60_000);
    expect(await desk.state(facts)).toBe("expired blockhash_expired");
    expect([desk.parcels.length, desk.pipeline.snapshot().held]).toEqual([0, 0]);
  });
});

describe("resends", () => {
  it.each([
    [0, 1],
    [2, 3],
    [null, 6],
  ])("with resendsMax %s make %s attempts in 10.5 s", async (resendsMax, attempts) => {
    const desk = new Harness();
    await desk.submit(desk.facts(), { resendsMax });
    await desk.clock.advance(10_400);
    expect(desk.parcels.map(({ attempt }) => attempt)).toEqual(
      Array.from({ length: attempts }, (_, i) => i + 1),
    );
  });

  it("pause while it is in a block, and go on when the block is gone", async () => {
    const desk = new Harness();
    const facts = desk.facts();
    await desk.submit(facts);
    desk.see(facts, 5n);
    await desk.clock.advance(2_500);
    expect(desk.parcels.length).toBe(1);
    await desk.clock.advance(1_500);
    expect(desk.parcels.length).toBe(2); // absent for three seconds
  });

  it("do not use a route that will always refuse; refused by all is the end", async () => {
    const desk = new Harness();
    const facts = desk.facts();
    await desk.submit(facts);
    desk.refuseAll(false);
    await desk.clock.advance(2_000);
    expect(await desk.state(facts)).toBe("open null");
    desk.refuseAll(true);
    expect(await desk.state(facts)).toBe("rejected routes_refused");
    await desk.clock.advance(10_000);
    expect(desk.parcels.length).toBe(0);
  });

  it("do not count as refused while one is under way", async () => {
    const desk = new Harness();
    const facts = desk.facts();
    await desk.submit(facts);
    const [underWay] = desk.parcels.splice(0);
    await desk.clock.advance(2_000);
    desk.refuseAll(true);
    expect(await desk.state(facts)).toBe("open null");
    underWay?.report({ kind: "refused", atNs: 0n, reason: "late", isFinal: true });
    underWay?.report({ kind: "refused", atNs: 0n, reason: "twice", isFinal: true });
    expect(await desk.state(facts)).toBe("rejected routes_refused");
  });
});

describe("outcomes", () => {
  it("by absence need two looks, each after a finding", async () => {
    const desk = new Harness({ firstAskMs: 10_000 });
    const facts = desk.facts();
    await desk.submit(facts);
    desk.isBlockhashGone = true;
    await desk.clock.advance(14_500);
    expect(await desk.state(facts)).toBe("open null"); // found gone once, looked at once
    await desk.clock.advance(2_000);
    expect(await desk.state(facts)).toBe("expired blockhash_expired");
    expect(desk.pipeline.snapshot().watch.lifetimes).toBe(0);
  });

  it("by absence need two looks also when the lifetime has been gone for long", async () => {
    const desk = new Harness({ firstAskMs: 5_000 });
    const facts = desk.facts();
    await desk.submit(facts);
    desk.isBlockhashGone = true;
    desk.isNodeFailing = true;
    await desk.clock.advance(30_000);
    desk.isNodeFailing = false;
    const count = desk.asked.length;
    while (desk.asked.length === count) await desk.clock.advance(100);
    expect(await desk.state(facts)).toBe("open null");
    await desk.clock.advance(6_000);
    expect(await desk.state(facts)).toBe("expired blockhash_expired");
  });

  it("of very many are sent again in turns", async () => {
    const desk = new Harness();
    for (let i = 0; i < 1_000; i++) void desk.pipeline.submit(desk.request(desk.facts()));
    await desk.clock.advance(2_000);
    expect(desk.parcels.length).toBe(1_200);
    await desk.clock.advance(200);
    expect(desk.parcels.length).toBe(2_000);
  });

  it("by absence are taken back when the lifetime is not gone", async () => {
    const desk = new Harness({ firstAskMs: 10_000 });
    const facts = desk.facts();
    await desk.submit(facts);
    desk.isBlockhashGone = true;
    await desk.clock.advance(12_000);
    desk.isBlockhashGone = false;
    await desk.clock.advance(10_000);
    desk.isBlockhashGone = true;
    await desk.clock.advance(4_000);
    expect(await desk.state(facts)).toBe("open null");
  });

  it("of nonces: none, gone, and what landed instead", async () => {
    const desk = new Harness();
    const lonely = desk.facts(true);
    await desk.submit(lonely);
    desk.isBlockhashGone = true;
    await desk.clock.advance(30_000);
    expect(await desk.state(lonely)).toBe("expired nonce_unknown");
    const facts = desk.facts(true);
    desk.nonce = "another value";
    await desk.submit(facts);
    await desk.clock.advance(30_000);
    expect(await desk.state(facts)).toBe("superseded nonce_advanced");
  });

  it("without a node: a sight is the end, and no sight is one after a time", async () => {
    const desk = new Harness({ unobservedMs: 5_000 }, { node: false });
    const [seen, unseen] = [desk.facts(), desk.facts()];
    await desk.submit(seen);
    await desk.submit(unseen);
    desk.see(seen, 5n);
    expect(await desk.state(seen)).toBe("landed seen_in_shreds");
    await desk.clock.advance(6_000);
    expect(await desk.state(unseen)).toBe("expired unobserved");
    expect([desk.sights.size, desk.asked.length]).toEqual([0, 0]);
  });

  it("come without sights, too", async () => {
    const desk = new Harness();
    desk.isWatchFull = true;
    const facts = desk.facts();
    expect(await desk.submit(facts)).toBe("accepted");
    desk.answers.set(facts.signature, { slot: 5n, err: "Bad", commitment: "confirmed" });
    await desk.clock.advance(1_000);
    expect(await desk.state(facts)).toBe("landed_failed confirmed");
    expect(desk.pipeline.snapshot().watch.sightsRefused).toBe(1n);
  });

  it("are asked for in groups of 256", async () => {
    const desk = new Harness();
    for (let i = 0; i < 300; i++) void desk.pipeline.submit(desk.request(desk.facts()));
    await desk.clock.advance(600);
    expect(desk.asked.map(({ length }) => length).slice(0, 2)).toEqual([256, 44]);
  });
});

describe("what is told", () => {
  it("goes to the account's listeners, also when one of them throws", async () => {
    const desk = new Harness();
    const heard: string[] = [];
    desk.pipeline.subscribe("ann", () => {
      throw new Error("a bad listener");
    });
    const listener = (_: string, { kind }: TimelineEvent) => void heard.push(kind);
    const stop = desk.pipeline.subscribe("ann", listener);
    await desk.submit(desk.facts());
    await desk.submit(desk.facts(), {}, "ben");
    stop();
    await desk.submit(desk.facts());
    expect(heard).toEqual(["received", "queued"]);
  });

  it("comes from the store when memory has forgotten, for a day", async () => {
    const desk = new Harness({ endedMax: 1 });
    const all = [desk.facts(), desk.facts(), desk.facts()];
    for (const facts of all) {
      desk.answers.set(facts.signature, { slot: 5n, err: null, commitment: "confirmed" });
      await desk.submit(facts);
    }
    await desk.clock.advance(2_000);
    expect(desk.pipeline.snapshot()).toMatchObject({ open: 0, ended: 1 });
    const statuses = desk.pipeline.statuses(
      "ann",
      all.map(({ signature }) => signature),
    );
    expect((await statuses).map((status) => status?.state)).toEqual(["landed", "landed", "landed"]);
    await desk.clock.advance(25 * 3_600_000);
    expect([desk.store.records.size, desk.pipeline.snapshot().ended]).toEqual([0, 0]);
  });

  it("is the end of a record that cannot be read after a restart", async () => {
    const before = new Harness();
    const facts = before.facts();
    await before.submit(facts);
    const desk = new Harness();
    for (const [key, record] of before.store.records) desk.store.records.set(key, record);
    const restored = desk.pipeline.restore();
    await desk.clock.advance(100);
    expect(await restored).toBe(0);
    expect(await desk.state(facts)).toBe("expired bytes_unreadable");
  });

  it.each([
    [0, []],
    [1, [2]],
    [null, [2, 3, 4]],
  ])("goes on after a restart: resendsMax %s, attempts %j", async (resendsMax, attempts) => {
    const before = new Harness();
    const facts = before.facts();
    await before.submit(facts, { resendsMax });
    const desk = new Harness();
    desk.readable.push(facts);
    for (const [key, record] of before.store.records) desk.store.records.set(key, record);
    expect(await desk.pipeline.restore()).toBe(1);
    await desk.clock.advance(5_000);
    expect(desk.parcels.map(({ attempt }) => attempt)).toEqual(attempts);
    desk.refuseAll(true); // of the earlier process's attempt nobody knows
    expect(await desk.state(facts)).toBe("open null");
  });

  it("ends with close; no timer stays", async () => {
    const desk = new Harness();
    await desk.submit(desk.facts());
    desk.pipeline.close();
    await desk.clock.advance(100);
    expect(desk.clock.pending).toBe(0);
  });
});
