// Subscriptions through the gateway's route, with real sockets on both sides.

import { describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { systemClock } from "../../../src/core/clock.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import {
  type SubscriptionOptions,
  subscriptionRoute,
} from "../../../src/gateway/endpoints/subscriptions.ts";
import { Upstream } from "../../../src/platform/solana/upstream.ts";
import { Cluster } from "../../clients/cluster.ts";
import { RpcSocket } from "../../clients/rpc-socket.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { apiKey, GatewayRun, tipAddress } from "../../support/gateway/gateway.ts";
import {
  answerWith,
  notification,
  type Question,
  SocketNode,
} from "../../support/gateway/socket-node.ts";
import { base64, tipping } from "../../support/transactions/tipping.ts";
import { turnsUntil } from "../../support/turns-until.ts";
import { serve, urlOf } from "../http/clients.ts";

const signature = "1".repeat(64);
const wallet = "1".repeat(32);

interface TestService {
  readonly url: string;
  /** References of internal errors. */
  readonly faults: unknown[];
}

async function open(
  node: SubscriptionOptions["node"],
  options: Partial<SubscriptionOptions> = {},
): Promise<TestService> {
  const faults: unknown[] = [];
  const route = subscriptionRoute({
    node,
    authorise: () => ({ key: apiKey("one") }),
    currentKey: (id) => apiKey("any", { id }),
    clock: systemClock,
    countHandshake: () => undefined,
    report: (thrown) => String(faults.push(thrown)),
    ...options,
  });
  const server = await serve({ handle: () => ({ status: 404 }), webSockets: { "/": route } });
  return { url: urlOf(server).replace("http", "ws"), faults };
}

async function connect({ url }: TestService): Promise<RpcSocket> {
  return closing(await RpcSocket.open(url));
}

function upstreamOf(websocket: string): Upstream {
  const rpc = "http://127.0.0.1:1";
  return closing(Upstream.open({ rpc, websocket, clock: systemClock }));
}

/** A route with a stub node whose responses the test defines. */
async function facing(
  answer: (client: WebSocket, question: Question) => void,
  options: Partial<SubscriptionOptions> = {},
) {
  const node = await SocketNode.open(answer);
  const testService = await open(upstreamOf(node.url), options);
  return { node, testService };
}

describe("with the sandbox's node", () => {
  async function cluster() {
    const sandbox = closing(await Cluster.open());
    const { endpoint } = sandbox;
    const testService = await open(upstreamOf(sandbox.webSocketUrl));
    return { sandbox, endpoint, testService };
  }

  it("forwards every kind of subscription and its end", async () => {
    const { endpoint, testService } = await cluster();
    const socket = await connect(testService);
    const params = {
      account: [wallet],
      logs: [{ mentions: [wallet] }],
      root: [],
      signature: [signature],
      slot: [],
    };
    const numbers = new Map<string, number>();
    for (const [kind, given] of Object.entries(params)) {
      numbers.set(kind, await socket.subscribe(kind, given));
    }
    expect(endpoint.counts).toEqual({ connections: 1, subscriptions: 5 });
    expect(await socket.next(numbers.get("slot") ?? -1)).toHaveProperty("parent");
    for (const [kind, number] of numbers) {
      expect((await socket.call(`${kind}Unsubscribe`, [number])).result).toBe(true);
    }
    expect(endpoint.counts.subscriptions).toBe(0);
    expect((await socket.call("slotUnsubscribe", [numbers.get("slot")])).error?.code).toBe(-32602);
    socket.close();
    await turnsUntil(() => endpoint.counts.connections === 0);
  });

  it("notifies every client of every slot once, in order", async () => {
    const { endpoint, testService } = await cluster();
    const sockets = await Promise.all([connect(testService), connect(testService)]);
    const seen = sockets.map(async (socket) => {
      const number = await socket.subscribe("slot");
      const slots: number[] = [];
      while (slots.length < 10) {
        const result = await socket.next(number);
        if (typeof result === "object" && result && "slot" in result) {
          slots.push(Number(result.slot));
        }
      }
      return slots;
    });
    for (const slots of await Promise.all(seen)) {
      const [first = 0] = slots;
      expect(slots).toEqual(slots.map((_, index) => first + index));
    }
    expect(endpoint.counts.connections).toBe(2);
  });

  it("forwards the node's errors with the unchanged id", async () => {
    const { testService } = await cluster();
    const socket = await connect(testService);
    const text = '{"jsonrpc":"2.0","id":"x-1","method":"accountSubscribe","params":["no key"]}';
    const { error, id } = await socket.answerTo(text, "x-1");
    expect(id).toBe("x-1");
    expect(error?.code).toBe(-32602);
    expect(error?.message).toContain("public key");
  });

  it("removes a signature subscription after its notification", async () => {
    const { sandbox } = await cluster();
    const testService = await open(upstreamOf(sandbox.webSocketUrl), {
      limits: { subscriptionsMax: 1 },
    });
    const socket = await connect(testService);
    for (let round = 0; round < 3; round++) {
      const landed = sandbox.chain.airdrop(tipAddress, 1_000_000n + BigInt(round));
      const number = await socket.subscribe("signature", [landed, { commitment: "confirmed" }]);
      expect(await socket.next(number)).toMatchObject({ value: { err: null } });
    }
  });
});

