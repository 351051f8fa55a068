// Subscriptions over a bare WebSocket; the test controls the slots.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RpcEndpoint } from "../../../src/sandbox/rpc/endpoint.ts";
import { subscriptionsMax } from "../../../src/sandbox/rpc/subscriptions/session.ts";
import { RpcSocket } from "../../clients/rpc-socket.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { addressOf, ChainRun, wallet, wallets } from "../../support/transactions/chain.ts";

let run: ChainRun;
let endpoint: RpcEndpoint;
let socket: RpcSocket;
const [payer = wallet(1)] = wallets;

beforeAll(async () => {
  run = await ChainRun.open({ rootedDepth: 2 });
  endpoint = await RpcEndpoint.open(run.chain, new ManualClock(), { listen: "127.0.0.1:0" });
  run.slots(3);
});

afterAll(() => {
  endpoint.close();
});

async function withSocket(use: () => Promise<void>): Promise<void> {
  // The same handlers serve the HTTP port and the next one.
  for (const address of [endpoint.address, endpoint.webSocketAddress]) {
    socket = await RpcSocket.open(`ws://${address}`);
    try {
      await use();
    } finally {
      socket.close();
    }
  }
}

let next = 20;
function send(lamports = 1_000_000n): { signature: string; to: string; slot: bigint } {
  const to = wallet(next++ % 256);
  const signature = run.chain.send(run.transfer(payer, to, lamports));
  return { signature, to: addressOf(to), slot: run.chain.currentSlot };
}

describe("signatureSubscribe", () => {
  it("reports each commitment once, in time, and then ends", () =>
    withSocket(async () => {
      const sent = send();
      const [received, processed, confirmed, finalized] = await Promise.all([
        socket.subscribe("signature", [
          sent.signature,
          { commitment: "finalized", enableReceivedNotification: true },
        ]),
        socket.subscribe("signature", [sent.signature, { commitment: "processed" }]),
        socket.subscribe("signature", [sent.signature, { commitment: "confirmed" }]),
        socket.subscribe("signature", [sent.signature]),
      ]);
      const context = { slot: Number(sent.slot) };
      const done = { context, value: { err: null } };
      run.pass(run.slotNs / 4n);
      expect(await socket.next(received ?? -1)).toEqual({ context, value: "receivedSignature" });
      expect(await socket.next(processed ?? -1)).toEqual(done);
      expect(socket.notifications).toEqual([]);
      run.slots(1);
      expect(await socket.next(confirmed ?? -1)).toEqual(done);
      expect(socket.notifications).toEqual([]);
      run.slots(3);
      expect(await socket.next(finalized ?? -1)).toEqual(done);
      expect(await socket.next(received ?? -1)).toEqual(done);
      expect(endpoint.counts.subscriptions).toBe(0);
      const gone = await socket.call("signatureUnsubscribe", [processed]);
      expect(gone.error?.code).toBe(-32602);
    }));

  it("reports immediately if the commitment was already reached, but after the subscription number", () =>
    withSocket(async () => {
      const { signature } = send();
      run.slots(2);
      const id = await socket.subscribe("signature", [signature, { commitment: "confirmed" }]);
      expect(await socket.next(id)).toMatchObject({ value: { err: null } });
      // A client does not know the number earlier, and would drop the notification.
      expect(socket.received).toEqual(["answer", "notification"]);
    }));

  it("reports why a transaction failed", () =>
    withSocket(async () => {
      const { signature } = send(2n ** 62n);
      const id = await socket.subscribe("signature", [signature, { commitment: "processed" }]);
      run.slots(1);
      expect(await socket.next(id)).toMatchObject({
        value: { err: { InstructionError: [0, { Custom: 1 }] } },
      });
    }));
});

