// Guarantees for pairs of one durable nonce: both are accepted or none, one lands, one is
// superseded.

import { describe, expect, it } from "vitest";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { Harness } from "./harness.ts";
import { kindsOf, land, landed, sentOf } from "./pair-steps.ts";

describe("a pair", () => {
  it("is queued before the call returns, and stored by one write", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    const submitted = harness.submitPair(pair);
    expect([sentOf(harness, pair), harness.store.records.size]).toEqual(["AB", 0]);
    expect(await submitted).toBe("accepted");
    expect([harness.store.records.size, harness.pipeline.snapshot().writer.puts]).toEqual([2, 1n]);
    for (const facts of pair) expect(await kindsOf(harness, facts)).toEqual(["received", "queued"]);
  });

  it("is refused completely if one has no route, before anything is offered", async () => {
    const harness = new Harness({}, { routes: [{ minimumTipLamports: 20_000n }] });
    const [first, second] = harness.pair();
    const poor = { ...second, tipLamports: 19_999n };
    const advances = await harness.submitPair([first, poor]);
    expect(advances).toBe(
      `tip_too_low: transaction ${poor.signature}: tip 19999 lamports, minimum 20000 lamports`,
    );
    expect([harness.outbound.length, harness.pipeline.snapshot().open]).toEqual([0, 0]);
    expect(await harness.state(first)).toBe("unknown");
  });

  it.each([{ openMax: 1 }, { openPerAccountMax: 1 }])(
    "requires capacity for both: %j",
    async (limits) => {
      const harness = new Harness(limits);
      expect(await harness.submitPair(harness.pair())).toMatch(
        /^overloaded: too many open transactions.* 0, and 2 more/,
      );
      expect([harness.outbound.length, harness.pipeline.snapshot().open]).toEqual([0, 0]);
    },
  );

  it("leaves no state if no queue accepts either", async () => {
    const harness = new Harness();
    harness.takes = false;
    const pair = harness.pair();
    expect(await harness.submitPair(pair)).toBe(
      "no_route: the queues of all routes are full; retry in a second",
    );
    harness.takes = true;
    await harness.clock.advance(5_000);
    expect([harness.outbound.length, harness.pipeline.snapshot().open]).toEqual([0, 0]);
    expect(harness.store.records.size).toBe(0);
  });

  it.each([0, 1])("is accepted if one is; the other is sent soon, once: %i", async (which) => {
    const harness = new Harness();
    const pair = harness.pair();
    const other = pair[which === 0 ? 0 : 1];
    harness.full.add(other.signature);
    expect(await harness.submitPair(pair, { resendsMax: 0 })).toBe("accepted");
    await harness.clock.advance(500);
    expect([sentOf(harness, pair), await kindsOf(harness, other)]).toEqual([
      "BA"[which],
      ["received"],
    ]);
    harness.full.clear();
    await harness.clock.advance(300);
    expect(await kindsOf(harness, other)).toEqual(["received", "queued"]);
    await harness.clock.advance(10_000);
    expect([harness.outbound.length, harness.pipeline.snapshot().resends]).toEqual([2, 0n]);
  });

  it("is not sent again for a transaction that the account submitted first", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    harness.full.add(pair[1].signature);
    await harness.submitPair(pair, { resendsMax: 0 });
    harness.full.clear();
    expect(await harness.submitPair(pair, { resendsMax: 0 })).toBe("accepted");
    await harness.clock.advance(10_000);
    expect(sentOf(harness, pair)).toBe("AAB");
  });

  it("causes no resend for a transaction that was sent alone before", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submit(pair[1], { resendsMax: 0 });
    harness.full.add(pair[1].signature);
    expect(await harness.submitPair(pair, { resendsMax: 0 })).toBe("accepted");
    harness.full.clear();
    await harness.clock.advance(10_000);
    expect([sentOf(harness, pair), harness.pipeline.snapshot().resends]).toEqual(["BAB", 0n]);
  });

  it("is held for protection together", async () => {
    const harness = new Harness({ heldMax: 2 });
    harness.leaders = { slot: 4n, current: "A", next: "bad" };
    const pair = harness.pair();
    expect(await harness.submitPair(pair, { mevProtect: true })).toBe("accepted");
    expect([harness.outbound.length, harness.pipeline.snapshot().held]).toEqual([0, 2]);
    expect(await harness.submitPair(harness.pair(), { mevProtect: true })).toMatch(
      /^overloaded: too many submissions wait for MEV protection/,
    );
    expect(harness.pipeline.snapshot().open).toBe(2);
    harness.leaders = { slot: 9n, current: "C", next: "D" };
    await harness.clock.advance(50);
    expect([sentOf(harness, pair), harness.pipeline.snapshot().held]).toEqual(["AB", 0]);
  });

  it("requires capacity for both among held submissions", async () => {
    const harness = new Harness({ heldMax: 1 });
    harness.leaders = { slot: 4n, current: "A", next: "bad" };
    expect(await harness.submitPair(harness.pair(), { mevProtect: true })).toMatch(
      /^overloaded: too many submissions wait for MEV protection/,
    );
    expect(harness.pipeline.snapshot()).toMatchObject({ held: 0, open: 0 });
  });

  it("that cannot be stored is no longer sent, and leaves no state", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    harness.store.failShare = 1;
    harness.full.add(pair[1].signature);
    expect(await harness.submitPair(pair)).toMatch(
      /^store_failed: .* not persisted and may have been sent$/,
    );
    harness.full.clear();
    harness.store.failShare = 0;
    await harness.clock.advance(5_000);
    expect([sentOf(harness, pair), await harness.state(pair[1])]).toEqual(["A", "unknown"]);
    expect(await harness.submitPair(pair)).toBe("accepted");
    expect(sentOf(harness, pair)).toBe("AAB");
  });

  it("consists of two transactions of one account, nonce and value", async () => {
    const harness = new Harness();
    const [first, second] = harness.pair();
    const others = [
      harness.facts(),
      harness.facts(true),
      { ...second, nonce: null },
      { ...second, lifetime: new Uint8Array(32) },
      { ...second, nonce: second.nonce && { ...second.nonce, authority: second.lifetime } },
    ];
    for (const other of others) {
      expect(await harness.submitPair([first, other])).toMatch(
        /^pair_invalid: invalid pair: expected two/,
      );
    }
    expect(await harness.submitPair([second, second])).toMatch(/^pair_invalid/);
    expect(harness.outbound.length).toBe(0);
  });
});

