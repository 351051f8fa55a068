// Transaction pushes on a complete service: real HTTP, store, shreds, challenges and UDP sockets.

import { base58 } from "@scure/base";
import { describe, expect, it } from "vitest";
import type { TransactionPush } from "../../../src/client/responses.ts";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { tipAddress } from "../../support/gateway/gateway.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { PushReceiver, PushRun } from "../../support/streams/push-run.ts";
import {
  accountOf,
  batchOf,
  type MadeTransaction,
  markerOf,
  transactionOf,
} from "../../support/streams/stream-relay.ts";
import { StreamSocket } from "../../support/streams/stream-sockets.ts";

const text = (account: Uint8Array) => base58.encode(account);
const wires = (made: readonly MadeTransaction[]) => made.map(({ wire }) => Buffer.from(wire));

/** Every number of the sequence arrived, in order. */
function expectNoGap({ datagrams }: PushReceiver): void {
  expect(datagrams.map(({ sequence }) => sequence)).toEqual(datagrams.map((_, i) => BigInt(i)));
}

/** A transaction of version 1 with this number of bytes. */
function v1Of(length: number): MadeTransaction {
  const { signature } = transactionOf();
  const head = Buffer.concat([
    Uint8Array.of(0x81, 1, 0, 1),
    new Uint8Array(4), // no config
    new Uint8Array(32).fill(0xab),
    Uint8Array.of(1, 2),
    accountOf(1),
    accountOf(2),
  ]);
  const dataBytes = length - head.length - 4 - signature.length;
  const instruction = Uint8Array.of(1, 0, dataBytes & 0xff, dataBytes >> 8);
  return {
    signature,
    wire: Buffer.concat([head, instruction, Buffer.alloc(dataBytes), signature]),
  };
}

async function opened(streams: object = {}) {
  const run = await PushRun.open(streams);
  const ann = await run.customer("ann");
  const receiver = await PushReceiver.open();
  const { id } = await run.destination(ann, receiver);
  return { run, ann, receiver, id };
}

