// The pipeline's guarantees to callers, routes, the store and the node.

import { describe, expect, it } from "vitest";
import type { TimelineEvent } from "../../../src/gateway/submission/types.ts";
import { Harness } from "./harness.ts";

describe("submit", () => {
  it("queues before it returns, and stores before it settles", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    const submitted = harness.pipeline.submit(harness.request(facts));
    expect(harness.outbound.map(({ attempt }) => attempt)).toEqual([1]);
    expect(harness.store.records.size).toBe(0);
    await harness.clock.advance(100);
    await submitted;
    expect([...harness.store.records.values()]).toMatchObject([
      { state: "open", wire: facts.wire, events: [{ kind: "received" }, { kind: "queued" }] },
    ]);
  });

  it("is refused without state if no queue accepts", async () => {
    const harness = new Harness();
    harness.takes = false;
    const facts = harness.facts();
    expect(await harness.submit(facts)).toBe(
      "no_route: the queues of all routes are full; retry in a second",
    );
    expect([await harness.state(facts), harness.pipeline.snapshot().open]).toEqual(["unknown", 0]);
  });

  it("is refused above the limit of open transactions", async () => {
    const harness = new Harness({ openMax: 2 });
    const first = harness.facts();
    expect(await harness.submit(first)).toBe("accepted");
    expect(await harness.submit(harness.facts())).toBe("accepted");
    expect(await harness.submit(harness.facts())).toBe(
      "overloaded: too many open transactions: 2, and 1 more; limit 2",
    );
    expect(await harness.submit(first)).toBe("accepted"); // no new events
    expect(harness.outbound.length).toBe(3);
  });

  it("fails if the store fails, stops sending, and accepts it when it is submitted again", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    harness.store.failShare = 1;
    expect(await harness.submit(facts)).toMatch(
      /^store_failed: database failed: .* not persisted and may have been sent$/,
    );
    await harness.clock.advance(10_000);
    expect(harness.outbound.length).toBe(1);
    expect(harness.warnings.length).toBeGreaterThan(0);
    harness.store.failShare = 0;
    expect(await harness.submit(facts)).toBe("accepted");
    expect(harness.outbound.map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(harness.store.records.size).toBe(1);
  });

  it("that is the last one and whose end takes long to fail is written again", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    expect(await harness.submit(facts)).toBe("accepted");
    Object.assign(harness.store, { failShare: 1, writeMs: 400 });
    harness.observe(facts, 8n);
    await harness.clock.advance(300);
    harness.answers.set(facts.signature, { slot: 8n, err: null, commitment: "finalized" });
    await harness.clock.advance(2_000);
    const [record] = harness.store.records.values();
    expect([await harness.state(facts), record?.state]).toEqual(["landed finalized", "open"]);
    Object.assign(harness.store, { failShare: 0 });
    await harness.clock.advance(2_000);
    expect([...harness.store.records.values()].map(({ state }) => state)).toEqual(["landed"]);
  });

  it("of the same transaction has one lifecycle, and makes another attempt unless it comes too soon", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    const request = harness.request(facts, { resendsMax: 0 });
    const both = [harness.pipeline.submit(request), harness.pipeline.submit(request)];
    expect(harness.outbound.length).toBe(1);
    await harness.clock.advance(100);
    await Promise.all(both);
    expect(await harness.submit(facts, { resendsMax: 0 })).toBe("accepted");
    expect(harness.outbound.map(({ attempt }) => attempt)).toEqual([1, 2]);
    for (let i = 0; i < 100; i++) await harness.submit(facts, { resendsMax: 0 });
    expect(harness.outbound.length).toBe(33); // the first, and 32 more that the account requested
    expect(harness.store.records.size).toBe(1);
  });

  it("shows what left of a call that another one with other options has replaced", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    await harness.submit(facts, { resendsMax: 0 });
    await harness.clock.advance(100);
    await harness.submit(facts, { resendsMax: 1 });
    expect(harness.outbound.map(({ attempt }) => attempt)).toEqual([1, 2]);
    harness.outbound[0]?.report({ kind: "sent", atNs: harness.clock.nowNs(), bytes: 200 });
    harness.outbound[0]?.report({ kind: "acknowledged", atNs: harness.clock.nowNs() });
    const [status] = await harness.pipeline.statuses("ann", [facts.signature]);
    const ofFirst = (status?.events ?? []).filter(
      (event) => "attempt" in event && event.attempt === 1,
    );
    expect(ofFirst.map(({ kind }) => kind)).toEqual(["queued", "sent", "acknowledged"]);
  });

  it("writes changes of many timelines within a second", async () => {
    const harness = new Harness();
    const all = Array.from({ length: 2_000 }, () => harness.facts());
    const submitted = all.map((facts) =>
      harness.pipeline.submit(harness.request(facts, { resendsMax: 0 })),
    );
    await harness.clock.advance(1_000);
    await Promise.all(submitted);
    for (const facts of all) harness.observe(facts, 8n);
    const seen = () =>
      [...harness.store.records.values()].filter(({ events }) => events.at(-1)?.kind === "seen");
    expect(seen().length).toBe(0);
    await harness.clock.advance(1_100);
    expect(seen().length).toBe(all.length);
  });

  it("creates a record, timeline and options for each account", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    await harness.submit(facts, { resendsMax: 0 });
    await harness.submit(facts, { resendsMax: 0 }, "ben");
    harness.answers.set(facts.signature, { slot: 8n, err: null, commitment: "finalized" });
    expect(await harness.state(facts, "cat")).toBe("unknown");
    await harness.clock.advance(1_000);
    expect(await harness.state(facts)).toBe("landed finalized");
    expect(await harness.state(facts, "ben")).toBe("landed finalized");
    const [status] = await harness.pipeline.statuses("ben", [facts.signature]);
    expect(status?.events.map(({ kind }) => kind)).toEqual(["received", "queued", "landed"]);
    expect(harness.store.records.size).toBe(2);
    expect(await harness.submit(facts, {}, "cat")).toBe("accepted"); // it has landed
    expect([await harness.state(facts, "cat"), harness.outbound.length]).toEqual([
      "landed finalized",
      2,
    ]);
  });

  it("leaves before anything is recorded of it, once for all routes", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    const open: number[] = [];
    harness.flushed = () => open.push(harness.outbound.length, harness.pipeline.snapshot().open);
    expect(await harness.submit(facts)).toBe("accepted");
    expect(open).toEqual([1, 0]);
    await harness.submit(facts); // repeated: it leaves at the end of the turn
    expect(open).toEqual([1, 0]);
  });

  it("records the tip and the priority fee of the transaction, for each account", async () => {
    const harness = new Harness();
    const amounts = { tipLamports: 2n ** 64n - 1n, priorityFeeLamports: 1_001n };
    const facts = { ...harness.facts(), ...amounts };
    expect(await harness.submit(facts)).toBe("accepted");
    harness.answers.set(facts.signature, { slot: 8n, err: null, commitment: "finalized" });
    await harness.clock.advance(1_000);
    expect(await harness.submit(facts, {}, "ben")).toBe("accepted"); // it has landed
    for (const account of ["ann", "ben"]) {
      const [status] = await harness.pipeline.statuses(account, [facts.signature]);
      expect(status?.events[0]).toMatchObject({ kind: "received", ...amounts });
    }
  });

  it("of a transaction that can no longer land is refused", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    await harness.submit(facts);
    harness.isBlockhashExpired = true;
    await harness.clock.advance(60_000);
    expect(await harness.state(facts)).toBe("expired blockhash_expired");
    expect(await harness.submit(facts)).toMatch(
      /^no_route: .* ended as expired \(blockhash_expired\) and cannot land again/,
    );
  });
});

