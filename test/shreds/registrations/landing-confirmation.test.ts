// Landing confirmation on the sandbox chain: every outcome of the real virtual machine, and failing
// nodes and stores.

import { SystemProgram } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { addressOf, alice, bob, transferOf, wallet } from "../../support/transactions/chain.ts";
import { ConfirmationHarness, registrationOf } from "./confirmation-harness.ts";
import { shredWallet } from "./harness.ts";

const nonceAccount = wallet(50);

describe("a pending registration", () => {
  it("counts after its landing: at the time of registration, with the paid amount", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip(10_000n);
    const registeredMs = harness.accounting.ms;
    const signature = await harness.register(wire);
    harness.run.chain.send(wire);
    await harness.seconds(6);
    expect(harness.row(signature)).toMatchObject({
      state: "counted",
      countedLamports: 10_000n,
      countedOrder: 1n,
      reason: null,
      registeredMs,
    });
    const { settledMs = 0 } = harness.row(signature) ?? {};
    const lamports = 10_000n;
    expect(harness.accounting.tips).toEqual([
      { order: 1n, accountId: "a_1", lamports, registeredMs, countedMs: settledMs },
    ]);
    expect(settledMs).toBeGreaterThan(registeredMs);
    expect(harness.registrations.counts).toMatchObject({ pending: 0, lifetimes: 0, watched: 0 });
  });

  it("that landed before it was registered counts within a second", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip();
    harness.run.chain.send(wire);
    await harness.seconds(5);
    const signature = await harness.register(wire);
    await harness.seconds(1.5);
    expect(harness.row(signature)?.state).toBe("counted");
  });

  it("counts with the amount that the addresses retained if that is less", async () => {
    const harness = await ConfirmationHarness.open();
    const { run } = harness;
    const back = transferOf(shredWallet, alice, 4_000n);
    const wire = run.legacy([transferOf(alice, shredWallet, 10_000n), back], [alice, shredWallet]);
    const signature = await harness.register(wire);
    run.chain.send(wire);
    await harness.seconds(6);
    expect(harness.row(signature)).toMatchObject({ state: "counted", countedLamports: 6_000n });
    // More than the instructions paid does not belong to this registration.
    const more = run.legacy(
      [transferOf(alice, shredWallet, 10_000n), transferOf(bob, shredWallet, 7n)],
      [alice, bob],
    );
    const other = await harness.register(more);
    harness.rows.rows.set(other, { ...registrationOf(more), lamports: 10_000n });
    run.chain.send(more);
    await harness.seconds(6);
    expect(harness.row(other)).toMatchObject({ state: "counted" });
  });

  it("is dropped if the tip was returned in the same transaction", async () => {
    const harness = await ConfirmationHarness.open();
    const back = transferOf(shredWallet, alice, 10_000n);
    const wire = harness.run.legacy(
      [transferOf(alice, shredWallet, 10_000n), back],
      [alice, shredWallet],
    );
    const signature = await harness.register(wire);
    harness.run.chain.send(wire);
    await harness.seconds(6);
    expect(harness.row(signature)).toMatchObject({
      state: "dropped",
      reason: "refunded",
      countedLamports: null,
      countedOrder: null,
    });
    expect(harness.accounting.orders).toEqual([]);
  });

  it("is dropped if it landed days before its registered slot", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip();
    const registration = registrationOf(wire, { slot: 10_000_000_000n });
    await harness.rows.add(registration);
    harness.registrations.reserve("a_1");
    harness.registrations.add(registration);
    harness.run.chain.send(wire);
    await harness.seconds(6);
    expect(harness.row(registration.signature)).toMatchObject({
      state: "dropped",
      reason: "slot_too_old",
    });
  });

  it("is dropped if it landed and failed", async () => {
    const harness = await ConfirmationHarness.open();
    const tooMuch = transferOf(alice, bob, 10n ** 15n);
    const wire = harness.run.legacy([transferOf(alice, shredWallet, 10_000n), tooMuch], [alice]);
    const signature = await harness.register(wire);
    harness.run.chain.send(wire);
    await harness.seconds(6);
    expect(harness.row(signature)).toMatchObject({ state: "dropped", reason: "landed_failed" });
    expect(harness.registrations.counts.pending).toBe(0);
  });

  it("expires with its blockhash, after two confirmations, not earlier", async () => {
    const harness = await ConfirmationHarness.open();
    const wires = Array.from({ length: 20 }, (_, i) => harness.tip(5n, BigInt(i)));
    const [first = ""] = await Promise.all(wires.map((wire) => harness.register(wire)));
    await harness.seconds(55);
    expect(harness.row(first)?.state).toBe("pending");
    expect(
      harness.run.chain.isBlockhashValid(pubkeyOf(harness.row(first)?.lifetime ?? Buffer.alloc(0))),
    ).toBe(true);
    await harness.seconds(60);
    for (const row of harness.rows.rows.values()) {
      expect(row).toMatchObject({ state: "dropped", reason: "expired" });
    }
    // One blockhash, queried for all of them together.
    expect(harness.lifetimesAsked.length).toBeLessThan(20);
    expect(harness.registrations.counts).toMatchObject({ pending: 0, lifetimes: 0, watched: 0 });
  });

  it("is not dropped after one answer of a node that is behind", async () => {
    const harness = await ConfirmationHarness.open({ firstAskMs: 2_000 });
    harness.lies = 1;
    const wire = harness.tip();
    const signature = await harness.register(wire);
    await harness.seconds(40);
    expect(harness.lies).toBeLessThan(0);
    expect(harness.row(signature)?.state).toBe("pending");
    harness.run.chain.send(wire);
    await harness.seconds(10);
    expect(harness.row(signature)?.state).toBe("counted");
  });

  it("with a durable nonce waits for it, and expires when the nonce advances", async () => {
    const harness = await ConfirmationHarness.open();
    const { run } = harness;
    const keys = { noncePubkey: nonceAccount.publicKey, authorizedPubkey: alice.publicKey };
    const lamports = Number(run.chain.minimumBalanceForRentExemption(80));
    const create = SystemProgram.createNonceAccount({
      fromPubkey: alice.publicKey,
      ...keys,
      lamports,
    });
    run.chain.send(run.legacy(create.instructions, [alice, nonceAccount]));
    await harness.seconds(3);
    const data = run.chain.account(addressOf(nonceAccount))?.data ?? new Uint8Array(0);
    const value = pubkeyOf(data.slice(40, 72));
    const advance = SystemProgram.nonceAdvance(keys);
    const wireOf = (amount: bigint) =>
      run.legacy([advance, transferOf(alice, shredWallet, amount)], [alice], value);
    const [landing, waiting] = [wireOf(7n), wireOf(8n)];
    const signatures = [await harness.register(landing), await harness.register(waiting)];
    await harness.seconds(300);
    expect(signatures.map((each) => harness.row(each)?.state)).toEqual(["pending", "pending"]);
    run.chain.send(landing);
    await harness.seconds(400);
    expect(signatures.map((each) => harness.row(each)?.state)).toEqual(["counted", "dropped"]);
    expect(harness.row(signatures[1] ?? "")?.reason).toBe("expired");
  }, 60_000);

  it("without expiry is dropped when it cannot count any more", async () => {
    const harness = await ConfirmationHarness.open({
      ageMaxMs: 100_000,
      queryIntervalMaxMs: 10_000,
      firstAskMs: 10 ** 9,
    });
    const signature = await harness.register(harness.tip());
    await harness.seconds(99);
    expect(harness.row(signature)?.state).toBe("pending");
    await harness.seconds(15);
    expect(harness.row(signature)).toMatchObject({ state: "dropped", reason: "expired" });
  });

  it("counts a payment to an address that a reload removed", async () => {
    const harness = await ConfirmationHarness.open();
    const [one, two] = [harness.tip(5n, 1n), harness.tip(5n, 2n)];
    await harness.register(one);
    await harness.seconds(2);
    harness.addresses = new Set([addressOf(wallet(111))]);
    const signature = await harness.register(two);
    harness.run.chain.send(two);
    await harness.seconds(6);
    expect(harness.row(signature)).toMatchObject({ state: "counted", countedLamports: 5n });
  });
});

