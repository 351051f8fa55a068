// Landing confirmation on the sandbox chain: every outcome of the real virtual machine, and failing
// nodes and stores.

import { SystemProgram } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { addressOf, alice, bob, transferOf, wallet } from "../../support/transactions/chain.ts";
import { shredWallet } from "./harness.ts";
import { registrationOf, Stage } from "./stage.ts";

const nonceAccount = wallet(50);

describe("a pending registration", () => {
  it("counts after its landing: at the time of registration, with the paid amount", async () => {
    const stage = await Stage.open();
    const wire = stage.tip(10_000n);
    const registeredMs = stage.book.ms;
    const signature = await stage.register(wire);
    stage.run.chain.send(wire);
    await stage.seconds(6);
    expect(stage.row(signature)).toMatchObject({
      state: "counted",
      countedLamports: 10_000n,
      countedOrder: 1n,
      reason: null,
      registeredMs,
    });
    const { settledMs = 0 } = stage.row(signature) ?? {};
    const lamports = 10_000n;
    expect(stage.book.tips).toEqual([
      { order: 1n, accountId: "a_1", lamports, registeredMs, countedMs: settledMs },
    ]);
    expect(settledMs).toBeGreaterThan(registeredMs);
    expect(stage.registrations.counts).toMatchObject({ pending: 0, lifetimes: 0, watched: 0 });
  });

  it("that landed before it was registered counts within a second", async () => {
    const stage = await Stage.open();
    const wire = stage.tip();
    stage.run.chain.send(wire);
    await stage.seconds(5);
    const signature = await stage.register(wire);
    await stage.seconds(1.5);
    expect(stage.row(signature)?.state).toBe("counted");
  });

  it("counts with the amount that the addresses retained if that is less", async () => {
    const stage = await Stage.open();
    const { run } = stage;
    const back = transferOf(shredWallet, alice, 4_000n);
    const wire = run.legacy([transferOf(alice, shredWallet, 10_000n), back], [alice, shredWallet]);
    const signature = await stage.register(wire);
    run.chain.send(wire);
    await stage.seconds(6);
    expect(stage.row(signature)).toMatchObject({ state: "counted", countedLamports: 6_000n });
    // More than the instructions paid does not belong to this registration.
    const more = run.legacy(
      [transferOf(alice, shredWallet, 10_000n), transferOf(bob, shredWallet, 7n)],
      [alice, bob],
    );
    const other = await stage.register(more);
    stage.rows.rows.set(other, { ...registrationOf(more), lamports: 10_000n });
    run.chain.send(more);
    await stage.seconds(6);
    expect(stage.row(other)).toMatchObject({ state: "counted" });
  });

  it("is dropped if the tip was returned in the same transaction", async () => {
    const stage = await Stage.open();
    const back = transferOf(shredWallet, alice, 10_000n);
    const wire = stage.run.legacy(
      [transferOf(alice, shredWallet, 10_000n), back],
      [alice, shredWallet],
    );
    const signature = await stage.register(wire);
    stage.run.chain.send(wire);
    await stage.seconds(6);
    expect(stage.row(signature)).toMatchObject({
      state: "dropped",
      reason: "refunded",
      countedLamports: null,
      countedOrder: null,
    });
    expect(stage.book.taken).toEqual([]);
  });

  it("is dropped if it landed days before its registered slot", async () => {
    const stage = await Stage.open();
    const wire = stage.tip();
    const registration = registrationOf(wire, { slot: 10_000_000_000n });
    await stage.rows.add(registration);
    stage.registrations.reserve("a_1");
    stage.registrations.add(registration);
    stage.run.chain.send(wire);
    await stage.seconds(6);
    expect(stage.row(registration.signature)).toMatchObject({
      state: "dropped",
      reason: "slot_too_old",
    });
  });

  it("is dropped if it landed and failed", async () => {
    const stage = await Stage.open();
    const tooMuch = transferOf(alice, bob, 10n ** 15n);
    const wire = stage.run.legacy([transferOf(alice, shredWallet, 10_000n), tooMuch], [alice]);
    const signature = await stage.register(wire);
    stage.run.chain.send(wire);
    await stage.seconds(6);
    expect(stage.row(signature)).toMatchObject({ state: "dropped", reason: "landed_failed" });
    expect(stage.registrations.counts.pending).toBe(0);
  });

  it("expires with its blockhash, after two confirmations, not earlier", async () => {
    const stage = await Stage.open();
    const wires = Array.from({ length: 20 }, (_, i) => stage.tip(5n, BigInt(i)));
    const [first = ""] = await Promise.all(wires.map((wire) => stage.register(wire)));
    await stage.seconds(55);
    expect(stage.row(first)?.state).toBe("pending");
    expect(
      stage.run.chain.isBlockhashValid(pubkeyOf(stage.row(first)?.lifetime ?? Buffer.alloc(0))),
    ).toBe(true);
    await stage.seconds(60);
    for (const row of stage.rows.rows.values()) {
      expect(row).toMatchObject({ state: "dropped", reason: "expired" });
    }
    // One blockhash, queried for all of them together.
    expect(stage.lifetimesAsked.length).toBeLessThan(20);
    expect(stage.registrations.counts).toMatchObject({ pending: 0, lifetimes: 0, watched: 0 });
  });

  it("is not dropped after one answer of a node that is behind", async () => {
    const stage = await Stage.open({ firstAskMs: 2_000 });
    stage.lies = 1;
    const wire = stage.tip();
    const signature = await stage.register(wire);
    await stage.seconds(40);
    expect(stage.lies).toBeLessThan(0);
    expect(stage.row(signature)?.state).toBe("pending");
    stage.run.chain.send(wire);
    await stage.seconds(10);
    expect(stage.row(signature)?.state).toBe("counted");
  });

  it("with a durable nonce waits for it, and expires when the nonce advances", async () => {
    const stage = await Stage.open();
    const { run } = stage;
    const keys = { noncePubkey: nonceAccount.publicKey, authorizedPubkey: alice.publicKey };
    const lamports = Number(run.chain.minimumBalanceForRentExemption(80));
    const create = SystemProgram.createNonceAccount({
      fromPubkey: alice.publicKey,
      ...keys,
      lamports,
    });
    run.chain.send(run.legacy(create.instructions, [alice, nonceAccount]));
    await stage.seconds(3);
    const data = run.chain.account(addressOf(nonceAccount))?.data ?? new Uint8Array(0);
    const value = pubkeyOf(data.slice(40, 72));
    const advance = SystemProgram.nonceAdvance(keys);
    const wireOf = (amount: bigint) =>
      run.legacy([advance, transferOf(alice, shredWallet, amount)], [alice], value);
    const [landing, waiting] = [wireOf(7n), wireOf(8n)];
    const signatures = [await stage.register(landing), await stage.register(waiting)];
    await stage.seconds(300);
    expect(signatures.map((each) => stage.row(each)?.state)).toEqual(["pending", "pending"]);
    run.chain.send(landing);
    await stage.seconds(400);
    expect(signatures.map((each) => stage.row(each)?.state)).toEqual(["counted", "dropped"]);
    expect(stage.row(signatures[1] ?? "")?.reason).toBe("expired");
  }, 60_000);

  it("without expiry is dropped when it cannot count any more", async () => {
    const stage = await Stage.open({
      ageMaxMs: 100_000,
      queryIntervalMaxMs: 10_000,
      firstAskMs: 10 ** 9,
    });
    const signature = await stage.register(stage.tip());
    await stage.seconds(99);
    expect(stage.row(signature)?.state).toBe("pending");
    await stage.seconds(15);
    expect(stage.row(signature)).toMatchObject({ state: "dropped", reason: "expired" });
  });

  it("counts a payment to an address that a reload removed", async () => {
    const stage = await Stage.open();
    const [one, two] = [stage.tip(5n, 1n), stage.tip(5n, 2n)];
    await stage.register(one);
    await stage.seconds(2);
    stage.addresses = new Set([addressOf(wallet(111))]);
    const signature = await stage.register(two);
    stage.run.chain.send(two);
    await stage.seconds(6);
    expect(stage.row(signature)).toMatchObject({ state: "counted", countedLamports: 5n });
  });
});

