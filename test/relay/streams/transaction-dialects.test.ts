// SubscribePreprocessed and SubscribeTransactions over real sockets, with clients of @grpc/grpc-js.

import { status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { until } from "../../support/network/udp-receiver.ts";
import {
  type PreprocessedUpdate,
  type Received,
  runningStreams,
  type ShrederUpdate,
  subscribePreprocessed,
  subscribeShrederEntries,
  subscribeTransactions,
} from "../../support/streams/stream-clients.ts";
import {
  accountOf,
  batchOf,
  markerOf,
  slotOf,
  transactionOf,
  v0TransactionOf,
  voteProgram,
} from "../../support/streams/stream-relay.ts";
import { inForce } from "../../support/streams/stream-sockets.ts";

const text = encodeBase58;

function transactionsIn({ messages }: Received<PreprocessedUpdate>, slot: number) {
  return messages.flatMap(({ transaction: one, filters }) =>
    one?.slot === slot ? [{ ...one.transaction, filters: filters.toSorted() }] : [],
  );
}

describe("SubscribePreprocessed", () => {
  it("sends each transaction once with the names of all filters that match", async () => {
    const running = await runningStreams();
    const [a, b] = [accountOf(1), accountOf(2)];
    const made = [
      transactionOf([a]),
      transactionOf([a, b]),
      transactionOf([b]),
      transactionOf([b, voteProgram]),
    ];
    const [one, both, other, vote] = made.map(({ signature }) => Buffer.from(signature));
    const client = subscribePreprocessed(running.service.address, {
      transactions: {
        include: { account_include: [text(a)] },
        required: { account_required: [text(a), text(b)] },
        exclude: { account_include: [text(a)], account_exclude: [text(b)], vote: false },
        signature: { signature: text(other ?? new Uint8Array()) },
        votes: { vote: true },
      },
    });
    await inForce(running, 1);
    running.send(slotOf(120n, [batchOf(made)]));
    await until(() => transactionsIn(client, 120).length === 4, "the transactions");
    expect(transactionsIn(client, 120)).toEqual([
      { signature: one, filters: ["exclude", "include"] },
      { signature: both, filters: ["include", "required"] },
      { signature: other, filters: ["signature"] },
      { signature: vote, is_vote: true, filters: ["votes"] },
    ]);
  });

  it("answers pings, sends its own, and replaces filters without a new call", async () => {
    const running = await runningStreams();
    const client = subscribePreprocessed(running.service.address, { ping: { id: 9 } });
    await until(() => client.messages.some(({ update }) => update === "pong"), "the pong");
    client.call.write({ transactions: { all: {} } });
    await until(() => running.service.status().filters.filters === 1, "the filter");
    client.call.write({ transactions: { a: { account_include: [text(accountOf(1))] }, b: {} } });
    await until(() => running.service.status().filters.filters === 2, "the new filters");
    running.clock.move(10_000);
    await until(() => client.messages.some(({ update }) => update === "ping"), "a ping");
  });

  it("refuses invalid filters with the place and what is expected", async () => {
    const running = await runningStreams("accountsMax: 2");
    const refusal = async (request: unknown) => {
      const client = subscribePreprocessed(running.service.address, request);
      await until(() => client.end !== undefined, "the end");
      return client.end;
    };
    expect(await refusal({ transactions: { x: { signature: "0".repeat(64) } } })).toEqual({
      code: status.INVALID_ARGUMENT,
      details:
        "transactions.x.signature: expected a signature in base58 (64 bytes), got 64 characters",
    });
    expect(await refusal({ transactions: { x: { account_exclude: ["0"] } } })).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringMatching(
        /^transactions\.x\.account_exclude: public key: invalid value/,
      ),
    });
    const accounts = [1, 2, 3].map((number) => text(accountOf(number)));
    expect(await refusal({ transactions: { x: { account_required: accounts } } })).toEqual({
      code: status.INVALID_ARGUMENT,
      details: "accounts in all filters: expected at most 2, got 3",
    });
    expect(running.service.status().ends.get("refused")).toBe(3);
  });

  it("sends a transaction again that a known update-parent marker moves within its slot", async () => {
    const running = await runningStreams();
    const client = subscribePreprocessed(running.service.address, { transactions: { all: {} } });
    await inForce(running, 1);
    const [moved, last] = [transactionOf(), transactionOf()];
    const packets = slotOf(121n, [batchOf([moved]), markerOf(2, 118n), batchOf([moved, last])]);
    running.send(packets);
    const seen = () => transactionsIn(client, 121).map(({ signature }) => signature);
    await until(() => seen().some((each) => each.equals(Buffer.from(last.signature))), "the last");
    // The batches arrive in their order here, so the client gets one copy for each fork.
    const copies = seen().filter((each) => each.equals(Buffer.from(moved.signature)));
    expect(copies.length).toBe(2);
  });
});

describe("ShrederService", () => {
  it("sends transactions with all fields, by its filters", async () => {
    const running = await runningStreams();
    const [a, b] = [accountOf(1), accountOf(2)];
    const client = subscribeTransactions(running.service.address, {
      transactions: {
        mine: { account_include: [text(a)] },
        both: { account_required: [text(a), text(b)] },
        not: { account_include: [text(a)], account_exclude: [text(b)] },
      },
    });
    await inForce(running, 1);
    const made = v0TransactionOf([a, b], accountOf(9));
    running.send(slotOf(120n, [batchOf([transactionOf([b]), made])]));
    const own = (): ShrederUpdate[] =>
      client.messages.filter(({ transaction }) => transaction.slot === 120);
    await until(() => own().length === 1, "the transaction");
    const [update] = own();
    expect(update?.filters.toSorted()).toEqual(["both", "mine"]);
    expect(update?.created_at.seconds).toBeGreaterThan(1.7e9);
    expect(update?.transaction.transaction.signatures).toEqual([Buffer.from(made.signature)]);
    expect(update?.transaction.transaction.message).toMatchObject({
      header: { num_required_signatures: 1 },
      account_keys: [Buffer.from(a), Buffer.from(b)],
      recent_blockhash: Buffer.alloc(32, 0xab),
      instructions: [
        { program_id_index: 1, accounts: Buffer.from([0]), data: Buffer.from([7, 8]) },
      ],
      versioned: true,
      address_table_lookups: [
        {
          account_key: Buffer.from(accountOf(9)),
          writable_indexes: Buffer.from([4]),
          readonly_indexes: Buffer.from([5]),
        },
      ],
    });
    expect(running.service.status().accounts).toMatchObject([{ dialect: "transactions", open: 1 }]);
  });

  it("sends entries as ShredstreamProxy does", async () => {
    const running = await runningStreams();
    const client = subscribeShrederEntries(running.service.address);
    await inForce(running, 1);
    const batch = batchOf([transactionOf()]);
    running.send(slotOf(120n, [batch]));
    await until(() => client.messages.some(({ slot }) => slot === 120), "the batch");
    expect(client.messages.find(({ slot }) => slot === 120)?.entries).toEqual(Buffer.from(batch));
  });
});
