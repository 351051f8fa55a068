// The end of an API key on WebSockets that only listen: status feeds and subscriptions, over real sockets.

import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { Upstream } from "../../../src/platform/solana/upstream.ts";
import { RpcSocket } from "../../clients/rpc-socket.ts";
import { closing } from "../../support/closing.ts";
import { apiKey, GatewayRun } from "../../support/gateway/gateway.ts";
import { answerWith, notification, SocketNode } from "../../support/gateway/socket-node.ts";
import { SubmissionClient } from "../../support/gateway/submission-client.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { turnsUntil } from "../../support/turns-until.ts";
import { onEveryEngine } from "../http/clients.ts";

const ended = { code: 1008, reason: "the API key is no longer valid" };
const paths = ["/status", "/relay", "/"];

async function answerWithKey(run: GatewayRun, key: string): Promise<number> {
  const body = '{"jsonrpc":"2.0","id":1,"method":"getTipAccounts"}';
  const answer = await fetch(run.url(`/relay?api-key=${key}`), { method: "POST", body });
  await answer.text();
  return answer.status;
}

onEveryEngine((engine) =>
  describe("an idle WebSocket", () => {
    it("is closed within a second after the end of its key, others stay open", async () => {
      const run = await GatewayRun.open({}, {}, engine);
      run.keys.set("other", apiKey("other", { id: "k_2" }));
      for (const path of paths) {
        run.keys.set("good", apiKey("good"));
        const socket = await SubmissionClient.open(run, "api-key=good", path);
        const other = await SubmissionClient.open(run, "api-key=other", path);
        await run.clock.advance(5000);
        run.keys.delete("good");
        await run.clock.advance(1000);
        expect(await socket.closed).toEqual(ended);
        other.send("{}");
        await until(() => other.texts.length === 1, "a response");
      }
    });

    it("is closed when its address is no longer allowed", async () => {
      const run = await GatewayRun.open({}, {}, engine);
      const socket = await SubmissionClient.open(run, "api-key=good", "/status");
      run.keys.set("good", apiKey("good", { allowedRanges: ["another"] }));
      await run.clock.advance(1000);
      expect(await socket.closed).toEqual(ended);
    });
  }),
);

describe("a subscription of the node", () => {
  it("ends with its key, although the client sends nothing", async () => {
    const node = await SocketNode.open(answerWith);
    const places = { rpc: "http://127.0.0.1:1", websocket: node.url };
    const upstream = closing(Upstream.open({ ...places, clock: systemClock }));
    const run = await GatewayRun.open({}, { sockets: upstream });
    const url = run.url("/relay?api-key=good").replace("http", "ws");
    const socket = closing(await RpcSocket.open(url));
    await socket.subscribe("slot");
    const [client] = node.clients;
    client?.send(notification("1", '{"slot":1}'));
    await socket.next(1);
    run.keys.delete("good");
    await run.clock.advance(1000);
    client?.send(notification("1", '{"slot":2}'));
    expect(await socket.closed).toBe(1008);
    expect(socket.notifications).toEqual([]);
    await turnsUntil(() => client?.readyState === client?.CLOSED);
  });
});

describe("many WebSockets of a revoked key", () => {
  it("do not count as invalid keys of their address", async () => {
    const run = await GatewayRun.open();
    const sockets = await Promise.all(
      Array.from({ length: 32 }, () => SubmissionClient.open(run, "api-key=good", "/relay")),
    );
    run.keys.delete("good");
    run.keys.set("next", apiKey("next", { id: "k_2" }));
    await run.clock.advance(1000);
    // The server ends most of them without waiting, because it keeps few closing connections of an address.
    await Promise.allSettled(sockets.map(({ closed }) => closed));
    expect(await answerWithKey(run, "next")).toBe(200);
  });
});
