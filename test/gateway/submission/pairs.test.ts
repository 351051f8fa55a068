// Pairs of one durable nonce, one promise at a time: both are taken or none, one lands, one is superseded.

import { describe, expect, it } from "vitest";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { Harness } from "./harness.ts";
import { kindsOf, land, landed, sentOf } from "./pair-steps.ts";

describe("a pair", () => {
  it("is in the queues before the call returns, and kept by one write", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    const submitted = desk.submitPair(pair);
    expect([sentOf(desk, pair), desk.store.records.size]).toEqual(["AB", 0]);
    expect(await submitted).toBe("accepted");
    expect([desk.store.records.size, desk.pipeline.snapshot().store.puts]).toEqual([2, 1n]);
    for (const facts of pair) expect(await kindsOf(desk, facts)).toEqual(["received", "queued"]);
  });

  it("is refused whole when one of them has no way, before anything is offered", async () => {
    const desk = new Harness({}, { routes: [{ minimumTipLamports: 20_000n }] });
    const [first, second] = desk.pair();
    const poor = { ...second, tipLamports: 19_999n };
    const told = await desk.submitPair([first, poor]);
    expect(told).toMatch(new RegExp(`^tip_too_low: transaction ${poor.signature}: .*got 19999`));
    expect([desk.parcels.length, desk.pipeline.snapshot().open]).toEqual([0, 0]);
    expect(await desk.state(first)).toBe("unknown");
  });

  it.each([{ openMax: 1 }, { openPerAccountMax: 1 }])("needs room for both: %j", async (limits) => {
    const desk = new Harness(limits);
    expect(await desk.submitPair(desk.pair())).toMatch(/^overloaded: open transactions.* 0 and 2/);
    expect([desk.parcels.length, desk.pipeline.snapshot().open]).toEqual([0, 0]);
  });

  it("is remembered by nobody when no queue has room for either", async () => {
    const desk = new Harness();
    desk.takes = false;
    const pair = desk.pair();
    expect(await desk.submitPair(pair)).toBe(
      "no_route: queues: expected room in one of swqos-1, got none",
    );
    desk.takes = true;
    await desk.clock.advance(5_000);
    expect([desk.parcels.length, desk.pipeline.snapshot().open]).toEqual([0, 0]);
    expect(desk.store.records.size).toBe(0);
  });

  it.each([0, 1])(
    "is accepted when one is taken; the other leaves soon, once: %i",
    async (which) => {
      const desk = new Harness();
      const pair = desk.pair();
      const other = pair[which === 0 ? 0 : 1];
      desk.crowded.add(other.signature);
      expect(await desk.submitPair(pair, { resendsMax: 0 })).toBe("accepted");
      await desk.clock.advance(500);
      expect([sentOf(desk, pair), await kindsOf(desk, other)]).toEqual(["BA"[which], ["received"]]);
      desk.crowded.clear();
      await desk.clock.advance(300);
      expect(await kindsOf(desk, other)).toEqual(["received", "queued"]);
      await desk.clock.advance(10_000);
      expect([desk.parcels.length, desk.pipeline.snapshot().resends]).toEqual([2, 0n]);
    },
  );

  it("whose other half the account sends first is not sent once more for it", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    desk.crowded.add(pair[1].signature);
    await desk.submitPair(pair, { resendsMax: 0 });
    desk.crowded.clear();
    expect(await desk.submitPair(pair, { resendsMax: 0 })).toBe("accepted");
    await desk.clock.advance(10_000);
    expect(sentOf(desk, pair)).toBe("AAB");
  });

  it("whose other half was sent alone before and is taken later resends nothing", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submit(pair[1], { resendsMax: 0 });
    desk.crowded.add(pair[1].signature);
    expect(await desk.submitPair(pair, { resendsMax: 0 })).toBe("accepted");
    desk.crowded.clear();
    await desk.clock.advance(10_000);
    expect([sentOf(desk, pair), desk.pipeline.snapshot().resends]).toEqual(["BAB", 0n]);
  });

  it("that waits for protection waits together", async () => {
    const desk = new Harness({ heldMax: 2 });
    desk.leaders = { slot: 4n, current: "A", next: "bad" };
    const pair = desk.pair();
    expect(await desk.submitPair(pair, { mevProtect: true })).toBe("accepted");
    expect([desk.parcels.length, desk.pipeline.snapshot().held]).toEqual([0, 2]);
    expect(await desk.submitPair(desk.pair(), { mevProtect: true })).toMatch(/^overloaded: held/);
    expect(desk.pipeline.snapshot().open).toBe(2);
    desk.leaders = { slot: 9n, current: "C", next: "D" };
    await desk.clock.advance(50);
    expect([sentOf(desk, pair), desk.pipeline.snapshot().held]).toEqual(["AB", 0]);
  });

  it("needs room for both among those that wait", async () => {
    const desk = new Harness({ heldMax: 1 });
    desk.leaders = { slot: 4n, current: "A", next: "bad" };
    expect(await desk.submitPair(desk.pair(), { mevProtect: true })).toMatch(/^overloaded: held/);
    expect(desk.pipeline.snapshot()).toMatchObject({ held: 0, open: 0 });
  });

  it("that cannot be kept is sent no more, and nothing is left of what was not sent", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    desk.store.failShare = 1;
    desk.crowded.add(pair[1].signature);
    expect(await desk.submitPair(pair)).toMatch(/^store_failed: .* it may have been sent$/);
    desk.crowded.clear();
    desk.store.failShare = 0;
    await desk.clock.advance(5_000);
    expect([sentOf(desk, pair), await desk.state(pair[1])]).toEqual(["A", "unknown"]);
    expect(await desk.submitPair(pair)).toBe("accepted");
    expect(sentOf(desk, pair)).toBe("AAB");
  });

  it("is two of one account, one nonce and one value", async () => {
    const desk = new Harness();
    const [first, second] = desk.pair();
    const others = [
      desk.facts(),
      desk.facts(true),
      { ...second, nonce: null },
      { ...second, lifetime: new Uint8Array(32) },
      { ...second, nonce: second.nonce && { ...second.nonce, authority: second.lifetime } },
    ];
    for (const other of others) {
      expect(await desk.submitPair([first, other])).toMatch(/^pair_invalid: pair: expected two/);
    }
    expect(await desk.submitPair([second, second])).toMatch(/^pair_invalid/);
    expect(desk.parcels.length).toBe(0);
  });
});