describe("questions", () => {
  it("begin early, then slow down, and an observation triggers the next one", async () => {
    const stage = await Stage.open();
    const wire = stage.tip();
    const startMs = stage.book.ms;
    const signature = await stage.register(wire);
    await stage.seconds(20);
    const seconds = stage.asked.map(({ atMs }) => Math.round((atMs - startMs) / 1000));
    expect(seconds).toEqual([0, 1, 3, 7, 15]);
    stage.run.chain.send(wire); // the next query would happen at 31 s
    await stage.seconds(4);
    expect(stage.row(signature)?.state).toBe("counted");
    expect(stage.unwatched).toEqual([signature]);
  });

  it("happen without observations when the watch list is full", async () => {
    const stage = await Stage.open();
    stage.hasSights = false;
    const wire = stage.tip();
    const signature = await stage.register(wire);
    stage.run.chain.send(wire);
    await stage.seconds(6);
    expect(stage.row(signature)?.state).toBe("counted");
  });

  it("are bounded, and one account cannot delay another one", async () => {
    const stage = await Stage.open({ queriesMax: 4, watchedMax: 3, asksMax: 2 });
    stage.answerMs = 200;
    for (let i = 0n; i < 400n; i++) await stage.register(stage.tip(5n, i), "a_many");
    expect(stage.registrations.counts.watched).toBe(3);
    await stage.seconds(3);
    const wire = stage.tip(5n, 1000n);
    stage.run.chain.send(wire);
    const signature = await stage.register(wire, "a_few");
    await stage.seconds(4);
    expect(stage.row(signature)?.state).toBe("counted");
    expect(stage.underWayMost).toBeLessThanOrEqual(4 + 2);
    expect(stage.registrations.counts.pending).toBe(400);
  });

  it("that fail drop no registration and are repeated", async () => {
    const stage = await Stage.open({ ageMaxMs: 200_000 });
    const [landing, gone] = [stage.tip(5n, 1n), stage.tip(5n, 2n)];
    stage.isDown = true;
    const signatures = [await stage.register(landing), await stage.register(gone)];
    stage.run.chain.send(landing);
    await stage.seconds(300);
    expect(signatures.map((each) => stage.row(each)?.state)).toEqual(["pending", "pending"]);
    expect(stage.registrations.counts.failures).toBeGreaterThan(5n);
    stage.isDown = false;
    await stage.seconds(130);
    expect(signatures.map((each) => stage.row(each)?.state)).toEqual(["counted", "dropped"]);
  });

  it("end with the service", async () => {
    const stage = await Stage.open();
    await stage.register(stage.tip());
    await stage.registrations.close();
    const before = stage.asked.length;
    await stage.seconds(10);
    expect(stage.asked.length).toBe(before);
    expect(stage.unwatched.length).toBe(1);
    expect(stage.clock.pending).toBe(1); // the chain's own
  });
});