describe("protection", () => {
  it("holds while a denied leader is near, and releases within 50 ms", async () => {
    const harness = new Harness();
    harness.leaders = { slot: 4n, current: "A", next: "bad" };
    const facts = harness.facts();
    expect(await harness.submit(facts, { mevProtect: true, resendsMax: 0 })).toBe("accepted");
    await harness.clock.advance(3_000);
    expect([harness.outbound.length, harness.pipeline.snapshot().held]).toEqual([0, 1]);
    harness.leaders = { slot: 9n, current: "C", next: "D" };
    await harness.clock.advance(50);
    expect([harness.outbound.length, harness.pipeline.snapshot().held]).toEqual([1, 0]);
    // Routes that choose further leaders by themselves check them too.
    expect([...(harness.outbound[0]?.deniedLeaders ?? [])]).toEqual(["bad"]);
    await harness.submit(harness.facts(), { resendsMax: 0 });
    expect(harness.outbound[1]?.deniedLeaders.size).toBe(0);
    // Until the window of slots 8 to 11 ends.
    const leftNs = (harness.outbound[0]?.deadlineNs ?? 0n) - harness.clock.nowNs();
    expect(leftNs).toBeLessThanOrEqual(900_000_000n);
    await harness.clock.advance(10_000);
    expect(harness.outbound.length).toBe(2);
  });

  it("holds no more than the limit", async () => {
    const harness = new Harness({ heldMax: 1 });
    harness.leaders = { slot: null, current: null, next: null };
    expect(await harness.submit(harness.facts(), { mevProtect: true })).toBe("accepted");
    expect(await harness.submit(harness.facts(), { mevProtect: true })).toMatch(
      /^overloaded: too many submissions wait for MEV protection/,
    );
    expect(await harness.submit(harness.facts())).toBe("accepted");
  });

  it("expires a submission that is held for too long", async () => {
    const harness = new Harness();
    harness.leaders = { slot: 1n, current: "bad", next: "bad" };
    const facts = harness.facts();
    await harness.submit(facts, { mevProtect: true });
    harness.isBlockhashExpired = true;
    await harness.clock.advance(60_000);
    expect(await harness.state(facts)).toBe("expired blockhash_expired");
    expect([harness.outbound.length, harness.pipeline.snapshot().held]).toEqual([0, 0]);
  });
});