describe("the same pair again", () => {
  it("in either order is one lifecycle each, and another attempt unless it comes too soon", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    const options = { resendsMax: 0 };
    const both = [desk.submitPair(pair, options), desk.submitPair([pair[1], pair[0]], options)];
    expect(sentOf(desk, pair)).toBe("AB");
    expect(await Promise.all(both)).toEqual(["accepted", "accepted"]);
    expect(await desk.submitPair([pair[1], pair[0]], options)).toBe("accepted");
    expect([sentOf(desk, pair), desk.store.records.size]).toEqual(["ABBA", 2]);
    expect(desk.pipeline.snapshot().open).toBe(2);
  });

  it("by another account has its own records", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    expect(await desk.submitPair(pair, {}, "ben")).toBe("accepted");
    await landed(desk, pair);
    expect(await desk.state(pair[1], "ben")).toBe("superseded sibling_landed");
    expect(await desk.submitPair(pair, {}, "cat")).toBe("accepted");
    expect(await desk.state(pair[0], "cat")).toBe("landed confirmed");
    expect([desk.store.records.size, sentOf(desk, pair)]).toEqual([6, "ABAB"]);
  });

  it("takes in one that was submitted alone", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submit(pair[1]);
    expect(await desk.submitPair(pair)).toBe("accepted");
    const statuses = await desk.pipeline.statuses(
      "ann",
      pair.map(({ signature }) => signature),
    );
    expect(statuses.map((status) => status?.method)).toEqual(["sendIdeal", "sendIdeal"]);
    expect(desk.parcels.map(({ attempt }) => attempt)).toEqual([1, 1, 2]);
    await desk.clock.advance(2_000);
    expect(sentOf(desk, pair)).toBe("BABAB");
  });

  it("while one is in a block is accepted; the other is not sent", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    desk.see(pair[0], 5n);
    expect(await desk.submitPair(pair)).toBe("accepted");
    expect(sentOf(desk, pair)).toBe("ABA");
  });

  it("is accepted, and not sent, when one of it landed; also by the next process", async () => {
    let desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    land(desk, pair[0]);
    await desk.clock.advance(600);
    while ((await desk.state(pair[0])) === "open null") await desk.clock.advance(25);
    expect(await desk.submitPair(pair)).toBe("accepted"); // the other one has not ended yet, or just
    await landed(desk, pair);
    expect([await desk.submitPair(pair), sentOf(desk, pair)]).toEqual(["accepted", "AB"]);
    desk = await desk.next(...pair);
    expect(await desk.submitPair(pair)).toBe("accepted");
    expect(await desk.state(pair[0])).toBe("landed confirmed");
    expect(await desk.state(pair[1])).toBe("superseded sibling_landed");
    expect(desk.store.records.size).toBe(2);
  });

  it("is kept before it is accepted, also when it could not be kept at first", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    desk.store.failShare = 1;
    expect(await desk.submitPair(pair)).toMatch(/^store_failed/);
    land(desk, pair[0]);
    while ((await desk.state(pair[0])) === "open null") await desk.clock.advance(25);
    desk.store.failShare = 0;
    expect(await desk.submitPair(pair)).toBe("accepted");
    const states = [...desk.store.records.values()].map(({ state }) => state);
    expect(states.toSorted()).toEqual(["landed", "open"]);
  });

  it("tells others, in the next process, who landed", async () => {
    const before = new Harness();
    const pair = before.pair();
    await before.submitPair(pair);
    await landed(before, pair);
    const desk = await before.next();
    expect(await desk.submit(pair[1], {}, "ben")).toBe("accepted");
    expect(await desk.submit(pair[1])).toMatch(/^no_route: .* as superseded \(sibling_landed\)$/);
    const [status] = await desk.pipeline.statuses("ben", [pair[1].signature]);
    expect(status?.events.at(-1)).toMatchObject({ sibling: pair[0].signature });
  });

  it("of which one landed, and the other is new, can land no more; also for the next process", async () => {
    let desk = new Harness();
    const pair = desk.pair();
    await desk.submit(pair[0]);
    land(desk, pair[0]);
    await desk.clock.advance(2_000);
    for (const restarts of [0, 1]) {
      if (restarts > 0) desk = await desk.next();
      expect(await desk.submitPair(pair)).toMatch(/^no_route: .* ended as landed \(confirmed\)$/);
      expect(await desk.state(pair[1])).toBe("unknown");
    }
    expect([...desk.store.records.values()].map(({ state }) => state)).toEqual(["landed"]);
  });

  it("of which both ended otherwise can land no more", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    desk.nonce = "another value";
    await desk.clock.advance(20_000);
    expect(await desk.state(pair[0])).toBe("superseded nonce_advanced");
    expect(await desk.submitPair(pair)).toMatch(/^no_route: .* as superseded \(nonce_advanced\)$/);
    const next = await desk.next(...pair);
    expect(await next.submitPair(pair)).toMatch(/^no_route: .* as superseded \(nonce_advanced\)$/);
    expect(next.pipeline.snapshot().open).toBe(0);
  });

  it("that has ended otherwise leaves its nonce to others", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    desk.nonce = null;
    await desk.clock.advance(20_000);
    expect(await desk.state(pair[1])).toBe("expired nonce_unknown");
    expect(await desk.submitPair(desk.pair(pair[0]))).toBe("accepted");
  });
});

