import { base58 } from "@scure/base";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { systemClock } from "../../../src/core/clock.ts";
import { feedsPerKeyMax } from "../../../src/gateway/endpoints/status-feed.ts";
import { NodeBundleCommitments } from "../../../src/gateway/submission/bundle-commitments.ts";
import { StatusReader } from "../../../src/gateway/submission/status-reader.ts";
import type { TransactionStatus } from "../../../src/gateway/submission/types.ts";
import { closing } from "../../support/closing.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { turnsUntil } from "../../support/turns-until.ts";

const signature = base58.encode(new Uint8Array(64).fill(9));
const other = base58.encode(new Uint8Array(64).fill(8));
const receivedNs = 1_767_225_600_123_000_000n;

function status(fields: Partial<TransactionStatus> = {}): TransactionStatus {
  return {
    signature,
    state: "landed",
    method: "sendTransaction",
    bundleId: null,
    receivedNs,
    slot: 5n,
    reason: "landed",
    err: null,
    events: [
      {
        kind: "received",
        atNs: receivedNs,
        method: "sendTransaction",
        tipLamports: 20_000n,
        priorityFeeLamports: 0n,
      },
      {
        kind: "sent",
        atNs: receivedNs + 1_234_567n,
        route: "a",
        attempt: 1,
        bytes: 200,
        slot: 4n,
        leader: null,
      },
      {
        kind: "landed",
        atNs: receivedNs + 400_000_000n,
        reason: "landed",
        slot: 5n,
        err: null,
      },
    ],
    ...fields,
  };
}

describe("getTransactionStatus", () => {
  const shown = {
    signature,
    state: "landed",
    method: "sendTransaction",
    bundleId: null,
    receivedAt: "2026-01-01T00:00:00.123Z",
    slot: 5,
    reason: "landed",
    err: null,
    events: [
      {
        kind: "received",
        at: "2026-01-01T00:00:00.123Z",
        offsetMs: 0,
        method: "sendTransaction",
        tipLamports: 20_000,
        priorityFeeLamports: 0,
      },
      {
        kind: "sent",
        at: "2026-01-01T00:00:00.124Z",
        offsetMs: 1.234,
        route: "a",
        attempt: 1,
        bytes: 200,
        slot: 4,
        leader: null,
      },
      {
        kind: "landed",
        at: "2026-01-01T00:00:00.523Z",
        offsetMs: 400,
        reason: "landed",
        slot: 5,
        err: null,
      },
    ],
  };

  it("returns the timelines of one or several signatures", async () => {
    const run = await GatewayRun.open();
    run.statuses.set(`a_1 ${signature}`, status());
    expect((await run.call("getTransactionStatus", [signature])).body).toEqual({
      jsonrpc: "2.0",
      result: shown,
      id: 1,
    });
    expect((await run.call("getTransactionStatus", [[other, signature]])).body).toEqual({
      jsonrpc: "2.0",
      result: [null, shown],
      id: 1,
    });
    expect((await run.call("getTransactionStatus", [other])).body).toMatchObject({ result: null });
  });

  it("returns only submissions of the caller's account", async () => {
    const run = await GatewayRun.open();
    run.statuses.set(`a_2 ${signature}`, status());
    expect((await run.call("getTransactionStatus", [signature])).body).toMatchObject({
      result: null,
    });
  });

  it("accepts up to 256 valid signatures", async () => {
    const run = await GatewayRun.open();
    const many = (count: number) => [Array.from({ length: count }, () => signature)];
    const all = await run.call("getTransactionStatus", many(256));
    expect(Object(all.body).result).toHaveLength(256);
    for (const params of [
      [],
      [[]],
      [5],
      ["0"],
      ["1".repeat(40_000)],
      [[signature, "x"]],
      many(257),
    ]) {
      const { body } = await run.call("getTransactionStatus", params);
      expect(body).toMatchObject({ error: { code: -32602 } });
    }
  });
});

it.each([
  [
    "getTransactionStatus",
    [5],
    "invalid value 5; expected a signature (64 bytes in base58), or an",
  ],
  ["getTransactionStatus", [[]], "got 0 elements; expected 1 to 256"],
  ["getBundleStatuses", [[]], "got 0 elements; expected 1 to 5"],
  ["getTipAccounts", [5], "invalid value 5; expected the name of a region, or an object"],
  ["getShredTipAccounts", [[]], "invalid value []; expected the name of a region, or an object"],
])("%s says which values fit instead of %j", async (method, params, text) => {
  const { body } = await (await GatewayRun.open()).call(method, params);
  const message = expect.stringContaining(`value_invalid: params[0]: ${text}`);
  expect(body).toMatchObject({ error: { code: -32602, message } });
});