describe("resends", () => {
  it.each([
    [0, 1],
    [2, 3],
    [null, 6],
  ])("with resendsMax %s make %s attempts in 10.5 s", async (resendsMax, attempts) => {
    const harness = new Harness();
    await harness.submit(harness.facts(), { resendsMax });
    await harness.clock.advance(10_400);
    expect(harness.outbound.map(({ attempt }) => attempt)).toEqual(
      Array.from({ length: attempts }, (_, i) => i + 1),
    );
  });

  it("continue after a reload that raises the minimum tip, which new submissions must pay", async () => {
    const harness = new Harness();
    const facts = { ...harness.facts(), tipLamports: 10_000n };
    await harness.submit(facts);
    harness.minimumTipLamports = 30_000n;
    const before = harness.outbound.length;
    await harness.clock.advance(5_000);
    expect(harness.outbound.length).toBeGreaterThan(before);
    const other = { ...harness.facts(), tipLamports: 10_000n };
    expect(await harness.submit(other)).toMatch(/^tip_too_low: /);
  });

  it("pause while it is in a block, and continue if the block is abandoned", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    await harness.submit(facts);
    harness.observe(facts, 5n);
    await harness.clock.advance(2_500);
    expect(harness.outbound.length).toBe(1);
    await harness.clock.advance(1_500);
    expect(harness.outbound.length).toBe(2); // absent for three seconds
  });

  it("skip a route after a final refusal; refusal by all is the end", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    await harness.submit(facts);
    harness.refuseAll(false);
    await harness.clock.advance(2_000);
    expect(await harness.state(facts)).toBe("open null");
    harness.refuseAll(true);
    expect(await harness.state(facts)).toBe("rejected routes_refused");
    await harness.clock.advance(10_000);
    expect(harness.outbound.length).toBe(0);
  });

  it("do not count as refused while an attempt is running", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    await harness.submit(facts);
    const [underWay] = harness.outbound.splice(0);
    await harness.clock.advance(2_000);
    harness.refuseAll(true);
    expect(await harness.state(facts)).toBe("open null");
    underWay?.report({ kind: "refused", atNs: 0n, reason: "late", isFinal: true });
    underWay?.report({ kind: "refused", atNs: 0n, reason: "twice", isFinal: true });
    expect(await harness.state(facts)).toBe("rejected routes_refused");
  });
});