describe("refusals", () => {
  it("only known kinds are forwarded", async () => {
    const { node, testService } = await facing(answerWith);
    const socket = await connect(testService);
    for (const kind of ["program", "block", "slotsUpdates", "vote", "constructor"]) {
      const { error } = await socket.call(`${kind}Subscribe`, []);
      expect(error?.code).toBe(-32601);
      expect(error?.message).toContain("signatureSubscribe");
    }
    expect((await socket.call("getSlot")).error?.code).toBe(-32601);
    expect(node.clients.length).toBe(0);
  });

  it("answers wait after ten of them, but delay nothing else", async () => {
    const clock = new ManualClock();
    const dispatch: SubscriptionOptions["dispatch"] = (_, method) => method;
    const { testService } = await facing(answerWith, { clock, dispatch });
    const socket = await connect(testService);
    for (let i = 0; i < 10; i++) await socket.call("programSubscribe");
    const late = [socket.call("programSubscribe"), socket.call("shredSubscribe")];
    expect((await socket.call("getSlot")).result).toBe("getSlot");
    expect((await socket.call("slotSubscribe")).result).toBeTypeOf("number");
    expect((await socket.call("slotUnsubscribe", [77])).error?.code).toBe(-32602);
    expect(socket.received).toHaveLength(13);
    await clock.advance(1000);
    for (const { error } of await Promise.all(late)) expect(error?.code).toBe(-32601);
    void socket.call("programSubscribe");
    expect((await socket.call("getSlot")).result).toBe("getSlot");
    const waiting = clock.pending;
    socket.close();
    await turnsUntil(() => clock.pending < waiting);
  });

  it("other methods need a dispatcher", async () => {
    const { testService } = await facing(answerWith, {
      dispatch: ({ key }, method, params) => [key.id, method, params],
    });
    const socket = await connect(testService);
    expect((await socket.call("getSlot", [2])).result).toEqual(["k_one", "getSlot", [2]]);
    expect((await socket.call("voteSubscribe")).error?.code).toBe(-32601);
  });

  it("a subscription needs a node, the scope and the rate limit", async () => {
    const bare = await connect(await open(null));
    expect((await bare.call("slotSubscribe")).error).toMatchObject({
      code: -32601,
      data: { reason: "upstream_missing" },
    });
    const key = apiKey("one", { scopes: ["submit"] });
    const { testService } = await facing(answerWith, { authorise: () => ({ key }) });
    const submitter = await connect(testService);
    expect((await submitter.call("slotSubscribe")).error?.data).toMatchObject({
      reason: "scope_missing",
    });
    const limited = await facing(answerWith, {
      admit: () => {
        throw new ShredwayError("rate_limited", "no more");
      },
    });
    const caller = await connect(limited.testService);
    expect((await caller.call("slotSubscribe")).error?.code).toBe(-32005);
  });

  it("a WebSocket needs a key, and their number is limited", async () => {
    const closed = await open(null, { authorise: () => ({ status: 401 }) });
    await expect(connect(closed)).rejects.toThrow("401");
    const { testService } = await facing(answerWith, { limits: { socketsPerKey: 2 } });
    const first = await connect(testService);
    await connect(testService);
    await expect(connect(testService)).rejects.toThrow("429");
    first.close();
    await turnsUntil(() => first.raw.readyState === first.raw.CLOSED);
    let third: RpcSocket | undefined;
    while (!third) third = await connect(testService).catch(() => undefined);
  });
});