describe("bundle statuses", () => {
  const id = "ab".repeat(32);
  const reason = "confirmed";

  it.each([
    [[status({ reason }), status({ reason, signature: other })], "Landed", 5],
    [[status({ state: "landed" }), status({ state: "open" })], "Pending", null],
    [[status({ state: "expired" }), status({ state: "landed" })], "Failed", null],
    [[status({ state: "landed_failed" })], "Failed", null],
    [null, "Invalid", null],
  ])("are those of block engines (%#)", async (transactions, word, slot) => {
    const run = await GatewayRun.open();
    run.slot = 77n;
    if (transactions) run.bundles.set(`a_1 ${id}`, { bundleId: id, transactions });
    const inflight = await run.call(
      "getInflightBundleStatuses",
      [[id]],
      "/api/v1/getInflightBundleStatuses?uuid=good",
    );
    expect(inflight.body).toMatchObject({
      result: {
        context: { slot: 77 },
        value: [{ bundle_id: id, status: word, landed_slot: slot }],
      },
    });
    const { body } = await run.call("getBundleStatuses", [[id]]);
    const landed = {
      bundle_id: id,
      transactions: transactions?.map((each) => each.signature),
      slot,
      confirmation_status: "confirmed",
      err: { Ok: null },
    };
    expect(Object(body).result.value).toEqual([word === "Landed" ? landed : null]);
  });

  it.each(["processed", "confirmed", "finalized"] as const)(
    "return %s like the node",
    async (commitment) => {
      const requests: string[][] = [];
      const node = {
        signatureStatuses: async (signatures: readonly string[]) => {
          requests.push([...signatures]);
          return signatures.map(() => ({ slot: 5n, err: null, commitment }));
        },
      };
      const reader = new StatusReader({ clock: systemClock, node, log: { warn: () => {} } });
      const bundleCommitments = new NodeBundleCommitments({ clock: systemClock, reader });
      const run = await GatewayRun.open({}, { bundleCommitments });
      const state = commitment === "processed" ? "open" : "landed";
      const transactions = [status({ state, reason }), status({ state, reason, signature: other })];
      run.bundles.set(`a_1 ${id}`, { bundleId: id, transactions });
      const { body } = await run.call("getBundleStatuses", [[id, id]]);
      const expectedEvent = { bundle_id: id, slot: 5, confirmation_status: commitment };
      expect(Object(body).result.value).toMatchObject([expectedEvent, expectedEvent]);
      expect(requests).toEqual([[signature, other]]);
      // A bundle in a block that may be abandoned has not landed.
      const inflight = await run.call("getInflightBundleStatuses", [[id]]);
      const [word, slot] = state === "open" ? ["Pending", null] : ["Landed", 5];
      expect(inflight.body).toMatchObject({
        result: { value: [{ bundle_id: id, status: word, landed_slot: slot }] },
      });
      expect(requests.length).toBe(1);
    },
  );

  it("are returned for at most 5 ids", async () => {
    const run = await GatewayRun.open();
    for (const params of [[Array.from({ length: 6 }, () => id)], [["x"]], [id], []]) {
      expect((await run.call("getBundleStatuses", params)).body).toMatchObject({
        error: { code: -32602 },
      });
    }
  });
});

class FeedClient {
  readonly messages: unknown[] = [];
  readonly #socket: WebSocket;
  closeCode: number | null = null;
  refusal: number | null = null;
  isOpen = false;

  constructor(run: GatewayRun, path = "/status?api-key=good") {
    this.#socket = new WebSocket(run.url(path).replace("http", "ws"));
    this.#socket.on("open", () => {
      this.isOpen = true;
    });
    this.#socket.on("message", (data: Buffer) => this.messages.push(JSON.parse(data.toString())));
    this.#socket.on("close", (code) => {
      this.closeCode = code;
    });
    this.#socket.on("error", () => undefined); // refusals, checked below
    this.#socket.on("unexpected-response", (_, response) => {
      this.refusal = response.statusCode ?? 0;
    });
  }

  static async open(run: GatewayRun, path?: string): Promise<FeedClient> {
    const client = closing(new FeedClient(run, path));
    await turnsUntil(() => client.isOpen || client.refusal !== null);
    return client;
  }

  send(text: string): void {
    this.#socket.send(text);
  }

  async ask(message: unknown): Promise<unknown> {
    const count = this.messages.length;
    this.#socket.send(typeof message === "string" ? message : JSON.stringify(message));
    await turnsUntil(() => this.messages.length > count);
    return this.messages.at(-1);
  }

  close(): void {
    this.#socket.terminate();
  }
}

