// The stock client @triton-one/yellowstone-grpc against the running service: every call that it has for
// streams of deshred transactions, and what it decodes.

import { createRequire } from "node:module";
import type {
  ClientDeshredDuplexStream,
  SubscribeUpdateDeshred,
} from "@triton-one/yellowstone-grpc";
import { describe, expect, it } from "vitest";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { type RunningStreams, runningStreams } from "../../support/streams/stream-clients.ts";
import {
  accountOf,
  batchOf,
  slotOf,
  transactionOf,
  v0TransactionOf,
  voteProgram,
} from "../../support/streams/stream-relay.ts";

// The declarations of the package describe its CommonJS form.
const { default: Client }: typeof import("@triton-one/yellowstone-grpc") = createRequire(
  import.meta.url,
)("@triton-one/yellowstone-grpc");

/** Numbers of Yellowstone's SlotStatus. */
const slotStatus = { firstShredReceived: 3, completed: 4 } as const;

type ChannelOptions = ConstructorParameters<typeof Client>[2];

async function connected({ service }: RunningStreams, key = "alice", options?: ChannelOptions) {
  const client = new Client(`http://${service.address}`, key, options);
  await client.connect();
  return client;
}

function collect(stream: ClientDeshredDuplexStream) {
  const seen = { updates: Array.of<SubscribeUpdateDeshred>(), errors: Array.of<string>() };
  stream.on("data", (update: SubscribeUpdateDeshred) => seen.updates.push(update));
  stream.on("error", (error: Error) => seen.errors.push(error.message));
  return seen;
}

describe("@triton-one/yellowstone-grpc", () => {
  it("makes its calls before a subscription", async () => {
    const running = await runningStreams();
    const client = await connected(running);
    expect(JSON.parse((await client.getVersion()).version)).toMatchObject({
      version: { package: "shredway" },
    });
    expect((await client.ping(5)).count).toBe(5);
    expect(Number((await client.getSlot()).slot)).toBe(123);
    expect((await client.subscribeReplayInfo()).firstAvailable).toBeUndefined();
    // No node is configured. The client does not show the server's message.
    await expect(client.getBlockHeight()).rejects.toThrow("failed");
    await expect(client.getLatestBlockhash()).rejects.toThrow("failed");
    expect(running.service.status().refusals).toEqual(new Map([["UNAVAILABLE", 2]]));
  });

  it.each([
    ["gzip", 0],
    ["zstd", 1],
  ])("makes its calls if it compresses with %s", async (_, grpcDefaultCompressionAlgorithm) => {
    const running = await runningStreams();
    const client = await connected(running, "alice", { grpcDefaultCompressionAlgorithm });
    expect((await client.ping(5)).count).toBe(5);
    const stream = await client.subscribeDeshred();
    const { updates, errors } = collect(stream);
    const everything = { accountInclude: [], accountExclude: [], accountRequired: [] };
    stream.write({ deshredTransactions: { all: everything }, slots: {} });
    await until(() => running.service.status().filters.filters === 1, "the filter");
    await until(() => running.service.status().filters.isCurrent, "the filters");
    running.send(slotOf(120n, [batchOf([transactionOf()])]));
    await until(() => updates.some((one) => one.deshredTransaction), "the transaction");
    expect(errors).toEqual([]);
  });

  it("learns the first slot that can be replayed", async () => {
    const running = await runningStreams();
    const client = await connected(running);
    const stream = await client.subscribeDeshred();
    const { updates } = collect(stream);
    const everything = { accountInclude: [], accountExclude: [], accountRequired: [] };
    stream.write({ deshredTransactions: { all: everything }, slots: {} });
    await until(() => running.service.status().filters.filters === 1, "the filter");
    await until(() => running.service.status().filters.isCurrent, "the filters");
    running.send(slotOf(120n, [batchOf([transactionOf()])]));
    await until(() => updates.some((one) => one.deshredTransaction), "the transaction");
    expect((await client.subscribeReplayInfo()).firstAvailable).toBe("121");
  });

  it("receives transactions, slots and pongs, and decodes every field", async () => {
    const running = await runningStreams();
    const client = await connected(running);
    const stream = await client.subscribeDeshred();
    const { updates } = collect(stream);
    stream.write({
      deshredTransactions: {
        votes: { vote: true, accountInclude: [], accountExclude: [], accountRequired: [] },
        mine: {
          accountInclude: [encodeBase58(accountOf(1))],
          accountExclude: [],
          accountRequired: [],
        },
      },
      slots: { slots: {} },
    });
    await until(() => {
      const { filters } = running.service.status();
      return filters.filters === 2 && filters.isCurrent;
    }, "the filters");
    const [vote, plain] = [
      transactionOf([accountOf(3), voteProgram]),
      v0TransactionOf([accountOf(1), accountOf(2)], accountOf(9)),
    ];
    running.send(slotOf(120n, [batchOf([vote, plain, transactionOf([accountOf(7)])])]));
    const isComplete = ({ slot }: SubscribeUpdateDeshred) =>
      Number(slot?.status) === slotStatus.completed;
    await until(() => updates.some(isComplete), "the end of the slot");
    const transactions = updates.flatMap(({ deshredTransaction, filters, createdAt }) =>
      deshredTransaction ? [{ ...deshredTransaction, filters, createdAt }] : [],
    );
    expect(transactions.map(({ filters }) => filters)).toEqual([["votes"], ["mine"]]);
    expect(transactions.map(({ slot }) => slot)).toEqual(["120", "120"]);
    expect(transactions.map(({ transaction }) => transaction?.isVote)).toEqual([true, false]);
    const info = transactions[1]?.transaction;
    expect(Buffer.from(info?.signature ?? [])).toEqual(Buffer.from(plain.signature));
    expect(info).toMatchObject({ completedDataSetStartingShredIndex: 0 });
    const bytes = (value: Uint8Array | undefined) => Buffer.from(value ?? []).toString("hex");
    const message = info?.transaction?.message;
    expect(message).toMatchObject({
      header: { numRequiredSignatures: 1, numReadonlySignedAccounts: 0 },
      versioned: true,
    });
    expect(message?.accountKeys.map(bytes)).toEqual([accountOf(1), accountOf(2)].map(bytes));
    expect(bytes(message?.recentBlockhash)).toBe("ab".repeat(32));
    expect(message?.instructions.map(({ data }) => bytes(data))).toEqual(["0708"]);
    expect(message?.addressTableLookups.map(({ accountKey }) => bytes(accountKey))).toEqual([
      bytes(accountOf(9)),
    ]);
    expect(transactions[0]?.transaction?.transaction?.message?.versioned).toBe(false);
    expect(transactions[0]?.createdAt?.getTime()).toBeGreaterThan(1.7e12);
    const [begin] = updates.flatMap(({ slot }) => slot ?? []);
    expect(begin).toMatchObject({
      slot: "120",
      parent: "119",
      status: slotStatus.firstShredReceived,
    });
    stream.write({ deshredTransactions: {}, slots: {}, ping: { id: 3 } });
    await until(() => updates.some(({ pong }) => pong?.id === 3), "the pong");
    stream.destroy();
    await until(() => running.service.status().ends.get("client") === 1, "the end");
  });

  it("is refused with an unknown key", async () => {
    const running = await runningStreams();
    const client = await connected(running, "mallory");
    await expect(client.ping(1)).rejects.toThrow("failed");
    expect(running.service.status().refusals).toEqual(new Map([["UNAUTHENTICATED", 1]]));
  });
});