describe("the same pair again", () => {
  it("in any order has one lifecycle each, and makes another attempt unless it comes too soon", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    const options = { resendsMax: 0 };
    const both = [
      harness.submitPair(pair, options),
      harness.submitPair([pair[1], pair[0]], options),
    ];
    expect(sentOf(harness, pair)).toBe("AB");
    expect(await Promise.all(both)).toEqual(["accepted", "accepted"]);
    expect(await harness.submitPair([pair[1], pair[0]], options)).toBe("accepted");
    expect([sentOf(harness, pair), harness.store.records.size]).toEqual(["ABBA", 2]);
    expect(harness.pipeline.snapshot().open).toBe(2);
  });

  it("from another account has its own records", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    expect(await harness.submitPair(pair, {}, "ben")).toBe("accepted");
    await landed(harness, pair);
    expect(await harness.state(pair[1], "ben")).toBe("superseded sibling_landed");
    expect(await harness.submitPair(pair, {}, "cat")).toBe("accepted");
    expect(await harness.state(pair[0], "cat")).toBe("landed confirmed");
    expect([harness.store.records.size, sentOf(harness, pair)]).toEqual([6, "ABAB"]);
  });

  it("includes one that was submitted alone", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submit(pair[1]);
    expect(await harness.submitPair(pair)).toBe("accepted");
    const statuses = await harness.pipeline.statuses(
      "ann",
      pair.map(({ signature }) => signature),
    );
    expect(statuses.map((status) => status?.method)).toEqual(["sendIdeal", "sendIdeal"]);
    expect(harness.outbound.map(({ attempt }) => attempt)).toEqual([1, 1, 2]);
    await harness.clock.advance(2_000);
    expect(sentOf(harness, pair)).toBe("BABAB");
  });

  it("is accepted while one is in a block; the other is not sent", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    harness.observe(pair[0], 5n);
    expect(await harness.submitPair(pair)).toBe("accepted");
    expect(sentOf(harness, pair)).toBe("ABA");
  });

  it("is accepted but not sent after one landed, also in the next process", async () => {
    let harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    land(harness, pair[0]);
    await harness.clock.advance(600);
    while ((await harness.state(pair[0])) === "open null") await harness.clock.advance(25);
    expect(await harness.submitPair(pair)).toBe("accepted"); // the other one has not ended, or has just ended
    await landed(harness, pair);
    expect([await harness.submitPair(pair), sentOf(harness, pair)]).toEqual(["accepted", "AB"]);
    harness = await harness.next(...pair);
    expect(await harness.submitPair(pair)).toBe("accepted");
    expect(await harness.state(pair[0])).toBe("landed confirmed");
    expect(await harness.state(pair[1])).toBe("superseded sibling_landed");
    expect(harness.store.records.size).toBe(2);
  });

  it("is stored before it is accepted, even after a failed write", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    harness.store.failShare = 1;
    expect(await harness.submitPair(pair)).toMatch(/^store_failed/);
    land(harness, pair[0]);
    while ((await harness.state(pair[0])) === "open null") await harness.clock.advance(25);
    harness.store.failShare = 0;
    expect(await harness.submitPair(pair)).toBe("accepted");
    const states = [...harness.store.records.values()].map(({ state }) => state);
    expect(states.toSorted()).toEqual(["landed", "open"]);
  });

  it("reports in the next process which one landed", async () => {
    const before = new Harness();
    const pair = before.pair();
    await before.submitPair(pair);
    await landed(before, pair);
    const harness = await before.next();
    expect(await harness.submit(pair[1], {}, "ben")).toBe("accepted");
    expect(await harness.submit(pair[1])).toMatch(
      /^no_route: .* as superseded \(sibling_landed\) and cannot land again/,
    );
    const [status] = await harness.pipeline.statuses("ben", [pair[1].signature]);
    expect(status?.events.at(-1)).toMatchObject({ sibling: pair[0].signature });
  });

  it("names the landed one in the next process, after a kill between the two ends", async () => {
    const before = new Harness();
    const pair = before.pair();
    await before.submitPair(pair);
    land(before, pair[0]);
    const stateOf = (facts: TransactionFacts) =>
      before.store.records.get(`ann ${facts.signature}`)?.state;
    while (stateOf(pair[0]) !== "landed") await before.clock.advance(5);
    expect(stateOf(pair[1])).toBe("open");
    const harness = await before.next(...pair);
    await harness.clock.advance(60_000);
    expect(await harness.state(pair[1])).toBe("superseded sibling_landed");
    const [status] = await harness.pipeline.statuses("ann", [pair[1].signature]);
    expect(status?.events.at(-1)).toMatchObject({ sibling: pair[0].signature });
    expect(sentOf(harness, pair)).toBe(""); // it cannot land any more
  });

  it("with one landed and one new transaction can no longer land, also in the next process", async () => {
    let harness = new Harness();
    const pair = harness.pair();
    await harness.submit(pair[0]);
    land(harness, pair[0]);
    await harness.clock.advance(2_000);
    for (const restarts of [0, 1]) {
      if (restarts > 0) harness = await harness.next();
      expect(await harness.submitPair(pair)).toMatch(
        /^no_route: .* ended as landed \(confirmed\) and cannot land again/,
      );
      expect(await harness.state(pair[1])).toBe("unknown");
    }
    expect([...harness.store.records.values()].map(({ state }) => state)).toEqual(["landed"]);
  });

  it("that is refused leaves a transaction that a later call submitted meanwhile", async () => {
    const before = new Harness();
    const pair = before.pair();
    await before.submit(pair[0]);
    land(before, pair[0]);
    await before.clock.advance(2_000);
    const harness = await before.next();
    // Only the store knows the landing, so the single call arrives before the pair is refused.
    const outcomes = [harness.submitPair(pair), harness.submit(pair[1])];
    expect(await Promise.all(outcomes)).toEqual([
      expect.stringMatching(/^no_route: .* and cannot land again/),
      "accepted",
    ]);
    expect(harness.store.records.get(`ann ${pair[1].signature}`)?.state).toBe("open");
  });

  it("with two other ends can no longer land", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    harness.nonce = "another value";
    await harness.clock.advance(20_000);
    expect(await harness.state(pair[0])).toBe("superseded nonce_advanced");
    expect(await harness.submitPair(pair)).toMatch(
      /^no_route: .* as superseded \(nonce_advanced\) and cannot land again/,
    );
    const next = await harness.next(...pair);
    expect(await next.submitPair(pair)).toMatch(
      /^no_route: .* as superseded \(nonce_advanced\) and cannot land again/,
    );
    expect(next.pipeline.snapshot().open).toBe(0);
  });

  it("with other ends releases its nonce", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    harness.nonce = null;
    await harness.clock.advance(20_000);
    expect(await harness.state(pair[1])).toBe("expired nonce_unknown");
    expect(await harness.submitPair(harness.pair(pair[0]))).toBe("accepted");
  });
});

