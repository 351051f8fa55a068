// Decoded streams over real sockets, with clients of @grpc/grpc-js: dialects, refusals, limits and ends.

import { createHash } from "node:crypto";
import { status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { hasTestdata, leaderKey, packetsOf, testdataFile } from "../../support/shreds/captures.ts";
import { type Entry, readEntries } from "../../support/shreds/entries.ts";
import {
  type DeshredUpdate,
  metadataOf,
  type Received,
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

const all = { deshred_transactions: { all: {} } };
const text = (account: Uint8Array) => encodeBase58(account);

function transactionsIn({ messages }: Received<DeshredUpdate>) {
  return messages.flatMap(({ deshred_transaction: one, filters }) =>
    one ? [{ slot: one.slot, signature: one.transaction.signature, filters }] : [],
  );
}

/** Waits until the relay uses the filters of all streams. */
async function inForce(
  { service }: RunningStreams,
  expected: { readonly streams: number; readonly filters: number },
): Promise<void> {
  await until(() => {
    const { accounts, filters } = service.status();
    const streams = accounts.reduce((sum, { open }) => sum + open, 0);
    return (
      streams === expected.streams && filters.filters === expected.filters && filters.isCurrent
    );
  }, "the filters to be in force");
}

describe("SubscribeEntries", () => {
  it("sends every batch byte for byte, markers included", async () => {
    const running = await runningStreams();
    const client = subscribeEntries(running.service.address);
    await inForce(running, { streams: 1, filters: 0 });
    const batches = [markerOf(1), batchOf([transactionOf(), transactionOf()]), batchOf([])];
    running.send(slotOf(120n, batches));
    const own = () => client.messages.filter(({ slot }) => slot === 120);
    await until(() => own().length === 3, "three batches");
    expect(own().map(({ entries }) => entries)).toEqual(batches.map((one) => Buffer.from(one)));
  });

  it.skipIf(!hasTestdata)(
    "sends a real block with its known answers, in both dialects",
    async () => {
      const folder = "sig-testnet-356797362";
      const slot = 356_797_362n;
      const leader = leaderKey(folder);
      const running = await runningStreams("", { leader, firstSlot: slot - 50n });
      const entries = subscribeEntries(running.service.address);
      const deshred = subscribeDeshred(running.service.address, all);
      await until(() => openStreams(running) === 2, "both streams");
      await inForce(running, { streams: 2, filters: 1 });
      running.send(packetsOf(testdataFile(folder, "data.lpb")));
      await until(() => entries.messages.length === 15, "all batches");
      await until(() => transactionsIn(deshred).length === 2293, "all transactions");
      const parsed: Entry[] = entries.messages.flatMap((message) =>
        readEntries(message.entries, { mayHaveMore: true }),
      );
      const sha256 = (parts: readonly Uint8Array[]) =>
        createHash("sha256").update(Buffer.concat(parts)).digest("hex");
      // The known answers of native/test/deshred_captures_test.cc, by an independent decoder.
      expect(parsed.length).toBe(2357);
      expect(sha256(parsed.map(({ hash }) => hash))).toBe(
        "9ef7f1229b35a23aecf4ee02ea054d82690d401af29222b1f25e882790fb8b94",
      );
      const signatures = parsed.flatMap(({ transactions }) =>
        transactions.map((one) => one.signature),
      );
      expect(sha256(signatures)).toBe(
        "806191400248c981f4a24cb3dec8e8614b36aea4549c316784833984f8397d3f",
      );
      const hex = (one: Uint8Array) => Buffer.from(one).toString("hex");
      expect(
        transactionsIn(deshred)
          .map(({ signature }) => hex(signature))
          .toSorted(),
      ).toEqual(signatures.map(hex).toSorted());
    },
  );
});

function openStreams({ service }: RunningStreams): number {
  return service.status().accounts.reduce((sum, { open }) => sum + open, 0);
}

describe("SubscribeDeshred", () => {
  it("sends each transaction once with the names of all filters that match", async () => {
    const running = await runningStreams();
    const [a, b] = [accountOf(1), accountOf(2)];
    const client = subscribeDeshred(running.service.address, {
      deshred_transactions: {
        first: { account_include: [text(a)] },
        both: { account_required: [text(a), text(b)] },
        not: { account_include: [text(a)], account_exclude: [text(b)] },
      },
    });
    await inForce(running, { streams: 1, filters: 3 });
    const made = [transactionOf([a]), transactionOf([a, b]), transactionOf([b])];
    running.send(slotOf(120n, [batchOf(made)]));
    await until(() => transactionsIn(client).length === 2, "two transactions");
    const seen = transactionsIn(client);
    expect(seen.map(({ signature }) => signature)).toEqual(
      made.slice(0, 2).map(({ signature }) => Buffer.from(signature)),
    );
    expect(seen.map(({ filters }) => filters.toSorted())).toEqual([
      ["first", "not"],
      ["both", "first"],
    ]);
  });

  it("applies other filters between two transactions, without a loss or a repetition", async () => {
    const running = await runningStreams();
    const everything = (name: string) => ({ deshred_transactions: { [name]: {} } });
    const client = subscribeDeshred(running.service.address, everything("0"));
    await inForce(running, { streams: 1, filters: 1 });
    const made = Array.from({ length: 300 }, () => transactionOf());
    for (let i = 0; i < 30; i++) {
      if (i % 3 === 0) client.call.write(everything(`${i / 3 + 1}`));
      running.send(slotOf(BigInt(120 + i), [batchOf(made.slice(10 * i, 10 * i + 10))]));
      running.clock.move(25);
      await until(() => transactionsIn(client).length >= 10 * i, "the transactions before");
    }
    await until(() => transactionsIn(client).length >= made.length, "all transactions");
    const signatures = transactionsIn(client).map(({ signature }) => encodeBase58(signature));
    expect(signatures.toSorted()).toEqual(
      made.map(({ signature }) => encodeBase58(signature)).toSorted(),
    );
    const names = transactionsIn(client).map(({ filters }) => Number(filters.join()));
    expect(names).toEqual(names.toSorted((a, b) => a - b));
    await inForce(running, { streams: 1, filters: 1 });
    running.send(slotOf(200n, [batchOf([transactionOf()])]));
    await until(() => transactionsIn(client).length > made.length, "one more");
    expect(transactionsIn(client).at(-1)?.filters).toEqual(["10"]);
  });

  it("answers pings, and replaces filters without a new call", async () => {
    const running = await runningStreams();
    const client = subscribeDeshred(running.service.address, all);
    client.call.write({ ping: { id: 7 } });
    await until(() => client.messages.some(({ update }) => update === "pong"), "the pong");
    const wanted = accountOf(5);
    client.call.write({ deshred_transactions: { only: { account_include: [text(wanted)] } } });
    await until(() => running.service.status().filters.accounts === 1, "the new filters");
    await inForce(running, { streams: 1, filters: 1 });
    running.send(slotOf(120n, [batchOf([transactionOf(), transactionOf([wanted])])]));
    await until(() => transactionsIn(client).some(({ slot }) => slot === 120), "the transaction");
    const own = transactionsIn(client).filter(({ slot }) => slot === 120);
    expect(own.map(({ filters }) => filters)).toEqual([["only"]]);
    running.clock.move(10_000);
    await until(() => client.messages.some(({ update }) => update === "ping"), "a ping");
  });

  it("withdraws what precedes an update-parent marker, if the filter asks for it", async () => {
    const running = await runningStreams();
    const request = (include_update_parent: boolean) => ({
      deshred_transactions: { mine: { include_update_parent } },
    });
    const client = subscribeDeshred(running.service.address, request(true));
    const other = subscribeDeshred(running.service.address, request(false));
    await inForce(running, { streams: 2, filters: 2 });
    const [first, second] = [transactionOf(), transactionOf()];
    running.send(slotOf(121n, [batchOf([first]), markerOf(2, 118n), batchOf([second])]));
    const own = (one: typeof client) => transactionsIn(one).filter(({ slot }) => slot === 121);
    await until(() => own(client).length === 2 && own(other).length === 2, "both transactions");
    const parents = client.messages.flatMap((one) => one.deshred_update_parent ?? []);
    expect(parents).toEqual([
      {
        slot: 121,
        update_parent_fec_set_index: 32,
        parent_slot: 118,
        parent_block_id: Buffer.alloc(32, 6),
      },
    ]);
    expect(other.messages.flatMap((one) => one.deshred_update_parent ?? [])).toEqual([]);
  });

  it("gives an account only what its tier's sources delivered", async () => {
    const running = await runningStreams("tier: tier-2");
    running.keys.set("bob", { id: "bob", accountId: "b", accountName: "bob", scopes: ["stream"] });
    const narrow = subscribeDeshred(running.service.address, all);
    const metadata = metadataOf({ "x-token": "bob" });
    const wide = subscribeDeshred(running.service.address, all, { metadata });
    await inForce(running, { streams: 2, filters: 2 });
    running.send(slotOf(130n, [batchOf([transactionOf()])]), "own-use");
    running.send(slotOf(131n, [batchOf([transactionOf()])]), "tier-2");
    await until(() => transactionsIn(wide).some(({ slot }) => slot === 131), "tier 2");
    running.send(slotOf(132n, [batchOf([transactionOf()])]), "tier-1");
    const has = (one: typeof wide) => transactionsIn(one).some(({ slot }) => slot === 132);
    await until(() => has(wide) && has(narrow), "tier 1");
    const slots = (one: typeof wide) =>
      transactionsIn(one)
        .map(({ slot }) => slot)
        .filter((slot) => slot < 200);
    expect(slots(narrow)).toEqual([132]);
    expect(slots(wide)).toEqual([131, 132]);
  });
});

describe("refusals", () => {
  it("take the key from each documented place", async () => {
    const { service } = await runningStreams();
    const places = [
      { "x-token": "alice" },
      { "x-api-key": "alice" },
      { authorization: "Bearer alice" },
      { "api-key": "alice" },
    ];
    for (const place of places) {
      const client = subscribeDeshred(
        service.address,
        { ping: { id: 1 } },
        { metadata: metadataOf(place) },
      );
      await until(() => client.messages.length > 0, "the pong");
      client.call.cancel();
    }
  });

  it("name what is missing", async () => {
    const { service, keys, tiers } = await runningStreams();
    keys.set("bob", { id: "b", accountId: "b", accountName: "bob", scopes: ["submit"] });
    keys.set("carol", { id: "c", accountId: "c", accountName: "carol", scopes: ["stream"] });
    expect(tiers.has("c")).toBe(false);
    const endOf = async (metadata: Record<string, string>) => {
      const client = subscribeEntries(service.address, metadataOf(metadata));
      await until(() => client.end !== undefined, "the end");
      return client.end;
    };
    expect(await endOf({})).toMatchObject({
      code: status.UNAUTHENTICATED,
      details: expect.stringMatching(
        /^missing API key; expected a valid API key as metadata x-token/,
      ),
    });
    expect(await endOf({ "x-token": "mallory" })).toMatchObject({
      code: status.UNAUTHENTICATED,
      details: expect.stringMatching(/^invalid API key/),
    });
    expect(await endOf({ "x-token": "alice", "x-api-key": "bob" })).toMatchObject({
      code: status.UNAUTHENTICATED,
      details: expect.stringMatching(/^the call contains different API keys/),
    });
    expect(await endOf({ "x-token": "bob" })).toMatchObject({
      code: status.PERMISSION_DENIED,
      details: "the API key does not have the scope stream; it has: submit",
    });
    expect(await endOf({ "x-token": "carol" })).toMatchObject({
      code: status.PERMISSION_DENIED,
      details: "the account has no tier; register tips for shreds first",
    });
    expect(Object.fromEntries(service.status().refusals)).toEqual({
      UNAUTHENTICATED: 3,
      PERMISSION_DENIED: 2,
    });
  });

  it("name a tier that the relay does not have, and leave the filters of others alone", async () => {
    const running = await runningStreams();
    const { service, keys, tiers } = running;
    keys.set("bob", { id: "bob", accountId: "b", accountName: "bob", scopes: ["stream"] });
    tiers.set("b", "tier-9");
    const metadata = metadataOf({ "x-token": "bob" });
    const other = subscribeDeshred(service.address, all, { metadata });
    await until(() => other.end !== undefined, "the refusal");
    expect(other.end).toEqual({
      code: status.UNAVAILABLE,
      details: 'the running relay has no tier "tier-9"; the operator has to restart the service',
    });
    const client = subscribeDeshred(service.address, all);
    await inForce(running, { streams: 1, filters: 1 });
    running.send(slotOf(120n, [batchOf([transactionOf()])]));
    await until(() => transactionsIn(client).length === 1, "the transaction");
  });

  it("bound filters, accounts and streams", async () => {
    const { service } = await runningStreams(
      "filtersMax: 2, accountsMax: 3, subscriptionsPerAccountMax: 2",
    );
    const refusal = async (request: unknown) => {
      const client = subscribeDeshred(service.address, request);
      await until(() => client.end !== undefined, "the end");
      return client.end;
    };
    const accounts = (count: number) => Array.from({ length: count }, (_, i) => text(accountOf(i)));
    expect(await refusal({ deshred_transactions: { a: {}, b: {}, c: {} } })).toEqual({
      code: status.INVALID_ARGUMENT,
      details: "filters: expected at most 2, got 3",
    });
    expect(
      await refusal({ deshred_transactions: { a: { account_include: accounts(4) } } }),
    ).toEqual({
      code: status.INVALID_ARGUMENT,
      details: "accounts in all filters: expected at most 3, got 4",
    });
    expect(
      await refusal({ deshred_transactions: { a: { account_include: ["0"] } } }),
    ).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringMatching(/^deshred_transactions\.a\.account_include: /),
    });
    expect(service.status().ends.get("refused")).toBe(3);
    const [first, second] = [
      subscribeDeshred(service.address, { ping: { id: 1 } }),
      subscribeDeshred(service.address, { ping: { id: 1 } }),
    ];
    await until(() => first.messages.length > 0 && second.messages.length > 0, "two streams");
    expect(await refusal(all)).toEqual({
      code: status.RESOURCE_EXHAUSTED,
      details: "streams of this account: expected at most 2 at once, got one more; close one first",
    });
    first.call.cancel();
    await until(() => service.status().ends.get("client") === 1, "the end of the first");
    const third = subscribeDeshred(service.address, { ping: { id: 1 } });
    await until(() => third.messages.length > 0, "a stream in its place");
  });

  it("end with a shortened text, wherever it is cut", async () => {
    const { service } = await runningStreams();
    for (const padding of ["", "-"]) {
      const name = `shredway.${padding}${"\u0001".repeat(32)}${"😀".repeat(40)}`;
      const client = subscribeDeshred(service.address, { deshred_transactions: { [name]: {} } });
      await until(() => client.end !== undefined, "the end");
      expect(client.end).toEqual({
        code: status.INVALID_ARGUMENT,
        details: expect.stringMatching(/^deshred_transactions: expected names .*😀…$/u),
      });
    }
  });

  it("refuse Subscribe and name the call to use", async () => {
    const { service } = await runningStreams();
    const client = subscribeDeshred(service.address, all, { method: "Subscribe" });
    await until(() => client.end !== undefined, "the end");
    expect(client.end).toMatchObject({
      code: status.UNIMPLEMENTED,
      details: expect.stringContaining("use SubscribeDeshred"),
    });
  });
});