describe("the others", () => {
  it("reports accounts, programs and logs with their state at the commitment", () =>
    withSocket(async () => {
      const first = send(5_000_000n);
      const [account, program, logs, block] = await Promise.all([
        socket.subscribe("account", [first.to, { encoding: "base64", commitment: "confirmed" }]),
        socket.subscribe("program", [
          "11111111111111111111111111111111",
          { encoding: "base64", commitment: "confirmed", filters: [{ dataSize: 0 }] },
        ]),
        socket.subscribe("logs", [{ mentions: [first.to] }, { commitment: "confirmed" }]),
        socket.subscribe("block", ["all", { commitment: "confirmed", transactionDetails: "none" }]),
      ]);
      run.slots(1);
      // A second transfer is processed when the first is confirmed: it must not be visible yet.
      run.chain.send(run.transfer(payer, wallet(next - 1), 1_000_000n));
      run.pass(run.slotNs / 2n);
      expect(run.chain.account(first.to)?.lamports).toBe(6_000_000n);
      expect(await socket.next(account ?? -1)).toMatchObject({
        context: { slot: Number(first.slot) },
        value: { lamports: 5_000_000, data: ["", "base64"] },
      });
      expect(await socket.next(logs ?? -1)).toMatchObject({
        value: { signature: first.signature, err: null },
      });
      const written = [await socket.next(program ?? -1), await socket.next(program ?? -1)];
      expect(written).toContainEqual(
        expect.objectContaining({
          value: expect.objectContaining({
            pubkey: first.to,
            account: expect.objectContaining({ lamports: 5_000_000 }),
          }),
        }),
      );
      expect(await socket.next(block ?? -1)).toMatchObject({ value: { err: null } });
      run.pass(run.slotNs / 2n);
      run.slots(1);
      expect(await socket.next(account ?? -1)).toMatchObject({ value: { lamports: 6_000_000 } });
    }));

  it("reports slots, roots and slot updates", () =>
    withSocket(async () => {
      const [slot, root, updates] = await Promise.all([
        socket.subscribe("slot"),
        socket.subscribe("root"),
        socket.subscribe("slotsUpdates"),
      ]);
      run.slots(1);
      const now = Number(run.chain.currentSlot);
      expect(await socket.next(slot ?? -1)).toMatchObject({ slot: now, parent: now - 1 });
      expect(await socket.next(root ?? -1)).toBe(Number(run.chain.slot("finalized")));
      const types = [];
      for (let i = 0; i < 6; i++) types.push(Object(await socket.next(updates ?? -1)).type);
      expect(types).toEqual([
        "completed",
        "frozen",
        "firstShredReceived",
        "createdBank",
        "optimisticConfirmation",
        "root",
      ]);
      for (const [kind, id] of Object.entries({ slot, root, slotsUpdates: updates })) {
        expect((await socket.call(`${kind}Unsubscribe`, [id])).result).toBe(true);
        expect((await socket.call(`${kind}Unsubscribe`, [id])).error?.code).toBe(-32602);
      }
      expect(endpoint.counts.subscriptions).toBe(0);
    }));

  it("reports a block that the caller cannot read instead of omitting it", () =>
    withSocket(async () => {
      const id = await socket.subscribe("block", [
        { mentionsAccountOrProgram: addressOf(payer) },
        { commitment: "confirmed", encoding: "base64" },
      ]);
      const wire = run.versioned([], [payer]);
      run.chain.send(wire);
      run.slots(2);
      expect(await socket.next(id)).toMatchObject({
        value: { block: null, err: { UnsupportedTransactionVersion: 0 } },
      });
    }));
});

describe("limits", () => {
  it("limits the subscriptions of a connection and frees them when it ends", () =>
    withSocket(async () => {
      for (let i = 0; i < subscriptionsMax; i++) await socket.subscribe("slot");
      expect((await socket.call("slotSubscribe")).error?.code).toBe(-32600);
      expect(endpoint.counts.subscriptions).toBe(subscriptionsMax);
      socket.raw.close();
      await socket.closed;
      await until(() => endpoint.counts.connections === 0, "the end of the connection");
      expect(endpoint.counts.subscriptions).toBe(0);
    }));

  it("separate the subscriptions of connections", () =>
    withSocket(async () => {
      const id = await socket.subscribe("slot");
      const other = await RpcSocket.open(`ws://${endpoint.address}`);
      expect((await other.call("slotUnsubscribe", [id])).error?.code).toBe(-32602);
      expect((await socket.call("rootUnsubscribe", [id])).error?.code).toBe(-32602);
      other.close();
      run.slots(1);
      expect(await socket.next(id)).toBeDefined();
    }));

  it("disconnects callers that send faster than they are answered", () =>
    withSocket(async () => {
      const call = '{"jsonrpc":"2.0","id":1,"method":"slotSubscribe","params":[1,2,3]}';
      endpoint.faults.delayMs = 1000;
      for (let i = 0; i < 600; i++) socket.raw.send(call);
      expect(await socket.closed).toBe(1008);
      endpoint.faults.delayMs = 0;
    }));

  it("disconnects callers that do not read", async () => {
    const sleeper = await RpcSocket.open(`ws://${endpoint.address}`);
    const config = { maxSupportedTransactionVersion: 0, commitment: "confirmed" };
    for (let i = 0; i < subscriptionsMax; i++) await sleeper.subscribe("block", ["all", config]);
    sleeper.pause();
    while (endpoint.counts.connections > 0) {
      for (let i = 0; i < 50; i++) send();
      run.slots(1);
      await new Promise((turn) => setImmediate(turn));
    }
    expect(endpoint.counts.subscriptions).toBe(0);
    sleeper.close();
  });
});
