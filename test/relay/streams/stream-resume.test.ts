// Streams that begin with an earlier slot, over real sockets with clients of @grpc/grpc-js and stock .proto files.

import { status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { replaysMax } from "../../../src/relay/data-plane/relay-streams.ts";
import { until } from "../../support/network/udp-receiver.ts";
import {
  type DeshredClient,
  metadataOf,
  type RunningStreams,
  runningStreams,
  subscribeDeshred,
  subscribeEntries,
} from "../../support/streams/stream-clients.ts";
import {
  accountOf,
  batchOf,
  markerOf,
  slotOf,
  transactionOf,
} from "../../support/streams/stream-relay.ts";

const all = { deshred_transactions: { all: { include_update_parent: true } }, slots: { s: {} } };
const fromSlot = (slot: number | bigint | string) =>
  metadataOf({ "x-token": "alice", "x-from-slot": String(slot) });
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

const signaturesIn = ({ messages }: DeshredClient) =>
  messages.flatMap(({ deshred_transaction: one }) => (one ? [hex(one.transaction.signature)] : []));

async function inForce({ service }: RunningStreams, streams: number): Promise<void> {
  await until(() => {
    const { accounts, filters } = service.status();
    return accounts.reduce((sum, { open }) => sum + open, 0) === streams && filters.isCurrent;
  }, "the filters to be in force");
}

/** Sends slots of `perSlot` transactions, and returns their signatures. */
function sendSlots({ send }: RunningStreams, first: number, last: number, perSlot = 3): string[] {
  const signatures: string[] = [];
  for (let slot = first; slot <= last; slot++) {
    const made = Array.from({ length: perSlot }, () => transactionOf([accountOf(slot)]));
    signatures.push(...made.map(({ signature }) => hex(signature)));
    send(slotOf(BigInt(slot), [batchOf(made)]));
  }
  return signatures;
}

/** A stream whose history begins with slot 121, because slot 120 may have begun before it. */
async function recorded(section = ""): Promise<{ running: RunningStreams; first: DeshredClient }> {
  const running = await runningStreams(section);
  const first = subscribeDeshred(running.service.address, all);
  await inForce(running, 1);
  sendSlots(running, 120, 120);
  await until(() => signaturesIn(first).length === 3, "the first slot");
  return { running, first };
}

describe("a stream with x-from-slot", () => {
  it("continues without a gap and without a repetition after a disconnection", async () => {
    const { running, first } = await recorded();
    const { address } = running.service;
    const before = sendSlots(running, 121, 123);
    await until(() => signaturesIn(first).length === 3 + before.length, "the first slots");
    first.call.cancel();
    await inForce(running, 0);
    // Nobody is connected.
    const missed = sendSlots(running, 124, 130, 40);
    const second = subscribeDeshred(address, all, { metadata: fromSlot(124) });
    const after = sendSlots(running, 131, 133);
    const expected = [...missed, ...after];
    await until(() => signaturesIn(second).length === expected.length, "the rest");
    expect(signaturesIn(second)).toEqual(expected);
    await until(() => running.service.status().history.replays === 0, "the end of the replay");
    const live = sendSlots(running, 134, 134);
    await until(
      () => signaturesIn(second).length === expected.length + live.length,
      "what is live",
    );
    expect(signaturesIn(second)).toEqual([...expected, ...live]);
    expect(signaturesIn(first).slice(3)).toEqual(before);
    expect(second.end).toBeUndefined();
  });

  it("gets what its own filters match, with the events of the slots", async () => {
    const { running, first } = await recorded();
    const wanted = sendSlots(running, 121, 121);
    sendSlots(running, 122, 123);
    await until(() => signaturesIn(first).length === 12, "the slots");
    const filter = { account_include: [encodeBase58(accountOf(121))] };
    const narrow = subscribeDeshred(
      running.service.address,
      { deshred_transactions: { one: filter }, slots: { s: {} } },
      { metadata: fromSlot(121) },
    );
    await until(
      () => narrow.messages.filter(({ update }) => update === "slot").length === 6,
      "the events of three slots",
    );
    expect(signaturesIn(narrow)).toEqual(wanted);
    expect(narrow.messages.find((one) => one.deshred_transaction)?.filters).toEqual(["one"]);
  });

  it("leaves out what a known marker abandons, and still gets the marker", async () => {
    const { running, first } = await recorded();
    const [gone, stays] = [transactionOf(), transactionOf()];
    running.send(slotOf(121n, [markerOf(1), batchOf([gone]), markerOf(2, 119n), batchOf([stays])]));
    await until(() => signaturesIn(first).includes(hex(stays.signature)), "the slot");
    await until(() => first.messages.some((one) => one.deshred_update_parent), "the marker");
    const second = subscribeDeshred(running.service.address, all, { metadata: fromSlot(121) });
    await until(() => signaturesIn(second).length > 0, "the transaction");
    await until(() => second.messages.some((one) => one.deshred_update_parent), "the marker");
    expect(signaturesIn(second)).toEqual([hex(stays.signature)]);
  });

  it("delivers a replay that is longer than the client's queue", async () => {
    // Half of it is not an integer.
    const { running, first } = await recorded("queueBytes: 65537");
    first.call.cancel();
    const { streams } = running.relay;
    const before = streams.history().bytes;
    const sent = sendSlots(running, 121, 128, 400);
    const recordBytes = 64 + transactionOf([accountOf(121)]).wire.length;
    const bytes = before + sent.length * recordBytes;
    await until(() => streams.history().bytes > bytes, "the slots");
    const slow = subscribeDeshred(running.service.address, all, { metadata: fromSlot(121) });
    slow.pause();
    await until(() => running.service.status().history.replays === 1, "the replay");
    slow.resume();
    await until(() => signaturesIn(slow).length === sent.length, "the whole replay");
    expect(signaturesIn(slow)).toEqual(sent);
    expect(slow.end).toBeUndefined();
  });

  it("is refused below the history and far above it, with the words of Yellowstone", async () => {
    const { running, first } = await recorded();
    const refusal = async (slot: number | string) => {
      const client = subscribeDeshred(running.service.address, all, { metadata: fromSlot(slot) });
      await until(() => client.end !== undefined, "the refusal");
      return client.end;
    };
    expect(await refusal(120)).toEqual({
      code: status.OUT_OF_RANGE,
      details: "broadcast from 120 is not available, last available: 121",
    });
    expect(await refusal(250)).toEqual({
      code: status.OUT_OF_RANGE,
      details: "broadcast from 250 is not available: the newest slot is 120",
    });
    expect(await refusal("12x")).toEqual({
      code: status.INVALID_ARGUMENT,
      details: 'metadata x-from-slot: expected a slot as a decimal number, got "12x"',
    });
    const entries = subscribeEntries(running.service.address, fromSlot(121));
    await until(() => entries.end !== undefined, "the refusal");
    expect(entries.end).toEqual({
      code: status.INVALID_ARGUMENT,
      details: "metadata x-from-slot: expected none, because only transactions can be replayed",
    });
    expect(first.end).toBeUndefined();
    expect(running.service.status().history.replays).toBe(0);
  });

  it("takes a place among the replays only when it has filters", async () => {
    const { running } = await recorded("subscriptionsPerAccountMax: 100");
    const { service } = running;
    const sent = sendSlots(running, 121, 121);
    const silent = Array.from({ length: replaysMax }, () =>
      subscribeDeshred(service.address, { ping: { id: 1 } }, { metadata: fromSlot(121) }),
    );
    await until(() => silent.every(({ messages }) => messages.length === 1), "their pongs");
    expect(service.status().history.replays).toBe(0);
    const other = subscribeDeshred(service.address, all, { metadata: fromSlot(121) });
    await until(() => signaturesIn(other).length === sent.length, "the replay");
    silent[0]?.call.write(all);
    await until(
      () => silent.some((one) => signaturesIn(one).length === sent.length),
      "another replay",
    );
    expect(silent.every(({ end }) => end === undefined)).toBe(true);
  });

  it("is refused without a history", async () => {
    const running = await runningStreams("replayBytes: 0");
    const { address } = running.service;
    const client = subscribeDeshred(address, all, { metadata: fromSlot(121) });
    await until(() => client.end !== undefined, "the refusal");
    expect(client.end).toEqual({
      code: status.OUT_OF_RANGE,
      details: "from_slot is not supported",
    });
  });
});

it("records a tier until two minutes after its last stream", async () => {
  const { running, first } = await recorded();
  const oldest = () => running.relay.streams.history().oldest("tier-1");
  expect(oldest()).toBe(121n);
  expect(running.service.status().history).toMatchObject({ replays: 0, replayed: 0n });
  expect(running.service.status().history.bytes).toBeGreaterThan(3 * 100);
  first.call.cancel();
  await inForce(running, 0);
  running.clock.move(110_000);
  await inForce(running, 0);
  expect(oldest()).toBe(121n);
  running.clock.move(11_000);
  await until(() => oldest() === null, "the end of the history");
  expect(running.service.status().history.bytes).toBe(0);
});