describe("the shutdown of the service", () => {
  it("stops all queries and discards those in progress", async () => {
    const stage = await Stage.open({ queriesMax: 2 });
    stage.answerMs = 200;
    for (let i = 0n; i < 20n; i++) await stage.register(stage.tip(5n, i));
    await stage.seconds(1.1);
    expect(stage.underWay).toBe(2);
    await stage.registrations.close();
    const asked = stage.asked.length;
    await stage.seconds(10);
    expect(stage.asked.length).toBe(asked);
    expect(stage.rows.settles).toBe(0);
  });
});

describe("capacity", () => {
  it("is counted per account and in total", async () => {
    const stage = await Stage.open({ pendingMax: 5, pendingPerAccountMax: 3 });
    const { registrations } = stage;
    const take = (accountId: string, count: number) =>
      Array.from({ length: count }, () => registrations.reserve(accountId));
    expect(take("a_1", 4)).toEqual([true, true, true, false]);
    expect(take("a_2", 3)).toEqual([true, true, false]);
    registrations.release("a_1");
    expect([...take("a_1", 1), ...take("a_2", 1)]).toEqual([true, false]);
    for (let i = 0; i < 3; i++) registrations.release("a_1");
    const wire = stage.tip();
    stage.run.chain.send(wire);
    await stage.register(wire);
    await stage.seconds(6);
    expect(take("a_1", 4)).toEqual([true, true, true, false]); // ended registrations released their capacity
  });
});