describe("when one of a pair", () => {
  it("is in a block, the other is not sent; if the block is abandoned, both are sent immediately", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    harness.observe(pair[0], 5n);
    harness.answers.set(pair[0].signature, { slot: 5n, err: null, commitment: "processed" });
    await harness.clock.advance(8_000);
    expect(sentOf(harness, pair)).toBe("AB");
    harness.answers.clear();
    while (harness.pipeline.snapshot().observer.blocksAbandoned === 0n)
      await harness.clock.advance(25);
    await harness.clock.advance(50);
    expect(sentOf(harness, pair).slice(2).split("").toSorted()).toEqual(["A", "B"]);
  });

  it("is in a block, an unaccepted one waits, and is sent if the block is abandoned", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    harness.full.add(pair[1].signature);
    await harness.submitPair(pair, { resendsMax: 0 });
    harness.observe(pair[0], 5n);
    harness.full.clear();
    await harness.clock.advance(2_500);
    expect(sentOf(harness, pair)).toBe("A");
    await harness.clock.advance(3_000);
    expect(sentOf(harness, pair)).toBe("AB");
  });

  it.each([
    [null, "landed"],
    [{ InstructionError: [1, { Custom: 1 }] }, "landed_failed"],
  ])("lands (%j), the other is superseded within a second and not sent", async (err, state) => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    await harness.clock.advance(12_000); // the node is queried rarely about it
    const sent = harness.outbound.length;
    land(harness, pair[1], { err });
    while ((await harness.state(pair[1])) === "open null") await harness.clock.advance(25);
    expect(await harness.state(pair[1])).toBe(`${state} confirmed`);
    await harness.clock.advance(1_000);
    expect(await harness.state(pair[0])).toBe("superseded sibling_landed");
    const [other] = await harness.pipeline.statuses("ann", [pair[0].signature]);
    expect(other?.events.at(-1)).toMatchObject({ sibling: pair[1].signature });
    const late = sentOf(harness, pair).slice(sent);
    expect(late.replaceAll("B", "").length).toBeLessThanOrEqual(1); // before any process could know
    await harness.clock.advance(10_000);
    expect([harness.outbound.length, harness.pipeline.snapshot().open]).toEqual([
      sent + late.length,
      0,
    ]);
  });

  it("lands, a lagging node only delays the other's end", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    const value = harness.nonce;
    land(harness, pair[0]);
    harness.nonce = value;
    await harness.clock.advance(4_000);
    expect([await harness.state(pair[0]), await harness.state(pair[1])]).toEqual([
      "landed confirmed",
      "open null",
    ]);
    expect(sentOf(harness, pair)).toBe("AB");
    harness.nonce = "another value";
    await harness.clock.advance(1_000);
    expect(await harness.state(pair[1])).toBe("superseded sibling_landed");
  });

  it("lands with a blockhash that a lagging node does not know yet, the other is awaited", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    const aheadOfNode = harness.clock.nowNs() / 400_000_000n + 1_000n;
    land(harness, pair[0], { slot: aheadOfNode });
    await harness.clock.advance(4_000);
    expect([await harness.state(pair[0]), await harness.state(pair[1])]).toEqual([
      "landed confirmed",
      "open null",
    ]);
    harness.isBlockhashExpired = false;
    land(harness, pair[1]);
    await harness.clock.advance(2_000);
    expect(await harness.state(pair[1])).toBe("landed confirmed");
  });

  it("lands with a valid blockhash, the other is awaited", async () => {
    const harness = new Harness();
    const pair = harness.pair();
    await harness.submitPair(pair);
    land(harness, pair[0]);
    harness.isBlockhashExpired = false;
    await harness.clock.advance(30_000);
    expect(await harness.state(pair[1])).toBe("open null");
    harness.expiryReportedNs = null;
    harness.isBlockhashExpired = true;
    while (harness.expiryReportedNs === null) await harness.clock.advance(25);
    await harness.clock.advance(4_500); // a lagging node may still report it
    expect(await harness.state(pair[1])).toBe("open null");
    land(harness, pair[1]);
    await harness.clock.advance(2_000);
    expect(await harness.state(pair[1])).toBe("landed confirmed");
  });

  it("is observed without a node, both end", async () => {
    const harness = new Harness({}, { node: false });
    const pair = harness.pair();
    await harness.submitPair(pair);
    harness.observe(pair[1], 5n);
    expect(await harness.state(pair[0])).toBe("superseded sibling_landed");
    expect(await harness.state(pair[1])).toBe("landed seen_in_shreds");
    await harness.clock.advance(10_000);
    expect([sentOf(harness, pair), harness.pipeline.snapshot().open]).toEqual(["AB", 0]);
  });
});

describe("the nonce listener", () => {
  it("is called once for each block and for the end, and for no other transactions", async () => {
    const advances: string[] = [];
    const advanced = (account: Uint8Array) => void advances.push(pubkeyOf(account));
    const harness = new Harness({}, { nonces: { advanced } });
    const pair = harness.pair();
    const name = pubkeyOf(pair[0].nonce?.account ?? new Uint8Array(32));
    const plain = harness.facts();
    await harness.submit(plain);
    land(harness, plain);
    await harness.submitPair(pair);
    await harness.submitPair(pair, {}, "ben");
    expect(advances).toEqual([]);
    harness.observe(pair[0], 5n);
    harness.observe(pair[0], 5n);
    expect(advances).toEqual([name]);
    harness.observe(pair[0], 6n);
    expect(advances).toEqual([name, name]);
    land(harness, pair[0], { err: "Bad" });
    await harness.clock.advance(5_000);
    expect(advances).toEqual([name, name, name]);
    expect(harness.pipeline.snapshot().open).toBe(0);
  });
});
