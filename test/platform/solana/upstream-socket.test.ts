// WebSockets to a node over real sockets: valid, hostile and silent nodes.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { systemClock } from "../../../src/core/clock.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import type { NodeAnswer, NodeNotification, NodeSocket } from "../../../src/core/json-rpc/node.ts";
import { Upstream, type UpstreamOptions } from "../../../src/platform/solana/upstream.ts";
import { socketMessageBytesMax } from "../../../src/platform/solana/upstream-socket.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { answerWith, notification, SocketNode } from "../../support/gateway/socket-node.ts";
import { turnsUntil } from "../../support/turns-until.ts";

/** Notifications of a listener, in order. */
class NotificationLog {
  readonly events: string[] = [];
  readonly notifications: NodeNotification[] = [];
  error: ShredwayError | null = null;
  readonly socket: NodeSocket;

  constructor(url: string, options: Partial<UpstreamOptions> = {}) {
    const rpc = "http://127.0.0.1:1";
    const upstream = Upstream.open({ rpc, websocket: url, clock: systemClock, ...options });
    this.socket = closing(upstream).openSocket({
      notified: (event) => {
        this.events.push("notified");
        this.notifications.push(event);
      },
      lost: (error) => {
        this.events.push("lost");
        this.error = error;
      },
    });
  }

  ask(method = "slotSubscribe"): Promise<NodeAnswer | ShredwayError> {
    return new Promise((resolve) => {
      this.socket.ask(method, [], (answer) => {
        this.events.push("answered");
        resolve(answer);
      });
    });
  }

  async lost(): Promise<ShredwayError> {
    await turnsUntil(() => this.error !== null);
    const losses = this.events.filter((event) => event === "lost").length;
    if (this.socket.isOpen || losses !== 1) throw new Error(`expected one loss, got ${losses}`);
    return this.error ?? new ShredwayError("internal", "not lost");
  }
}

describe("openSocket", () => {
  it("sends requests made during connect once, and reports answers before notifications", async () => {
    const node = await SocketNode.open((client, question) => {
      answerWith(client, question, "18446744073709551615");
      client.send(notification("18446744073709551615", '{"slot":18446744073709551615}'));
    });
    const notifications = new NotificationLog(node.url);
    const answers = await Promise.all([
      notifications.ask(),
      notifications.ask(),
      notifications.ask(),
    ]);
    expect(answers).toEqual([1, 2, 3].map(() => ({ result: { text: "18446744073709551615" } })));
    await turnsUntil(() => notifications.notifications.length === 3);
    expect(node.requests.map(({ id }) => id)).toEqual([1, 2, 3]);
    expect(notifications.events.slice(0, 2)).toEqual(["answered", "notified"]);
    const [first] = notifications.notifications;
    expect(first?.subscription).toBe("18446744073709551615");
    expect(first?.text).toBe(notification("18446744073709551615", '{"slot":18446744073709551615}'));
  });

  it("detects the last notification of a signature", async () => {
    const node = await SocketNode.open((client, question) => {
      const method = "signatureNotification";
      client.send(notification("1", '{"context":{},"value":"receivedSignature"}', method));
      client.send(notification("1", '{"context":{},"value":{"err":null}}', method));
      client.send(notification("2", '{"slot":1}'));
      answerWith(client, question);
    });
    const notifications = new NotificationLog(node.url);
    await notifications.ask();
    expect(notifications.notifications.map(({ isLast }) => isLast)).toEqual([false, true, false]);
  });

  it("ignores answers without a request and other messages", async () => {
    const node = await SocketNode.open((client, question) => {
      client.send('{"jsonrpc":"2.0","result":9,"id":77}');
      client.send('{"jsonrpc":"2.0","result":9,"id":"1"}');
      client.send('{"jsonrpc":"2.0","result":9,"id":null}');
      client.send('{"jsonrpc":"2.0","method":"slotNotification","params":[1]}');
      client.send("{}");
      answerWith(client, question);
      answerWith(client, question, "2");
    });
    const notifications = new NotificationLog(node.url);
    expect(await notifications.ask()).toEqual({ result: { text: "1" } });
    expect(await notifications.ask()).toEqual({ result: { text: "1" } });
    expect(notifications.events).toEqual(["answered", "answered"]);
  });

  it.each<[string, (client: WebSocket) => void, string]>([
    ["garbage", (client) => client.send("<html>"), "expected JSON"],
    ["binary messages", (client) => client.send(Buffer.from("{}")), "binary"],
    [
      "a message that is too large",
      (client) => client.send(notification("1", `"${"a".repeat(socketMessageBytesMax)}"`)),
      "WebSocket at",
    ],
    ["a close", (client) => client.close(1001), "with 1001"],
    ["a cut", (client) => client.terminate(), "WebSocket at"],
  ])("loses the socket on %s, and answers what was asked first", async (_, act, text) => {
    const node = await SocketNode.open((client) => act(client));
    const notifications = new NotificationLog(node.url);
    const answer = await notifications.ask();
    expect(answer).toBeInstanceOf(ShredwayError);
    const error = await notifications.lost();
    expect(error.reason).toBe("rpc_failed");
    expect(error.message).toContain(text);
    expect(notifications.events).toEqual(["answered", "lost"]);
    expect(await notifications.ask()).toBeInstanceOf(ShredwayError);
  });

  it("is lost when no server listens", async () => {
    const node = await SocketNode.open(() => undefined);
    const { url } = node;
    node.close();
    const notifications = new NotificationLog(`${url}/path-secret`);
    expect((await notifications.lost()).message).not.toContain("path-secret");
  });

  it("is lost when an answer exceeds its time limit", async () => {
    const clock = new ManualClock();
    const node = await SocketNode.open(() => undefined);
    const notifications = new NotificationLog(node.url, { clock });
    const answer = notifications.ask();
    await turnsUntil(() => node.requests.length === 1);
    await clock.advance(10_000);
    expect(await answer).toBeInstanceOf(ShredwayError);
    expect((await notifications.lost()).message).toContain("no answer within");
    expect(clock.pending).toBe(0);
  });

  it.each([true, false])("pings; a node that answers them: %s", async (autoPong) => {
    const clock = new ManualClock();
    let pings = 0;
    let pongs = 0;
    const count = (): void => void pongs++;
    subscribe("undici:websocket:pong", count);
    const node = await SocketNode.open(answerWith, autoPong);
    const notifications = new NotificationLog(node.url, { clock });
    await notifications.ask();
    node.clients[0]?.on("ping", () => pings++);
    for (let round = 1; round <= 6; round++) {
      await clock.advance(15_000);
      if (!notifications.socket.isOpen) break;
      await turnsUntil(() => pings === round && (!autoPong || pongs === round));
    }
    unsubscribe("undici:websocket:pong", count);
    expect(notifications.socket.isOpen).toBe(autoPong);
    expect(pings).toBe(autoPong ? 6 : 3);
  });

  it("reports nothing after close, and closes the node's side", async () => {
    const node = await SocketNode.open(() => undefined);
    const notifications = new NotificationLog(node.url);
    void notifications.ask();
    await turnsUntil(() => node.requests.length === 1);
    const [client] = node.clients;
    const code = new Promise((resolve) => client?.once("close", resolve));
    notifications.socket.close();
    notifications.socket.close();
    expect(await code).toBe(1000);
    expect(notifications.events).toEqual([]);
  });
});