describe("a tip to an address that only another node has", () => {
  it("counts, because the addresses are read again before it is dropped", async () => {
    const harness = await ConfirmationHarness.open();
    const before = harness.addresses;
    harness.addresses = new Set([addressOf(wallet(111))]);
    harness.addressesOfOtherNodes = before;
    const wire = harness.tip(5n, 1n);
    const signature = await harness.register(wire);
    harness.run.chain.send(wire);
    await harness.seconds(6);
    expect(harness.row(signature)).toMatchObject({ state: "counted", countedLamports: 5n });
  });
});

describe("questions", () => {
  it("begin early, then slow down, and an observation triggers the next one", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip();
    const startMs = harness.accounting.ms;
    const signature = await harness.register(wire);
    await harness.seconds(20);
    const seconds = harness.requests.map(({ atMs }) => Math.round((atMs - startMs) / 1000));
    expect(seconds).toEqual([0, 1, 3, 7, 15]);
    harness.run.chain.send(wire); // the next query would happen at 31 s
    await harness.seconds(4);
    expect(harness.row(signature)?.state).toBe("counted");
    expect(harness.unwatched).toEqual([signature]);
  });

  it("happen without observations when the watch list is full", async () => {
    const harness = await ConfirmationHarness.open();
    harness.hasSights = false;
    const wire = harness.tip();
    const signature = await harness.register(wire);
    harness.run.chain.send(wire);
    await harness.seconds(6);
    expect(harness.row(signature)?.state).toBe("counted");
  });

  it("are bounded, and one account cannot delay another one", async () => {
    const harness = await ConfirmationHarness.open({ queriesMax: 4, watchedMax: 3, asksMax: 2 });
    harness.answerMs = 200;
    for (let i = 0n; i < 400n; i++) await harness.register(harness.tip(5n, i), "a_many");
    expect(harness.registrations.counts.watched).toBe(3);
    await harness.seconds(3);
    const wire = harness.tip(5n, 1000n);
    harness.run.chain.send(wire);
    const signature = await harness.register(wire, "a_few");
    await harness.seconds(4);
    expect(harness.row(signature)?.state).toBe("counted");
    expect(harness.underWayMost).toBeLessThanOrEqual(4 + 2);
    expect(harness.registrations.counts.pending).toBe(400);
  });

  it("that fail drop no registration and are repeated", async () => {
    const harness = await ConfirmationHarness.open({ ageMaxMs: 200_000 });
    const [landing, gone] = [harness.tip(5n, 1n), harness.tip(5n, 2n)];
    harness.isDown = true;
    const signatures = [await harness.register(landing), await harness.register(gone)];
    harness.run.chain.send(landing);
    await harness.seconds(300);
    expect(signatures.map((each) => harness.row(each)?.state)).toEqual(["pending", "pending"]);
    expect(harness.registrations.counts.failures).toBeGreaterThan(5n);
    harness.isDown = false;
    await harness.seconds(130);
    expect(signatures.map((each) => harness.row(each)?.state)).toEqual(["counted", "dropped"]);
  });

  it("end with the service", async () => {
    const harness = await ConfirmationHarness.open();
    await harness.register(harness.tip());
    await harness.registrations.close();
    const before = harness.requests.length;
    await harness.seconds(10);
    expect(harness.requests.length).toBe(before);
    expect(harness.unwatched.length).toBe(1);
    expect(harness.clock.pending).toBe(1); // the chain's own
  });
});