describe("outcomes", () => {
  it("by absence need two queries, each after an expiry check", async () => {
    const harness = new Harness({ firstAskMs: 10_000 });
    const facts = harness.facts();
    await harness.submit(facts);
    harness.isBlockhashExpired = true;
    await harness.clock.advance(14_500);
    expect(await harness.state(facts)).toBe("open null"); // one expiry check, one query
    await harness.clock.advance(2_000);
    expect(await harness.state(facts)).toBe("expired blockhash_expired");
    expect(harness.pipeline.snapshot().observer.lifetimes).toBe(0);
  });

  it("by absence need two queries even long after the expiry", async () => {
    const harness = new Harness({ firstAskMs: 5_000 });
    const facts = harness.facts();
    await harness.submit(facts);
    harness.isBlockhashExpired = true;
    harness.isNodeFailing = true;
    await harness.clock.advance(30_000);
    harness.isNodeFailing = false;
    const count = harness.requests.length;
    while (harness.requests.length === count) await harness.clock.advance(100);
    expect(await harness.state(facts)).toBe("open null");
    await harness.clock.advance(6_000);
    expect(await harness.state(facts)).toBe("expired blockhash_expired");
  });

  it("of very many are resent in turns", async () => {
    const harness = new Harness();
    for (let i = 0; i < 1_000; i++) void harness.pipeline.submit(harness.request(harness.facts()));
    await harness.clock.advance(2_000);
    expect(harness.outbound.length).toBe(1_200);
    await harness.clock.advance(200);
    expect(harness.outbound.length).toBe(2_000);
  });

  it("by absence are revoked if the lifetime has not expired", async () => {
    const harness = new Harness({ firstAskMs: 10_000 });
    const facts = harness.facts();
    await harness.submit(facts);
    harness.isBlockhashExpired = true;
    await harness.clock.advance(12_000);
    harness.isBlockhashExpired = false;
    await harness.clock.advance(10_000);
    harness.isBlockhashExpired = true;
    await harness.clock.advance(4_000);
    expect(await harness.state(facts)).toBe("open null");
  });

  it("by absence wait while the cluster confirms nothing: no node knows the newest blockhashes", async () => {
    const harness = new Harness();
    const facts = harness.facts();
    await harness.submit(facts);
    await harness.clock.advance(10_000);
    harness.isClusterStopped = true;
    harness.isBlockhashExpired = true;
    await harness.clock.advance(300_000);
    expect(await harness.state(facts)).toBe("open null");
    harness.isClusterStopped = false;
    await harness.clock.advance(30_000);
    expect(await harness.state(facts)).toBe("expired blockhash_expired");
  });

  it("of nonces: missing, spent, and what landed instead", async () => {
    const harness = new Harness();
    const single = harness.facts(true);
    await harness.submit(single);
    harness.isBlockhashExpired = true;
    await harness.clock.advance(30_000);
    expect(await harness.state(single)).toBe("expired nonce_unknown");
    const facts = harness.facts(true);
    harness.nonce = "another value";
    await harness.submit(facts);
    await harness.clock.advance(30_000);
    expect(await harness.state(facts)).toBe("superseded nonce_advanced");
  });

  it("without a node: an observation is the end, and its absence is one after a time", async () => {
    const harness = new Harness({ unobservedMs: 5_000 }, { node: false });
    const [seen, unseen] = [harness.facts(), harness.facts()];
    await harness.submit(seen);
    await harness.submit(unseen);
    harness.observe(seen, 5n);
    expect(await harness.state(seen)).toBe("landed seen_in_shreds");
    await harness.clock.advance(6_000);
    expect(await harness.state(unseen)).toBe("expired unobserved");
    expect([harness.landings.size, harness.requests.length]).toEqual([0, 0]);
  });

  it("are determined without observations, too", async () => {
    const harness = new Harness();
    harness.isWatchFull = true;
    const facts = harness.facts();
    expect(await harness.submit(facts)).toBe("accepted");
    harness.answers.set(facts.signature, { slot: 5n, err: "Bad", commitment: "confirmed" });
    await harness.clock.advance(1_000);
    expect(await harness.state(facts)).toBe("landed_failed confirmed");
    expect(harness.pipeline.snapshot().observer.watchesRefused).toBe(1n);
  });

  it("are queried in groups of 256", async () => {
    const harness = new Harness();
    for (let i = 0; i < 300; i++) void harness.pipeline.submit(harness.request(harness.facts()));
    await harness.clock.advance(600);
    expect(harness.requests.map(({ length }) => length).slice(0, 2)).toEqual([256, 44]);
  });
});