describe("a transaction push", () => {
  it("sends each matching transaction once, with its place, to the verified address only", async () => {
    const { run, ann, receiver, id } = await opened();
    const wanted = accountOf(1);
    const filter = { vote: false, accounts: { include: [text(wanted)] } };
    const push = await ann.client.startTransactionPush(id, filter);
    expect(push).toMatchObject({
      destination: id,
      address: receiver.address,
      tier: "tier-1",
      vote: false,
      signature: null,
      accounts: { include: 1, exclude: 0, required: 0 },
      matched: 0,
      delayNs: null,
    });
    expect(Date.parse(push.endsAt) - Date.parse(push.startedAt)).toBeGreaterThanOrEqual(60_000);
    await until(() => receiver.of("heartbeat").length > 0, "the first heartbeat");
    await run.inForce(1);
    const made = [transactionOf([wanted]), transactionOf(), transactionOf([wanted, accountOf(2)])];
    const slot = run.send(made);
    const matching = made.filter((_, i) => i !== 1);
    await until(() => receiver.transactions().length === 2, "two transactions");
    expect(receiver.transactions()).toEqual(wires(matching));
    for (const [i, one] of receiver.of("transaction").entries()) {
      expect(one).toMatchObject({
        streamId: push.streamId,
        slot,
        ordinal: [0, 2][i],
        batchIndex: 0,
        version: "legacy",
        isVote: false,
        lookups: null,
        skipped: 0,
        dropped: 0,
      });
    }
    expectNoGap(receiver);
    expect(receiver.ports.size).toBe(1);
    const { open, ended } = await ann.client.getTransactionPushes();
    expect(ended).toEqual([]);
    expect(open).toMatchObject([{ destination: id, matched: 2, sent: open[0]?.nextSequence }]);
    expect(open[0]?.sent).toBeGreaterThanOrEqual(3); // with the heartbeats
    expect(open[0]?.delayNs).toBeGreaterThan(0);
    const metrics = run.harness.service.operations?.metrics("text") ?? "";
    expect(metrics).toContain('shredway_stream_open{account="ann",dialect="push"} 1');
    expect(metrics).toMatch(/^shredway_stream_sent_total{account="ann",dialect="push"} [1-9]/m);
  });

  it("contains only what the sources of the account's tier delivered", async () => {
    const { run, ann, receiver, id } = await opened();
    await ann.client.startTransactionPush(id, {});
    await run.inForce(1);
    run.send([transactionOf()], "tier-2");
    const mine = transactionOf();
    run.send([mine]);
    await until(() => receiver.transactions().length > 0, "a transaction");
    expect(receiver.transactions()).toEqual(wires([mine]));
  });

  it("comes beside the shreds or instead of them", async () => {
    const { run, ann, receiver, id } = await opened();
    const served = () => run.harness.service.relay.snapshot().destinations.length;
    const slot = async () => {
      const arrived = receiver.transactions().length;
      run.send([transactionOf()]);
      await until(() => receiver.transactions().length > arrived, "the transaction");
    };
    expect((await ann.client.startTransactionPush(id, {})).shreds).toBe(true);
    await run.inForce(1);
    await slot();
    await until(() => receiver.shreds === 64, "the shreds of the slot");
    await ann.client.startTransactionPush(id, null, { shreds: false });
    await until(() => served() === 0, "no destination of shreds");
    expect((await ann.client.startTransactionPush(id, null)).shreds).toBe(false);
    await slot();
    expect(receiver.shreds).toBe(64);
    await ann.client.stopTransactionPush(id);
    await until(() => served() === 1, "the destination");
    run.send([transactionOf()]);
    await until(() => receiver.shreds > 64, "shreds");
  });

  it("withdraws what an update-parent marker abandons", async () => {
    const { run, ann, receiver, id } = await opened();
    await ann.client.startTransactionPush(id, {});
    await run.inForce(1);
    const [early, late] = [transactionOf(), transactionOf()];
    const slot = run.sendBatches([
      markerOf(1),
      batchOf([early]),
      markerOf(2, 104n),
      batchOf([late]),
    ]);
    await until(() => receiver.of("withdrawal").length === 1, "the withdrawal");
    await until(() => receiver.transactions().some((one) => one.equals(late.wire)), "the last one");
    const [withdrawal] = receiver.of("withdrawal");
    expect(withdrawal).toMatchObject({
      slot,
      parentSlot: 104n,
      parentBlockId: new Uint8Array(32).fill(6),
    });
    const kept = receiver
      .of("transaction")
      .filter(({ batchIndex }) => batchIndex >= (withdrawal?.batchIndex ?? 0));
    expect(kept.map(({ transaction }) => Buffer.from(transaction))).toEqual(wires([late]));
  });

  it("replaces its filter without a new sequence, and an equal one without an interruption", async () => {
    const { run, ann, receiver, id } = await opened();
    const [a, b] = [accountOf(1), accountOf(2)];
    const include = (account: Uint8Array) => ({ accounts: { include: [text(account)] } });
    const first = await ann.client.startTransactionPush(id, include(a));
    await run.inForce(1);
    const other = await ann.client.startTransactionPush(id, include(b), { leaseSeconds: 120 });
    expect(other.streamId).toBe(first.streamId);
    await run.inForce(1);
    const made = [transactionOf([a]), transactionOf([b])];
    run.send(made);
    await until(() => receiver.transactions().length === 1, "one transaction");
    expect(receiver.transactions()).toEqual(wires(made.slice(1)));
    for (const filter of [include(b), null]) {
      await ann.client.startTransactionPush(id, filter);
      expect(run.harness.service.streams?.status().filters.isCurrent).toBe(true);
    }
    const next = transactionOf([b]);
    run.send([next]);
    await until(() => receiver.transactions().length === 2, "the next one");
    expectNoGap(receiver);
  });

  it("counts transactions that do not fit a datagram, in the header of the next one", async () => {
    const { run, ann, receiver, id } = await opened();
    await ann.client.startTransactionPush(id, {});
    await run.inForce(1);
    const [long, longest] = [v1Of(1233), v1Of(1232)];
    run.send([long, longest]);
    await until(() => receiver.transactions().length === 1, "the one that fits");
    expect(receiver.transactions()).toEqual(wires([longest]));
    expect(receiver.of("transaction")[0]).toMatchObject({ version: 1, skipped: 1, dropped: 0 });
    const { open } = await ann.client.getTransactionPushes();
    expect(open).toMatchObject([{ matched: 1, skipped: 1, dropped: 0 }]);
    expect(run.harness.service.operations?.metrics("text")).toContain(
      'shredway_stream_skipped_total{account="ann",dialect="push"} 1',
    );
  });

  it("drops what exceeds its share, and receivers learn the number twice", async () => {
    const { run, ann, receiver, id } = await opened({ push: { datagramsPerSecondMax: 100 } });
    await ann.client.startTransactionPush(id, {});
    await run.inForce(1);
    const made = Array.from({ length: 1500 }, () => transactionOf());
    const slot = run.send(made);
    const dropped = () => receiver.of("gap").reduce((sum, { count }) => sum + count, 0n);
    const arrived = () => BigInt(receiver.transactions().length);
    await until(() => {
      run.move(1000);
      return arrived() > 0n && arrived() + dropped() === 1500n;
    }, "all of them, or their number");
    expect(dropped()).toBeGreaterThan(0n);
    for (const { firstSlot, lastSlot } of receiver.of("gap")) {
      expect([firstSlot, lastSlot]).toEqual([slot, slot]);
    }
    const last = receiver.datagrams.at(-1);
    const missing = (last?.sequence ?? 0n) + 1n - BigInt(receiver.datagrams.length);
    expect(missing).toBe(dropped());
    expect(BigInt(last?.dropped ?? 0)).toBe(dropped());
    const { open } = await ann.client.getTransactionPushes();
    expect(open).toMatchObject([{ dropped: Number(dropped()), matched: Number(arrived()) }]);
  });
});