describe("the status feed", () => {
  const event = { kind: "seen", atNs: receivedNs, slot: 5n } as const;
  const expectedEvent = { kind: "seen", at: "2026-01-01T00:00:00.123Z", slot: 5 };
  const opened = (run: GatewayRun, count: number) =>
    turnsUntil(() => (run.listeners.get("a_1")?.size ?? 0) === count);

  it("pushes the account's events", async () => {
    const run = await GatewayRun.open();
    const client = await FeedClient.open(run);
    await opened(run, 1);
    run.notify("a_2", other, event);
    run.notify("a_1", signature, event);
    await turnsUntil(() => client.messages.length > 0);
    expect(client.messages).toEqual([{ signature, event: expectedEvent }]);
    client.close();
    await opened(run, 0);
  });

  it("closes a flood and refuses new feeds of its key for 10 s", async () => {
    const run = await GatewayRun.open();
    const client = await FeedClient.open(run);
    await opened(run, 1);
    for (let i = 0; i < 26; i++) client.send("{");
    await opened(run, 0);
    const faults = client.messages.filter((message) => JSON.stringify(message).includes("error"));
    expect(faults.length).toBeLessThanOrEqual(25);
    expect((await FeedClient.open(run)).refusal).toBe(429);
    await run.clock.advance(10_000);
    await FeedClient.open(run);
    await opened(run, 1);
  });

  it("counts each handshake as a call of the key", async () => {
    const run = await GatewayRun.open();
    await FeedClient.open(run);
    expect(run.countedKeys.map(({ id }) => id)).toEqual(["k_good"]);
  });

  it("applies a signature filter", async () => {
    const run = await GatewayRun.open();
    const client = await FeedClient.open(run);
    expect(await client.ask({ signatures: [other] })).toEqual({ filter: { signatures: 1 } });
    run.notify("a_1", signature, event);
    run.notify("a_1", other, event);
    await turnsUntil(() => client.messages.length > 1);
    expect(client.messages.at(-1)).toEqual({ signature: other, event: expectedEvent });
    expect(client.messages).toHaveLength(2);
    expect(await client.ask({ signatures: null })).toEqual({ filter: { signatures: null } });
    run.notify("a_1", signature, event);
    await turnsUntil(() => client.messages.length === 4);
    expect(client.messages.at(-1)).toEqual({ signature, event: expectedEvent });
  });

  it("rejects other messages and stays open", async () => {
    const run = await GatewayRun.open();
    const client = await FeedClient.open(run);
    for (const message of [
      "{",
      "5",
      "{}",
      { signatures: [] },
      { signatures: ["x"] },
      "[[[[1]]]]",
    ]) {
      expect(await client.ask(message)).toMatchObject({ error: { code: expect.any(Number) } });
    }
    expect(client.closeCode).toBeNull();
  });

  it("requires a key with a scope and limits the feeds per key", async () => {
    const run = await GatewayRun.open();
    expect((await FeedClient.open(run, "/status")).refusal).toBe(401);
    expect((await FeedClient.open(run, "/status?api-key=bad")).refusal).toBe(401);
    expect((await FeedClient.open(run, "/status?api-key=reader")).refusal).toBe(403);
    const clients: FeedClient[] = [];
    for (let i = 0; i < feedsPerKeyMax; i++) clients.push(await FeedClient.open(run));
    await opened(run, feedsPerKeyMax);
    expect((await FeedClient.open(run)).refusal).toBe(429);
    clients[0]?.close();
    await opened(run, feedsPerKeyMax - 1);
    expect((await FeedClient.open(run)).isOpen).toBe(true);
  });

  it("closes when its key becomes invalid", async () => {
    const run = await GatewayRun.open();
    const client = await FeedClient.open(run);
    await opened(run, 1);
    run.keys.delete("good");
    await run.clock.advance(1000);
    run.notify("a_1", signature, event);
    await turnsUntil(() => client.closeCode !== null);
    expect(client.closeCode).toBe(1008);
    expect(client.messages).toEqual([]);
    expect(run.listeners.get("a_1")?.size).toBe(0);
  });
});
