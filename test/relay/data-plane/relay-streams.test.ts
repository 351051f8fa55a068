// Decoded streams from a datagram to JavaScript, through the addon. Native tests cover the engine.

import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import type { Relay } from "../../../src/relay/data-plane/relay.ts";
import {
  RelayStreams,
  type StreamFilter,
  type StreamMessage,
  type StreamTable,
} from "../../../src/relay/data-plane/relay-streams.ts";
import { until } from "../../support/network/udp-receiver.ts";
import {
  accountOf,
  batchOf,
  lookupTransactionOf,
  markerOf,
  openStreamRelay,
  slotOf,
  transactionOf,
  voteProgram,
} from "../../support/streams/stream-relay.ts";

const everything: StreamFilter = {
  id: 0,
  tier: "tier-1",
  votes: "any",
  signature: null,
  include: [],
  exclude: [],
  required: [],
};

function tableOf(
  filters: readonly StreamFilter[],
  entryTiers: readonly string[] = [],
): StreamTable {
  return { filters, entryTiers: new Set(entryTiers), historyTiers: new Set(), replays: [] };
}

/** Collects copies of all messages. */
function collect(relay: Relay): StreamMessage[] {
  const messages: StreamMessage[] = [];
  relay.streams.onMessages(() => {
    relay.streams.drain(
      (message) => messages.push({ ...message, content: Uint8Array.from(message.content) }),
      2 ** 31,
    );
  });
  return messages;
}

const isDone = (messages: readonly StreamMessage[], tier: string) =>
  messages.some((message) => message.kind === "slot_complete" && message.tier === tier);