describe("a call without an id", () => {
  it.each(["/", "/relay", "/stream"])("is executed and answered on %s", async (path) => {
    const run = await GatewayRun.open();
    const url = run.url(`${path}?api-key=good`).replace("http", "ws");
    const socket = closing(await RpcSocket.open(url));
    const params = [base64(tipping()), { encoding: "base64", skipPreflight: true }];
    const call = JSON.stringify({ jsonrpc: "2.0", method: "sendTransaction", params });
    expect(await socket.answerTo(call, null)).toMatchObject({ result: expect.any(String) });
    expect(run.submitted).toHaveLength(1);
    const unknown = '{"jsonrpc":"2.0","method":"nothing"}';
    expect((await socket.answerTo(unknown, null)).error?.code).toBe(-32601);
    expect([...run.gateway.counts.calls()]).toEqual([
      ["sendTransaction", "ok", 1],
      ["other", "method_unknown", 1],
    ]);
  });

  it("subscribes, with the number in an answer with the id null", async () => {
    const { testService } = await facing((client, question) => {
      answerWith(client, question, "4");
      client.send(notification("4", '{"slot":1}'));
    });
    const socket = await connect(testService);
    const { result } = await socket.answerTo('{"jsonrpc":"2.0","method":"slotSubscribe"}', null);
    expect(result).toBe(4);
    expect(await socket.next(4)).toEqual({ slot: 1 });
  });

  it("is ignored if it is the heartbeat of stock clients", async () => {
    const ended: string[] = [];
    const { testService } = await facing(answerWith, {
      dispatch: (_, method) => method,
      admit: (_, method) => void ended.push(method),
      ended: (method) => void ended.push(method),
    });
    const socket = await connect(testService);
    socket.raw.send('{"jsonrpc":"2.0","method":"ping"}');
    socket.raw.send('{"jsonrpc":"2.0","method":"ping","params":null}');
    expect((await socket.call("getSlot")).result).toBe("getSlot");
    expect((await socket.call("ping")).result).toBe("ping");
    expect(socket.received).toEqual(["answer", "answer"]);
    expect(ended).toEqual(["getSlot", "getSlot", "ping", "ping"]);
  });
});

describe("hostile clients", () => {
  it("cannot exceed the subscription limit, including pending ones", async () => {
    const waiting: [WebSocket, Question][] = [];
    const { node, testService } = await facing((...each) => void waiting.push(each), {
      limits: { subscriptionsMax: 3 },
    });
    const socket = await connect(testService);
    const answers = Array.from({ length: 5 }, () => socket.call("slotSubscribe"));
    expect((await answers[4])?.error?.message).toContain("at most 3; unsubscribe one first");
    expect((await answers[3])?.error?.code).toBe(-32600);
    await turnsUntil(() => node.requests.length === 3);
    for (const [client, question] of waiting) answerWith(client, question, String(question.id));
    expect((await Promise.all(answers.slice(0, 3))).map(({ result }) => result)).toEqual([1, 2, 3]);
    expect((await socket.call("slotSubscribe")).error?.code).toBe(-32600);
  });

  it("are closed for floods, unanswered messages and binary frames", async () => {
    const messageLimits = { messagesBurst: 10, messagesPerSecond: 1, bytesPerSecond: 1_000_000 };
    const clock = new ManualClock();
    const limited = await facing(answerWith, { messageLimits, clock });
    const flood = await connect(limited.testService);
    for (let i = 0; i < 20; i++) flood.raw.send("{}");
    expect(await flood.closed).toBe(1008);
    await expect(connect(limited.testService)).rejects.toThrow("429"); // the key is paused
    await clock.advance(10_000);
    await connect(limited.testService);
    const { testService } = await facing(answerWith);
    const slow = await facing(() => undefined, { limits: { underWayMax: 4 } });
    const waiter = await connect(slow.testService);
    for (let id = 0; id < 5; id++) {
      waiter.raw.send(`{"jsonrpc":"2.0","id":${id},"method":"slotSubscribe"}`);
    }
    expect(await waiter.closed).toBe(1008);
    await turnsUntil(() =>
      slow.node.clients.every((client) => client.readyState === client.CLOSED),
    );
    const binary = await connect(testService);
    binary.raw.send(Buffer.from("{}"));
    expect(await binary.closed).toBe(1003);
    const large = await connect(testService);
    large.raw.send(`"${"a".repeat(70_000)}"`);
    expect(await large.closed).toBe(1009);
    expect(testService.faults).toEqual([]);
  });

  it("get JSON-RPC errors for invalid messages and stay connected", async () => {
    const { testService } = await facing(answerWith);
    const socket = await connect(testService);
    for (const text of ["{", "[]", "7", '{"jsonrpc":"1.0","id":1}']) {
      const answer = socket.answerTo(text, text.includes("id") ? 1 : null);
      expect((await answer).error?.code).toBeLessThan(-32599);
    }
    const batch = '[{"jsonrpc":"2.0","id":5,"method":"slotSubscribe"},{"jsonrpc":"2.0","id":6}]';
    const came = new Promise((resolve) => socket.raw.once("message", resolve));
    socket.raw.send(batch);
    expect(JSON.parse(String(await came))).toMatchObject([{ id: 5, result: 1 }, { id: 6 }]);
  });
});