describe("the shutdown of the service", () => {
  it("stops all queries and discards those in progress", async () => {
    const harness = await ConfirmationHarness.open({ queriesMax: 2 });
    harness.answerMs = 200;
    const wires = Array.from({ length: 20 }, (_, i) => harness.tip(5n, BigInt(i)));
    for (const wire of wires) harness.run.chain.send(wire);
    await harness.seconds(5);
    for (const wire of wires) await harness.register(wire);
    await harness.seconds(0.3);
    expect(harness.underWay).toBe(2);
    expect(harness.reads.length).toBe(1);
    await harness.registrations.close();
    const requestsBefore = harness.requests.length;
    await harness.seconds(10);
    expect(harness.requests.length).toBe(requestsBefore);
    expect(harness.rows.settles).toBe(0);
  });
});

describe("capacity", () => {
  it("is counted per account and in total", async () => {
    const harness = await ConfirmationHarness.open({ pendingMax: 5, pendingPerAccountMax: 3 });
    const { registrations } = harness;
    const take = (accountId: string, count: number) =>
      Array.from({ length: count }, () => registrations.reserve(accountId));
    expect(take("a_1", 4)).toEqual([true, true, true, false]);
    expect(take("a_2", 3)).toEqual([true, true, false]);
    registrations.release("a_1");
    expect([...take("a_1", 1), ...take("a_2", 1)]).toEqual([true, false]);
    for (let i = 0; i < 3; i++) registrations.release("a_1");
    const wire = harness.tip();
    harness.run.chain.send(wire);
    await harness.register(wire);
    await harness.seconds(6);
    expect(take("a_1", 4)).toEqual([true, true, true, false]); // ended registrations released their capacity
  });
});