describe("when one of a pair", () => {
  it("is in a block the other is not sent; when the block is gone both are, at once", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    desk.see(pair[0], 5n);
    desk.answers.set(pair[0].signature, { slot: 5n, err: null, commitment: "processed" });
    await desk.clock.advance(8_000);
    expect(sentOf(desk, pair)).toBe("AB");
    desk.answers.clear();
    while (desk.pipeline.snapshot().watch.lost === 0n) await desk.clock.advance(25);
    await desk.clock.advance(50);
    expect(sentOf(desk, pair).slice(2).split("").toSorted()).toEqual(["A", "B"]);
  });

  it("is in a block, one that nobody took yet waits, and leaves when the block is gone", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    desk.crowded.add(pair[1].signature);
    await desk.submitPair(pair, { resendsMax: 0 });
    desk.see(pair[0], 5n);
    desk.crowded.clear();
    await desk.clock.advance(2_500);
    expect(sentOf(desk, pair)).toBe("A");
    await desk.clock.advance(3_000);
    expect(sentOf(desk, pair)).toBe("AB");
  });

  it.each([
    [null, "landed"],
    [{ InstructionError: [1, { Custom: 1 }] }, "landed_failed"],
  ])("lands (%j), the other is superseded within a second and not sent", async (err, state) => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    await desk.clock.advance(12_000); // its turn with the node has become rare
    const sent = desk.parcels.length;
    land(desk, pair[1], { err });
    while ((await desk.state(pair[1])) === "open null") await desk.clock.advance(25);
    expect(await desk.state(pair[1])).toBe(`${state} confirmed`);
    await desk.clock.advance(1_000);
    expect(await desk.state(pair[0])).toBe("superseded sibling_landed");
    const [other] = await desk.pipeline.statuses("ann", [pair[0].signature]);
    expect(other?.events.at(-1)).toMatchObject({ sibling: pair[1].signature });
    const late = sentOf(desk, pair).slice(sent);
    expect(late.replaceAll("B", "").length).toBeLessThanOrEqual(1); // before anybody could know
    await desk.clock.advance(10_000);
    expect([desk.parcels.length, desk.pipeline.snapshot().open]).toEqual([sent + late.length, 0]);
  });

  it("lands, a node that is behind only delays the other's end", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    const value = desk.nonce;
    land(desk, pair[0]);
    desk.nonce = value;
    await desk.clock.advance(4_000);
    expect([await desk.state(pair[0]), await desk.state(pair[1])]).toEqual([
      "landed confirmed",
      "open null",
    ]);
    expect(sentOf(desk, pair)).toBe("AB");
    desk.nonce = "another value";
    await desk.clock.advance(1_000);
    expect(await desk.state(pair[1])).toBe("superseded sibling_landed");
  });

  it("lands by a blockhash that is still valid, the other is awaited", async () => {
    const desk = new Harness();
    const pair = desk.pair();
    await desk.submitPair(pair);
    land(desk, pair[0]);
    desk.isBlockhashGone = false;
    await desk.clock.advance(30_000);
    expect(await desk.state(pair[1])).toBe("open null");
    desk.goneToldNs = null;
    desk.isBlockhashGone = true;
    while (desk.goneToldNs === null) await desk.clock.advance(25);
    await desk.clock.advance(4_500); // a node that is behind may yet tell of it
    expect(await desk.state(pair[1])).toBe("open null");
    land(desk, pair[1]);
    await desk.clock.advance(2_000);
    expect(await desk.state(pair[1])).toBe("landed confirmed");
  });

  it("is seen, and there is no node, that is the end of both", async () => {
    const desk = new Harness({}, { node: false });
    const pair = desk.pair();
    await desk.submitPair(pair);
    desk.see(pair[1], 5n);
    expect(await desk.state(pair[0])).toBe("superseded sibling_landed");
    expect(await desk.state(pair[1])).toBe("landed seen_in_shreds");
    await desk.clock.advance(10_000);
    expect([sentOf(desk, pair), desk.pipeline.snapshot().open]).toEqual(["AB", 0]);
  });
});

describe("who is told of spent nonces", () => {
  it("hears once of each block and of the end, and nothing of other transactions", async () => {
    const told: string[] = [];
    const advanced = (account: Uint8Array) => void told.push(pubkeyOf(account));
    const desk = new Harness({}, { nonces: { advanced } });
    const pair = desk.pair();
    const name = pubkeyOf(pair[0].nonce?.account ?? new Uint8Array(32));
    const plain = desk.facts();
    await desk.submit(plain);
    land(desk, plain);
    await desk.submitPair(pair);
    await desk.submitPair(pair, {}, "ben");
    expect(told).toEqual([]);
    desk.see(pair[0], 5n);
    desk.see(pair[0], 5n);
    expect(told).toEqual([name]);
    desk.see(pair[0], 6n);
    expect(told).toEqual([name, name]);
    land(desk, pair[0], { err: "Bad" });
    await desk.clock.advance(5_000);
    expect(told).toEqual([name, name, name]);
    expect(desk.pipeline.snapshot().open).toBe(0);
  });
});