describe("stored results", () => {
  it("are retried while commits fail, in one order, which is settled once", async () => {
    const stage = await Stage.open();
    const wire = stage.tip();
    stage.run.chain.send(wire);
    stage.rows.fails = "before";
    const signature = await stage.register(wire);
    await stage.seconds(10);
    expect(stage.rows.settles).toBeGreaterThan(2);
    expect(stage.book).toMatchObject({ taken: [1n], tips: [], open: [1n] });
    stage.rows.fails = null;
    await stage.seconds(16);
    expect(stage.row(signature)).toMatchObject({ state: "counted", countedOrder: 1n });
    expect(stage.book).toMatchObject({ taken: [1n], tips: [{ order: 1n }], open: [] });
    expect(stage.registrations.counts.pending).toBe(0);
  });

  it("are applied to the tier engine even if the commit's answer was lost", async () => {
    const stage = await Stage.open();
    const wire = stage.tip();
    stage.run.chain.send(wire);
    stage.rows.fails = "after";
    const signature = await stage.register(wire);
    await stage.seconds(4);
    stage.rows.fails = null;
    await stage.seconds(20);
    const { countedOrder, settledMs } = stage.row(signature) ?? {};
    expect(stage.book.tips).toMatchObject([{ order: countedOrder, countedMs: settledMs }]);
    expect(stage.book.open).toEqual([]);
  });

  it("return their order number after a long failure, and get another one", async () => {
    const stage = await Stage.open();
    const wire = stage.tip();
    stage.run.chain.send(wire);
    stage.rows.fails = "before";
    const signature = await stage.register(wire);
    await stage.seconds(240);
    expect(stage.book.settled.get(1n)).toBeNull();
    expect(stage.book.open.length).toBe(1);
    stage.rows.fails = null;
    await stage.seconds(20);
    expect(stage.row(signature)?.countedOrder).toBe(stage.book.tips[0]?.order);
    expect(stage.book.tips.length).toBe(1);
    expect(stage.book.open).toEqual([]);
  });

  it("of an ended term stop the engine, and leave the registration pending for the new leader", async () => {
    const stage = await Stage.open();
    const wire = stage.tip();
    const signature = await stage.register(wire);
    stage.rows.isOver = true;
    stage.run.chain.send(wire);
    await stage.seconds(30);
    expect(stage.book.givenUp).toBe(1);
    expect(stage.rows.settles).toBe(1);
    expect(stage.book.settled.size).toBe(0);
    expect(stage.row(signature)?.state).toBe("pending");
    expect(stage.registrations.counts).toMatchObject({ pending: 1, places: 1 });
  });

  it("settled by other nodes meanwhile never count twice", async () => {
    const stage = await Stage.open();
    const wire = stage.tip();
    stage.run.chain.send(wire);
    const signature = await stage.register(wire);
    stage.rows.rows.set(signature, { ...registrationOf(wire), state: "dropped" });
    await stage.seconds(6);
    expect(stage.book.tips).toEqual([]);
    expect(stage.book.open).toEqual([]);
    expect(stage.registrations.counts.pending).toBe(0);
  });

  it("are all resumed by the next process", async () => {
    const stage = await Stage.open();
    const wires = Array.from({ length: 30 }, (_, i) => stage.tip(5n, BigInt(i)));
    for (const wire of wires) await stage.register(wire);
    await stage.registrations.close();
    for (const wire of wires.slice(0, 10)) stage.run.chain.send(wire);
    await stage.seconds(70);
    const asked = stage.asked.length;
    expect(await stage.restart()).toBe(30);
    await stage.seconds(1);
    expect(stage.asked.length).toBeGreaterThanOrEqual(asked + 30);
    const states = () => [...stage.rows.rows.values()].map(({ state }) => state);
    expect(states().filter((state) => state === "counted").length).toBe(10);
    await stage.seconds(60);
    expect(states().filter((state) => state === "dropped").length).toBe(20);
    expect(stage.book.open).toEqual([]);
  });

  it("are resumed in any number", async () => {
    const stage = await Stage.open();
    await stage.registrations.close();
    const example = registrationOf(stage.tip());
    for (let i = 0; i < 4_100; i++) {
      const signature = encodeBase58(Buffer.alloc(64, 3).fill(String(i).padStart(4, "0"), 0, 4));
      stage.rows.rows.set(signature, { ...example, signature });
    }
    const { size } = stage.rows.rows;
    expect(size).toBeGreaterThan(4_000);
    // All of them were acknowledged.
    expect(await stage.restart({ pendingMax: 10 })).toBe(size);
    expect(stage.registrations.counts).toMatchObject({ pending: size, lifetimes: 1 });
    expect(stage.registrations.reserve("a_2")).toBe(false);
  });
});