describe("ends", () => {
  it("come within a second after a key was revoked or a tier changed", async () => {
    const running = await runningStreams();
    const client = subscribeDeshred(running.service.address, { ping: { id: 1 } });
    await until(() => client.messages.length > 0, "the stream");
    running.tiers.set("account of alice", "tier-2");
    running.clock.move(1000);
    await until(() => client.end !== undefined, "the end");
    expect(client.end).toEqual({
      code: status.UNAVAILABLE,
      details: "tier_changed: the account's tier is tier-2 now; subscribe again",
    });
    const next = subscribeDeshred(running.service.address, { ping: { id: 1 } });
    await until(() => next.messages.length > 0, "the next stream");
    running.keys.clear();
    running.clock.move(1000);
    await until(() => next.end !== undefined, "the end");
    expect(next.end).toMatchObject({
      code: status.UNAUTHENTICATED,
      details: expect.stringMatching(/^revoked: /),
    });
    expect(Object.fromEntries(running.service.status().ends)).toMatchObject({
      tier_changed: 1,
      revoked: 1,
    });
  });

  it("come to a client that does not read, with the amount, and to nobody else", async () => {
    const running = await runningStreams("queueBytes: 65536");
    const slow = subscribeEntries(running.service.address);
    const fast = subscribeEntries(running.service.address);
    await inForce(running, { streams: 2, filters: 0 });
    slow.pause();
    const large = batchOf(Array.from({ length: 1500 }, () => transactionOf()));
    const lagged = () => running.service.status().ends.get("lagged") === 1;
    for (let slot = 110n; !lagged(); slot++) {
      if (slot === 190n) expect.fail("expected the slow client to lag");
      const before = fast.messages.length;
      running.send(slotOf(slot, [large]));
      await until(() => fast.messages.length > before, "the batch");
    }
    slow.resume();
    await until(() => slow.end !== undefined, "the end");
    expect(slow.end).toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
      details: expect.stringMatching(
        /^lagged: \d+ messages and \d+ bytes wait for this client; expected at most 65536 bytes$/,
      ),
    });
    expect(fast.end).toBeUndefined();
  });

  it("reach every client before the service ends", async () => {
    const { service, clock } = await runningStreams();
    const deshred = subscribeDeshred(service.address, { ping: { id: 1 } });
    const entries = subscribeEntries(service.address);
    const open = () => service.status().accounts.reduce((sum, one) => sum + one.open, 0);
    await until(() => deshred.messages.length === 1 && open() === 2, "both streams");
    service.close();
    await until(() => deshred.end !== undefined && entries.end !== undefined, "both ends");
    const end = { code: status.UNAVAILABLE, details: "closing: the service is shutting down" };
    expect([deshred.end, entries.end]).toEqual([end, end]);
    await until(() => {
      clock.move(1000);
      return service.status().connections === 0;
    }, "the ends of the connections");
  });

  it("stay in the list of the account, after the open streams", async () => {
    const running = await runningStreams();
    const { service, clock } = running;
    const deshred = subscribeDeshred(service.address, {
      deshred_transactions: {
        mine: { account_include: [text(accountOf(1))] },
        votes: { vote: true },
      },
    });
    await inForce(running, { streams: 1, filters: 2 });
    const entries = subscribeEntries(service.address);
    await inForce(running, { streams: 2, filters: 2 });
    running.send(slotOf(120n, [batchOf([transactionOf([accountOf(1)]), transactionOf()])]));
    await until(() => entries.messages.length > 0 && transactionsIn(deshred).length > 0, "both");
    const owner = { keyId: "alice", accountId: "account of alice", accountName: "alice" };
    const { open, ended } = service.snapshot();
    expect(ended).toEqual([]);
    expect(open).toMatchObject([
      { ...owner, dialect: "deshred", tier: "tier-1", filters: 2, matched: 1, waitingBytes: 0 },
      { ...owner, dialect: "entries", address: "127.0.0.1", filters: 0, sent: 1 },
    ]);
    // The clock of the test does not run with the kernel's.
    expect(open[0]?.delaySumNs).not.toBe(0);
    entries.call.cancel();
    await until(() => service.snapshot().open.length === 1, "the first end");
    clock.move(1000);
    running.keys.clear();
    clock.move(1000);
    await until(() => service.snapshot().open.length === 0, "the second end");
    const [last, first] = service.snapshot().ended;
    expect(last).toMatchObject({
      ...owner,
      dialect: "deshred",
      reason: "revoked",
      text: expect.stringMatching(/^revoked: /),
      matched: 1,
    });
    expect(first).toMatchObject({ dialect: "entries", reason: "client", text: "", matched: 1 });
  });

  it("leave nothing behind after many streams", async () => {
    const running = await runningStreams("subscriptionsPerAccountMax: 60");
    for (let round = 0; round < 5; round++) {
      const clients = Array.from({ length: 40 }, () =>
        subscribeDeshred(running.service.address, { ...all, ping: { id: 1 } }),
      );
      await until(() => clients.every(({ messages }) => messages.length > 0), "all pongs");
      for (const { call } of clients) call.cancel();
      await until(() => openStreams(running) === 0, "all ends");
    }
    expect(running.service.status().ends.get("client")).toBe(200);
    expect(running.service.snapshot().ended).toHaveLength(10);
    expect(running.relay.snapshot().deshred.stream_lost).toBe(0n);
  });
});
