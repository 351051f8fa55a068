// Decoded streams over real WebSockets: long streams, clients that read slowly, and ends.

import { base58 } from "@scure/base";
import { describe, expect, it } from "vitest";
import { hasUws } from "../../support/gateway/has-uws.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { hasTestdata, leaderKey, packetsOf, testdataFile } from "../../support/shreds/captures.ts";
import { readEntries } from "../../support/shreds/entries.ts";
import { subscribeEntries } from "../../support/streams/stream-clients.ts";
import {
  batchOf,
  type MadeTransaction,
  slotOf,
  transactionOf,
} from "../../support/streams/stream-relay.ts";
import {
  connectTo,
  inForce,
  streamKey,
  streamSockets,
} from "../../support/streams/stream-sockets.ts";

const text = (bytes: Uint8Array) => base58.encode(bytes);
const signatureOf = ({ signature }: MadeTransaction) => text(signature);

describe("a long stream", () => {
  it.each(["node", "uws"] as const)("waits for a client that pauses, engine %s", async (engine) => {
    if (engine === "uws" && !hasUws) return;
    const run = await streamSockets("queueBytes: 67108864", engine);
    const client = await connectTo(run);
    await client.subscribe("shredSubscribe", [{}, { encoding: "json" }]);
    await inForce(run, 1);
    client.pause();
    const waiting = () => run.service.status().accounts[0]?.waitingBytes ?? 0;
    const sent: string[] = [];
    for (let slot = 110; waiting() === 0; slot++) {
      if (slot === 290) expect.fail("expected bytes that wait");
      const made = Array.from({ length: 1500 }, () => transactionOf());
      sent.push(...made.map(signatureOf));
      run.send(slotOf(BigInt(slot), [batchOf(made)]));
      await until(() => (run.service.status().accounts[0]?.sent ?? 0) >= sent.length, "them");
    }
    client.resume();
    await until(() => client.notifications.length >= sent.length, "all transactions");
    expect(client.notifications.map(({ params }) => params.result.signature)).toEqual(sent);
    expect(waiting()).toBe(0);
    expect(client.end).toBeUndefined();
  });

  it.skipIf(!hasTestdata)("contains a real block in both dialects", async () => {
    const folder = "sig-testnet-356797362";
    const slot = 356_797_362;
    const options = { leader: leaderKey(folder), firstSlot: BigInt(slot - 50) };
    const run = await streamSockets("", "node", options);
    const client = await connectTo(run);
    const entries = subscribeEntries(run.service.address);
    const quicknode = await client.subscribe("shredTransactionSubscribe");
    const tracker = await client.subscribe("shredSubscribe");
    await inForce(run, 3);
    run.send(packetsOf(testdataFile(folder, "data.lpb")));
    // The number is the known answer of native/test/deshred_captures_test.cc.
    await until(() => client.notifications.length === 2 * 2293, "all transactions");
    await until(() => entries.messages.length === 15, "all batches");
    const expected = entries.messages
      .flatMap((message) => readEntries(message.entries, { mayHaveMore: true }))
      .flatMap(({ transactions }) => transactions.map(({ signature }) => text(signature)))
      .toSorted();
    expect(client.signatures(slot, quicknode).toSorted()).toEqual(expected);
    expect(client.signatures(slot, tracker).toSorted()).toEqual(expected);
  });
});

describe("ends", () => {
  it("come within a second after a key was revoked or a tier changed, with the reason", async () => {
    const run = await streamSockets();
    const client = await connectTo(run);
    await client.subscribe("shredSubscribe");
    await client.subscribe("shredTransactionSubscribe");
    run.tiers.set("a_1", "tier-2");
    run.clock.move(1000);
    await until(() => client.end !== undefined, "the end");
    expect(client.end).toEqual({
      code: 1013,
      reason: "tier_changed: the account's tier is tier-2 now; subscribe again",
    });
    const next = await connectTo(run);
    await next.subscribe("shredSubscribe");
    run.keys.delete(streamKey);
    run.clock.move(1000);
    await until(() => next.end !== undefined, "the end");
    expect(next.end).toEqual({
      code: 1008,
      reason: "revoked: the API key is not valid any more, or has lost the scope stream",
    });
    expect(Object.fromEntries(run.service.status().ends)).toMatchObject({
      tier_changed: 2,
      revoked: 1,
      client: 0,
    });
  });

  it("come to a client that does not read, with the amount, and to nobody else", async () => {
    const run = await streamSockets("queueBytes: 65536");
    const [slow, fast] = [await connectTo(run), await connectTo(run)];
    await slow.subscribe("shredSubscribe", [{}, { encoding: "json" }]);
    const number = await fast.subscribe("shredSubscribe", [
      {},
      { transactionDetails: "signatures" },
    ]);
    await inForce(run, 2);
    slow.pause();
    const lagged = () => run.service.status().ends.get("lagged") === 1;
    for (let slot = 110; !lagged(); slot++) {
      if (slot === 290) expect.fail("expected the slow client to lag");
      const made = Array.from({ length: 1500 }, () => transactionOf());
      run.send(slotOf(BigInt(slot), [batchOf(made)]));
      await until(() => fast.signatures(slot, number).length === 1500, "the batch");
    }
    slow.resume();
    await until(() => slow.end !== undefined, "the end");
    expect(slow.end).toEqual({
      code: 1013,
      reason: expect.stringMatching(
        /^lagged: \d+ messages and \d+ bytes wait for this client; expected at most 65536 bytes$/,
      ),
    });
    expect(fast.end).toBeUndefined();
  });

  it("leave nothing behind when clients vanish", async () => {
    const run = await streamSockets("subscriptionsPerAccountMax: 100");
    for (let round = 0; round < 3; round++) {
      const clients = await Promise.all(Array.from({ length: 20 }, () => connectTo(run)));
      await Promise.all(
        clients.flatMap((one) => [
          one.subscribe("shredSubscribe"),
          one.subscribe("shredTransactionSubscribe"),
        ]),
      );
      await inForce(run, 40);
      for (const one of clients) one.close();
      await inForce(run, 0);
    }
    expect(run.service.status().filters).toMatchObject({ filters: 0, accounts: 0 });
    expect(run.service.status().ends.get("client")).toBe(120);
  });
});