it("a reload changes the limit of datagrams at once, and the addresses after a restart", async () => {
  const { run, ann, receiver, id } = await opened();
  await ann.client.startTransactionPush(id, {});
  await run.inForce(1);
  const { streams } = completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    http: { listen: "127.0.0.1:0" },
    tips: { addresses: [tipAddress] },
    streams: {
      listen: "127.0.0.1:0",
      push: { from: "127.0.0.1:0", datagramsPerSecondMax: 100 },
    },
  });
  expect(run.harness.service.streams?.apply(streams)).toEqual(["streams.push.from"]);
  run.send(Array.from({ length: 1500 }, () => transactionOf()));
  await until(() => {
    run.move(1000);
    return receiver.of("gap").length > 0;
  }, "the report of a gap");
  expect(receiver.transactions().length).toBeLessThan(1500);
});

describe("a long filter", () => {
  it("fits a request, up to the limit of accounts on the WebSocket for streams", async () => {
    const { run, ann, id } = await opened();
    const include = Array.from({ length: 10_001 }, (_, i) => text(accountOf(i)));
    const filterOf = (count: number) => ({ accounts: { include: include.slice(0, count) } });
    const push = await ann.client.startTransactionPush(id, filterOf(5000));
    expect(push.accounts).toEqual({ include: 5000, exclude: 0, required: 0 });
    await expect(ann.client.startTransactionPush(id, filterOf(6000))).rejects.toThrow(
      "body_too_large",
    );
    const url = `ws://${run.harness.host}/stream?api-key=${ann.text}`;
    const socket = await StreamSocket.open(url);
    const longest = await socket.ask("startTransactionPush", [id, filterOf(10_000)]);
    expect(longest.result).toMatchObject({ accounts: { include: 10_000 } });
    const longer = await socket.ask("startTransactionPush", [id, filterOf(10_001)]);
    expect(longer.error?.message).toBe(
      "value_invalid: startTransactionPush: accounts in the filter: expected at most 10000, got 10001",
    );
    const { open } = await ann.client.getTransactionPushes();
    expect(open).toMatchObject([{ streamId: push.streamId, accounts: { include: 10_000 } }]);
    await run.inForce(1);
    expect(run.harness.service.streams?.status().filters.accounts).toBe(10_000);
  });
});

describe("many pushes", () => {
  it("run up to the limit of the account, each with its own sequence", async () => {
    const run = await PushRun.open(
      { subscriptionsPerAccountMax: 20 },
      { delivery: { destinationsPerAccount: 21 } },
    );
    const ann = await run.customer("ann");
    const receivers: { receiver: PushReceiver; push: TransactionPush; id: string }[] = [];
    const added: { receiver: PushReceiver; id: string }[] = [];
    while (added.length < 21) {
      const receiver = await PushReceiver.open();
      added.push({ receiver, id: (await run.destination(ann, receiver)).id });
      run.move(1_200_000); // challenges of an hour are limited
    }
    for (const [i, { receiver, id }] of added.slice(0, 20).entries()) {
      const filter = { accounts: { include: [text(accountOf(i % 2))] } };
      receivers.push({ receiver, id, push: await ann.client.startTransactionPush(id, filter) });
    }
    const { id } = added[20] ?? { id: "" };
    await expect(ann.client.startTransactionPush(id, {})).rejects.toThrow(
      "rate_limited: startTransactionPush: streams of this account: expected at most 20 at once",
    );
    await run.inForce(20);
    expect(new Set(receivers.map(({ push }) => push.streamId)).size).toBe(20);
    const made = [transactionOf([accountOf(0)]), transactionOf([accountOf(1)])];
    run.send(made);
    await until(
      () => receivers.every(({ receiver }) => receiver.transactions().length === 1),
      "a transaction for each",
    );
    for (const [i, { receiver }] of receivers.entries()) {
      expect(receiver.transactions()).toEqual(wires(made).slice(i % 2, (i % 2) + 1));
      expectNoGap(receiver);
    }
    expect((await ann.client.getTransactionPushes()).open).toHaveLength(20);
  });
});