describe("stored results", () => {
  it("are retried while commits fail, in one order, which is settled once", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip();
    harness.run.chain.send(wire);
    harness.rows.fails = "before";
    const signature = await harness.register(wire);
    await harness.seconds(10);
    expect(harness.rows.settles).toBeGreaterThan(2);
    expect(harness.accounting).toMatchObject({ orders: [1n], tips: [], open: [1n] });
    harness.rows.fails = null;
    await harness.seconds(16);
    expect(harness.row(signature)).toMatchObject({ state: "counted", countedOrder: 1n });
    expect(harness.accounting).toMatchObject({ orders: [1n], tips: [{ order: 1n }], open: [] });
    expect(harness.registrations.counts.pending).toBe(0);
  });

  it("are applied to the tier engine even if the commit's answer was lost", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip();
    harness.run.chain.send(wire);
    harness.rows.fails = "after";
    const signature = await harness.register(wire);
    await harness.seconds(4);
    harness.rows.fails = null;
    await harness.seconds(20);
    const { countedOrder, settledMs } = harness.row(signature) ?? {};
    expect(harness.accounting.tips).toMatchObject([{ order: countedOrder, countedMs: settledMs }]);
    expect(harness.accounting.open).toEqual([]);
  });

  it("return their order number after a long failure, and get another one", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip();
    harness.run.chain.send(wire);
    harness.rows.fails = "before";
    const signature = await harness.register(wire);
    await harness.seconds(240);
    expect(harness.accounting.settled.get(1n)).toBeNull();
    expect(harness.accounting.open.length).toBe(1);
    harness.rows.fails = null;
    await harness.seconds(20);
    expect(harness.row(signature)?.countedOrder).toBe(harness.accounting.tips[0]?.order);
    expect(harness.accounting.tips.length).toBe(1);
    expect(harness.accounting.open).toEqual([]);
  });

  it("of an ended term stop the engine, and leave the registration pending for the new leader", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip();
    const signature = await harness.register(wire);
    harness.rows.isOver = true;
    harness.run.chain.send(wire);
    await harness.seconds(30);
    expect(harness.accounting.givenUp).toBe(1);
    expect(harness.rows.settles).toBe(1);
    expect(harness.accounting.settled.size).toBe(0);
    expect(harness.row(signature)?.state).toBe("pending");
    expect(harness.registrations.counts).toMatchObject({ pending: 1, places: 1 });
  });

  it("settled by other nodes meanwhile never count twice", async () => {
    const harness = await ConfirmationHarness.open();
    const wire = harness.tip();
    harness.run.chain.send(wire);
    const signature = await harness.register(wire);
    harness.rows.rows.set(signature, { ...registrationOf(wire), state: "dropped" });
    await harness.seconds(6);
    expect(harness.accounting.tips).toEqual([]);
    expect(harness.accounting.open).toEqual([]);
    expect(harness.registrations.counts.pending).toBe(0);
  });

  it("are all resumed by the next process", async () => {
    const harness = await ConfirmationHarness.open();
    const wires = Array.from({ length: 30 }, (_, i) => harness.tip(5n, BigInt(i)));
    for (const wire of wires) await harness.register(wire);
    await harness.registrations.close();
    for (const wire of wires.slice(0, 10)) harness.run.chain.send(wire);
    await harness.seconds(70);
    const requestsBefore = harness.requests.length;
    expect(await harness.restart()).toBe(30);
    await harness.seconds(1);
    expect(harness.requests.length).toBeGreaterThanOrEqual(requestsBefore + 30);
    const states = () => [...harness.rows.rows.values()].map(({ state }) => state);
    expect(states().filter((state) => state === "counted").length).toBe(10);
    await harness.seconds(60);
    expect(states().filter((state) => state === "dropped").length).toBe(20);
    expect(harness.accounting.open).toEqual([]);
  });

  it("are resumed in any number", async () => {
    const harness = await ConfirmationHarness.open();
    await harness.registrations.close();
    const example = registrationOf(harness.tip());
    for (let i = 0; i < 4_100; i++) {
      const signature = encodeBase58(Buffer.alloc(64, 3).fill(String(i).padStart(4, "0"), 0, 4));
      harness.rows.rows.set(signature, { ...example, signature });
    }
    const { size } = harness.rows.rows;
    expect(size).toBeGreaterThan(4_000);
    // All of them were acknowledged.
    expect(await harness.restart({ pendingMax: 10 })).toBe(size);
    expect(harness.registrations.counts).toMatchObject({ pending: size, lifetimes: 1 });
    expect(harness.registrations.reserve("a_2")).toBe(false);
  });
});