describe("hostile nodes", () => {
  it("cannot send a notification before the response", async () => {
    const { testService } = await facing((client, question) => {
      answerWith(client, question, "4");
      for (let slot = 0; slot < 50; slot++) client.send(notification("4", `{"slot":${slot}}`));
    });
    const socket = await connect(testService);
    const number = await socket.subscribe("slot");
    for (let slot = 0; slot < 50; slot++) expect(await socket.next(number)).toEqual({ slot });
    expect(socket.received[0]).toBe("answer");
    expect(socket.received.length).toBe(51);
  });

  it("cannot send notifications of other kinds", async () => {
    const { testService } = await facing((client, question) => {
      client.send(notification("1", "{}", "programNotification"));
      client.send(notification("1", "{}", "constructor"));
      answerWith(client, question);
      client.send(notification("1", '{"slot":1}'));
    });
    const socket = await connect(testService);
    expect(await socket.next(await socket.subscribe("slot"))).toEqual({ slot: 1 });
    expect(socket.received).toEqual(["answer", "notification"]);
  });

  it.each<[string, (client: WebSocket) => void]>([
    ["closes", (client) => client.close(1000)],
    ["is cut", (client) => client.terminate()],
    ["sends garbage", (client) => client.send("garbage")],
  ])("closes the client with 1013 when the node %s, after every answer", async (_, act) => {
    const { node, testService } = await facing((client, question) => {
      if (question.id === 1) answerWith(client, question);
    });
    const socket = await connect(testService);
    await socket.subscribe("slot");
    const requests = [socket.call("rootSubscribe"), socket.call("slotSubscribe")];
    await turnsUntil(() => node.requests.length === 3);
    for (const client of node.clients) act(client);
    for (const { error } of await Promise.all(requests)) {
      expect(error).toMatchObject({ code: -32603, data: { reason: "rpc_failed" } });
    }
    expect(await socket.closed).toBe(1013);
    expect(testService.faults).toEqual([]);
  });

  it("close the client with 1013 when they are down", async () => {
    const { node, testService } = await facing(answerWith);
    node.close();
    const socket = await connect(testService);
    const { error } = await socket.call("slotSubscribe");
    expect(error).toMatchObject({ code: -32603, data: { reason: "rpc_failed" } });
    expect(await socket.closed).toBe(1013);
  });

  it("are disconnected together with the client, also while connecting", async () => {
    const { node, testService } = await facing(answerWith);
    const socket = await connect(testService);
    await socket.subscribe("slot");
    socket.close();
    await turnsUntil(() => node.clients[0]?.readyState === node.clients[0]?.CLOSED);
    const fastClient = await connect(testService);
    fastClient.raw.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}');
    fastClient.close();
    const next = await connect(testService);
    await next.subscribe("slot");
    await turnsUntil(
      () => node.clients.filter((each) => each.readyState === each.OPEN).length === 1,
    );
    expect(testService.faults).toEqual([]);
  });
});