describe("decoded streams", () => {
  it("carry each transaction with the filters that it matches", async () => {
    const { relay, send } = openStreamRelay();
    const messages = collect(relay);
    const vote = transactionOf([accountOf(1), voteProgram]);
    const plain = transactionOf([accountOf(1), accountOf(2)]);
    const generation = relay.streams.publish(
      tableOf([
        { ...everything, id: 3, votes: "none" },
        { ...everything, id: 4, votes: "only" },
        { ...everything, id: 4095, include: [accountOf(2), accountOf(9)] },
        { ...everything, id: 6, required: [accountOf(1)], exclude: [accountOf(2)] },
        { ...everything, id: 7, signature: plain.signature },
      ]),
    );
    send(slotOf(120n, [batchOf([vote, plain])]));
    await until(() => isDone(messages, "tier-1"), "the end of the slot");
    const transactions = messages.filter(({ kind }) => kind === "transaction");
    expect(transactions.map(({ filters }) => filters.toSorted((a, b) => a - b))).toEqual([
      [4, 6],
      [3, 7, 4095],
    ]);
    expect(transactions.map(({ content }) => Buffer.from(content))).toEqual([
      Buffer.from(vote.wire),
      Buffer.from(plain.wire),
    ]);
    expect(transactions.map(({ isVote }) => isVote)).toEqual([true, false]);
    expect(transactions[1]).toMatchObject({ slot: 120n, ordinal: 1, batchIndex: 0, generation });
    expect(Number(transactions[1]?.arrivalNs)).toBeGreaterThan(1.7e18);
    expect(messages[0]).toMatchObject({ kind: "filters_applied", generation });
    expect(messages[1]).toMatchObject({ kind: "slot_begin", slot: 120n, parent: 119n });
    expect(relay.streams.lost).toBe(0);
    expect(relay.streams.losses().byFilter(3)).toBe(0n);
  });

  it("carry batches byte for byte and restarts with their parent", async () => {
    const { relay, send } = openStreamRelay();
    const messages = collect(relay);
    relay.streams.publish(tableOf([], ["tier-1"]));
    const batches = [
      markerOf(1),
      batchOf([transactionOf()]),
      markerOf(2, 118n),
      batchOf([transactionOf()]),
    ];
    send(slotOf(121n, batches));
    await until(() => isDone(messages, "tier-1"), "the end of the slot");
    const entries = messages.filter(({ kind }) => kind === "entries");
    expect(entries.map(({ content }) => Buffer.from(content))).toEqual(
      batches.map((batch) => Buffer.from(batch)),
    );
    expect(messages.find(({ kind }) => kind === "restart")).toMatchObject({
      slot: 121n,
      parent: 118n,
      batchIndex: 64,
      content: new Uint8Array(32).fill(6),
    });
  });

  it("give a tier what its own sources delivered, and nothing of sources for own use", async () => {
    const { relay, send } = openStreamRelay();
    const messages = collect(relay);
    relay.streams.publish(
      tableOf([everything, { ...everything, id: 1, tier: "tier-2" }], ["tier-1", "tier-2"]),
    );
    send(slotOf(130n, [batchOf([transactionOf()])]), "own-use");
    send(slotOf(131n, [batchOf([transactionOf()])]), "tier-2");
    const last = slotOf(132n, [batchOf([transactionOf()])]);
    // The other half of the shreds of tier 2 comes from its own sources; it recovers nothing for tier 1.
    send(last.slice(0, 20), "tier-1");
    send(last.slice(20), "tier-2");
    await until(() => isDone(messages, "tier-2"), "the slot of tier 2");
    send(slotOf(133n, [batchOf([transactionOf()])]), "tier-1");
    await until(() => isDone(messages, "tier-1"), "the slot of tier 1");
    const slots = (tier: string) =>
      messages
        .filter((one) => one.kind === "transaction" && one.tier === tier)
        .map(({ slot }) => slot);
    expect(slots("tier-1").filter((slot) => slot !== 132n)).toEqual([133n]);
    expect(slots("tier-2")).toEqual(expect.arrayContaining([131n, 132n, 133n]));
    expect([...slots("tier-1"), ...slots("tier-2")]).not.toContain(130n);
    const entries = messages.filter(({ kind, tier }) => kind === "entries" && tier === "tier-1");
    expect(entries.map(({ slot }) => slot)).toEqual([133n]);
  });

  it("refuse impossible filters and keep the previous ones", () => {
    const { relay } = openStreamRelay();
    const publish = (filter: Partial<StreamFilter>) => () =>
      relay.streams.publish(tableOf([{ ...everything, ...filter }]));
    expect(publish({ tier: "none" })).toThrow("stream filters: filter 0 has an invalid field");
    expect(publish({ id: 8192 })).toThrow("expected an id below 8192, got 8192");
    expect(publish({ include: [new Uint8Array(31)] })).toThrow("accounts of 32 bytes");
    const { accounts } = RelayStreams.limits();
    const many = Array.from({ length: accounts + 1 }, (_, i) => accountOf(i));
    expect(publish({ include: many })).toThrow("expected at most 50000 accounts, got 50001");
    expect(publish({})()).toBe(1);
  });

  it("carry the addresses that transactions load, as an independent reader finds them", async () => {
    const { relay, send } = openStreamRelay();
    const random = new SeededRandom(3);
    const upTo = (max: number) => random.below(max + 1);
    const content = (table: number) => ({
      addresses: Array.from({ length: 20 + table }, (_, i) => accountOf(1000 * table + i)),
      extendedSlot: 0n,
      extensionBegin: 0,
    });
    relay.streams.lookupTables.apply(
      [1, 2, 3].map((table) => ({
        table: accountOf(table),
        usedSlot: 1n,
        content: content(table),
      })),
    );
    expect(relay.streams.lookupTables.counts()).toEqual({ tables: 3, addresses: 66, evicted: 0 });
    const indexes = () => Array.from({ length: upTo(3) }, () => upTo(21));
    const lookups = Array.from({ length: 200 }, () =>
      Array.from({ length: upTo(3) }, () => ({
        number: 1 + upTo(3),
        writable: indexes(),
        readonly: indexes(),
      })),
    );
    const expected = lookups.map((all) => {
      if (all.length === 0) return undefined;
      const isUnknown = all.some(
        ({ number, writable, readonly }) =>
          number > 3 || [...writable, ...readonly].some((i) => i >= 20 + number),
      );
      if (isUnknown) return null;
      const listOf = (kind: "writable" | "readonly") =>
        all.flatMap((one) => one[kind].map((i) => accountOf(1000 * one.number + i)));
      return { writable: listOf("writable"), readonly: listOf("readonly") };
    });
    const loaded: StreamMessage["loadedAddresses"][] = [];
    relay.streams.onMessages(() => {
      relay.streams.drain(({ kind, loadedAddresses }) => {
        if (kind !== "transaction") return;
        const { writable = [], readonly = [] } = loadedAddresses ?? {};
        const copy = (all: readonly Uint8Array[]) => all.map((one) => one.slice());
        loaded.push(loadedAddresses && { writable: copy(writable), readonly: copy(readonly) });
      }, 2 ** 31);
    });
    relay.streams.publish(tableOf([everything]));
    const transactions = lookups.map((all) =>
      lookupTransactionOf(
        [accountOf(8)],
        all.map(({ number, ...rest }) => ({ table: accountOf(number), ...rest })),
      ),
    );
    send(slotOf(120n, [batchOf(transactions)]));
    await until(() => loaded.length === 200, "all transactions");
    // Version 0 without lookups loads nothing.
    expect(loaded).toEqual(expected);
    const reports = relay.streams.lookupTables.reports();
    expect(reports).toContainEqual({ table: accountOf(4), slot: 120n, isChange: false });
    relay.streams.lookupTables.apply([{ table: accountOf(1), usedSlot: 1n, content: null }]);
    expect(relay.streams.lookupTables.counts().tables).toBe(2);
    const wrong = { table: new Uint8Array(31), usedSlot: 1n, content: null };
    expect(() => relay.streams.lookupTables.apply([wrong])).toThrow(
      "expected a table and addresses",
    );
  });
});