describe("notifications and statuses", () => {
  it("reach the account's listeners, even if one of them throws", async () => {
    const harness = new Harness();
    const notifications: string[] = [];
    harness.pipeline.subscribe("ann", () => {
      throw new Error("a bad listener");
    });
    const listener = (_: string, { kind }: TimelineEvent) => void notifications.push(kind);
    const stop = harness.pipeline.subscribe("ann", listener);
    await harness.submit(harness.facts());
    await harness.submit(harness.facts(), {}, "ben");
    stop();
    await harness.submit(harness.facts());
    expect(notifications).toEqual(["received", "queued"]);
  });

  it("are read from the store for a day after memory dropped them", async () => {
    const harness = new Harness({ endedMax: 1 });
    const all = [harness.facts(), harness.facts(), harness.facts()];
    for (const facts of all) {
      harness.answers.set(facts.signature, { slot: 5n, err: null, commitment: "confirmed" });
      await harness.submit(facts);
    }
    await harness.clock.advance(2_000);
    expect(harness.pipeline.snapshot()).toMatchObject({ open: 0, ended: 1 });
    const statuses = harness.pipeline.statuses(
      "ann",
      all.map(({ signature }) => signature),
    );
    expect((await statuses).map((status) => status?.state)).toEqual(["landed", "landed", "landed"]);
    await harness.clock.advance(25 * 3_600_000);
    expect([harness.store.records.size, harness.pipeline.snapshot().ended]).toEqual([0, 0]);
  });

  it("include the end of a record that is unreadable after a restart", async () => {
    const before = new Harness();
    const facts = before.facts();
    await before.submit(facts);
    const harness = new Harness();
    for (const [key, record] of before.store.records) harness.store.records.set(key, record);
    const restored = harness.pipeline.restore();
    await harness.clock.advance(100);
    expect(await restored).toBe(0);
    expect(await harness.state(facts)).toBe("expired bytes_unreadable");
  });

  it("show listeners an end from before a restart, when the transaction is submitted again", async () => {
    const before = new Harness();
    const facts = before.facts();
    await before.submit(facts);
    before.answers.set(facts.signature, { slot: 8n, err: null, commitment: "finalized" });
    await before.clock.advance(20_000);
    expect(await before.state(facts)).toBe("landed finalized");
    const harness = new Harness();
    for (const [key, record] of before.store.records) harness.store.records.set(key, record);
    const kinds: string[] = [];
    harness.pipeline.subscribe("ann", (_, event) => kinds.push(event.kind));
    expect(await harness.submit(facts)).toBe("accepted");
    await harness.clock.advance(5_000);
    expect(kinds.filter((kind) => kind === "received" || kind === "landed")).toEqual([
      "received",
      "landed",
    ]);
  });

  it.each([
    [0, []],
    [1, [2]],
    [null, [2, 3, 4]],
  ])("continues after a restart: resendsMax %s, attempts %j", async (resendsMax, attempts) => {
    const before = new Harness();
    const facts = before.facts();
    await before.submit(facts, { resendsMax });
    const harness = new Harness();
    harness.readable.push(facts);
    for (const [key, record] of before.store.records) harness.store.records.set(key, record);
    expect(await harness.pipeline.restore()).toBe(1);
    await harness.clock.advance(5_000);
    expect(harness.outbound.map(({ attempt }) => attempt)).toEqual(attempts);
    harness.refuseAll(true); // the earlier process's attempt is unknown
    expect(await harness.state(facts)).toBe("open null");
  });

  it("ends with close and leaves no timer", async () => {
    const harness = new Harness();
    await harness.submit(harness.facts());
    harness.pipeline.close();
    await harness.clock.advance(100);
    expect(harness.clock.pending).toBe(0);
  });
});
