import { once } from "node:events";
import { describe, expect, it } from "vitest";
import Client from "ws";
import type { HttpServer } from "../../../src/gateway/http/server.ts";
import type { WebSocketPeer, WebSocketRoute } from "../../../src/gateway/http/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { refusalOf } from "../../support/gateway/refused-handshake.ts";
import { turnsUntil } from "../../support/turns-until.ts";
import { logged, onEveryEngine, RawClient, serve, urlOf } from "./clients.ts";

const echo: WebSocketRoute = {
  messageBytesMax: 1000,
  messageLimits: { messagesPerSecond: 100, messagesBurst: 100, bytesPerSecond: 1_000_000 },
  backpressureBytesMax: 100_000,
  idleSeconds: 30,
  open: () => undefined,
  message: (peer, text) => void peer.send(text),
  closed: () => undefined,
};

const handle = () => ({ status: 404, body: "plain HTTP" });

async function serveSockets(webSockets: Record<string, WebSocketRoute>): Promise<HttpServer> {
  return serve({ handle, webSockets });
}

function client(server: HttpServer, path = "/"): Client {
  const socket = new Client(urlOf(server, path).replace("http", "ws"));
  socket.on("error", () => undefined);
  closing({ close: () => socket.terminate() });
  return socket;
}

async function connected(server: HttpServer, path?: string): Promise<Client> {
  const socket = client(server, path);
  await once(socket, "open");
  return socket;
}

async function nextText(socket: Client): Promise<string> {
  const [bytes] = await once(socket, "message");
  return String(bytes);
}

async function closeOf(socket: Client): Promise<{ code: number; reason: string }> {
  const [code, reason] = await once(socket, "close");
  return { code, reason: String(reason) };
}

/** An empty binary message; the server answers with the close code 1003. */
const binaryFrame = Buffer.from("828000000000", "hex");
const closeFrame = /\r\n\r\n[\s\S]*\x88/;

/** A WebSocket of a client that never closes its TCP connection. */
async function handshaken(server: HttpServer): Promise<RawClient> {
  const raw = await RawClient.open(server);
  await raw.write(
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n",
  );
  await raw.readUntil(/\r\n\r\n/);
  return raw;
}

onEveryEngine((engine) => {
  describe("WebSockets", () => {
    it("stay open longer than connections without a request", async () => {
      const server = await serve({ handle, webSockets: { "/": echo }, keepAliveSeconds: 1 });
      const socket = await connected(server);
      const idle = await RawClient.open(server);
      await idle.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await idle.closed();
      const answer = nextText(socket);
      socket.send("still here");
      expect(await answer).toBe("still here");
    });

    it("carry text in both directions and identify the peer", async () => {
      const heads: unknown[] = [];
      const route: WebSocketRoute = {
        ...echo,
        open: (peer, head) => {
          heads.push({ path: head.path, query: head.query, key: head.header("x-key") });
          peer.send(`hello ${peer.remoteAddress}`);
        },
      };
      const server = await serveSockets({ "/feed": route });
      const socket = client(server, "/feed?a=1");
      expect(await nextText(socket)).toBe("hello 127.0.0.1");
      socket.send("häh");
      expect(await nextText(socket)).toBe("häh");
      expect(heads).toEqual([{ path: "/feed", query: "a=1", key: undefined }]);
      // A plain HTTP request to the same path is ordinary.
      expect(await (await fetch(urlOf(server, "/feed"))).text()).toBe("plain HTTP");
    });

    it("are routed by path, with * for all others", async () => {
      const named = (name: string): WebSocketRoute => ({
        ...echo,
        open: (peer) => peer.send(name),
      });
      const server = await serveSockets({
        "*": named("any"),
        "/": named("root"),
        "/a": named("a"),
      });
      for (const [path, name] of [
        ["/", "root"],
        ["/a", "a"],
        ["/a/b", "any"],
        ["/x", "any"],
      ]) {
        expect(await nextText(client(server, path))).toBe(name);
      }
      const only = await serveSockets({ "/a": named("a") });
      const { status, body } = await refusalOf(client(only, "/b"));
      expect({ status, body }).toEqual({ status: 404, body: "plain HTTP" });
    });

    it("can be refused by an HTTP response", async () => {
      const server = await serveSockets({
        "/no": {
          ...echo,
          accept: ({ query }) => {
            if (query === "throw") throw new Error("no idea");
            return query === "key" ? undefined : { status: 401, body: "no key" };
          },
        },
      });
      const { status, body } = await refusalOf(client(server, "/no"));
      expect({ status, body }).toEqual({ status: 401, body: "no key" });
      expect((await refusalOf(client(server, "/no?throw"))).status).toBe(500);
      await connected(server, "/no?key");
    });

    it("close with 1003 on bytes and 1009 on a message that is too large", async () => {
      const texts: string[] = [];
      const server = await serveSockets({
        "*": { ...echo, message: (_, text) => void texts.push(text) },
      });
      const sending = async (data: string | Uint8Array) => {
        const socket = await connected(server);
        socket.send(data);
        return (await closeOf(socket)).code;
      };
      expect(await sending(Uint8Array.of(1, 2))).toBe(1003);
      expect(await sending("x".repeat(1001))).toBe(1009);
      // A far too large message is rejected before it is read.
      expect(await sending("x".repeat(1_000_000))).toBe(engine === "uws" ? 1006 : 1009);
      const socket = await connected(server);
      socket.send("ü".repeat(500));
      await turnsUntil(() => texts.length > 0);
      expect(texts).toEqual(["ü".repeat(500)]);
    });

    it("close a peer that does not read", async () => {
      let peer: WebSocketPeer | undefined;
      let closedCalls = 0;
      const server = await serveSockets({
        "*": {
          ...echo,
          open: (opened) => {
            peer = opened;
          },
          closed: () => {
            closedCalls += 1;
          },
        },
      });
      const raw = await RawClient.open(server);
      await raw.write(
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
      );
      await raw.readUntil(/101 Switching Protocols/);
      raw.socket.pause();
      await turnsUntil(() => peer !== undefined);
      const text = "x".repeat(50_000);
      let sends = 0;
      while (peer?.send(text) === true && sends < 10_000) sends += 1;
      // The kernel's buffers and 100 kB are far less than 500 MB.
      expect(sends).toBeLessThan(2_000);
      expect(closedCalls).toBe(1);
      expect(peer?.send("more")).toBe(false);
      peer?.close(1000, "twice");
      expect(closedCalls).toBe(1);
      await turnsUntil(() => server.connections === 0);
    });

    it("are safe to use after the peer closed", async () => {
      const peers: WebSocketPeer[] = [];
      const closed: WebSocketPeer[] = [];
      const server = await serveSockets({
        "*": {
          ...echo,
          open: (peer) => void peers.push(peer),
          closed: (peer) => {
            closed.push(peer);
            expect(peer.send("from closed")).toBe(false);
            peer.close(1000, "again");
          },
        },
      });
      const closingClient = await connected(server);
      closingClient.close(1000);
      await turnsUntil(() => closed.length === 1);
      const abruptClient = await connected(server);
      abruptClient.terminate();
      await turnsUntil(() => closed.length === 2);
      for (const peer of peers) {
        expect(peer.send("late")).toBe(false);
        peer.close(1000, "late");
      }
      expect(closed).toEqual(peers);
      await turnsUntil(() => server.connections === 0);
    });

    it("shorten long reasons and replace invalid codes", async () => {
      const wanted: [number, string][] = [
        [4001, "why"],
        [4002, "ü".repeat(100)],
        [4003, `${"a".repeat(122)}😀`],
        [7, "no code"],
      ];
      const server = await serveSockets({
        "*": {
          ...echo,
          message: (peer, text) => peer.close(...(wanted[Number(text)] ?? [1000, ""])),
        },
      });
      const closes = [];
      for (const place of wanted.keys()) {
        const socket = await connected(server);
        socket.send(String(place));
        closes.push(await closeOf(socket));
      }
      expect(closes).toEqual([
        { code: 4001, reason: "why" },
        { code: 4002, reason: "ü".repeat(61) },
        { code: 4003, reason: "a".repeat(122) },
        { code: 1011, reason: "no code" },
      ]);
    });
  });

  describe("message limits", () => {
    const texts: string[] = [];
    const limited = (messageLimits: WebSocketRoute["messageLimits"]): WebSocketRoute => ({
      ...echo,
      messageLimits,
      message: (_, text) => void texts.push(text),
    });
    const tight = limited({ messagesPerSecond: 1, messagesBurst: 10, bytesPerSecond: 1e6 });

    it.each<[string, (socket: Client) => void]>([
      ["messages", (socket) => socket.send("x")],
      ["pings", (socket) => socket.ping()],
      ["pongs", (socket) => socket.pong()],
    ])("close a peer that sends too many %s with 1008, and count it once", async (_, send) => {
      texts.length = 0;
      const server = await serve({
        handle,
        clock: new ManualClock(),
        webSockets: { "/tight": tight, "*": echo },
      });
      const other = await connected(server);
      const socket = await connected(server, "/tight");
      for (let i = 0; i < 10; i++) send(socket);
      socket.send("over");
      expect(await closeOf(socket)).toEqual({
        code: 1008,
        reason: "message limit exceeded: at most 1 messages and 1000000 bytes per second",
      });
      expect(texts).not.toContain("over");
      expect([...server.webSocketsOverLimit]).toEqual([["/tight", 1]]);
      other.send("still served");
      expect(await nextText(other)).toBe("still served");
    });

    it("count bytes as well as messages", async () => {
      const route = limited({ messagesPerSecond: 1e6, messagesBurst: 1e6, bytesPerSecond: 10_000 });
      const server = await serve({ handle, clock: new ManualClock(), webSockets: { "*": route } });
      const socket = await connected(server);
      for (let i = 0; i < 12; i++) socket.send("x".repeat(1000));
      expect((await closeOf(socket)).code).toBe(1008);
    });

    it("allow a peer to continue at the rate", async () => {
      const clock = new ManualClock();
      const server = await serve({
        handle,
        clock,
        webSockets: { "*": { ...echo, messageLimits: tight.messageLimits } },
      });
      const socket = await connected(server);
      for (let i = 0; i < 100; i++) {
        socket.send(`${i}`);
        expect(await nextText(socket)).toBe(`${i}`);
        await clock.advance(1000);
      }
      expect([...server.webSocketsOverLimit]).toEqual([]);
    });

    it("share event-loop turns: bursts of many sockets stay in order", async () => {
      const messages: string[] = [];
      let turn = 0;
      const perTurn = new Map<number, number>();
      const route: WebSocketRoute = {
        ...echo,
        message: (_, text) => {
          perTurn.set(turn, (perTurn.get(turn) ?? 0) + 1);
          messages.push(text);
        },
      };
      const server = await serve({ handle, webSockets: { "*": route } });
      const sockets = await Promise.all(Array.from({ length: 8 }, () => connected(server)));
      let isCounting = true;
      const count = () => {
        turn += 1;
        if (isCounting) setImmediate(count);
      };
      count();
      for (const [i, socket] of sockets.entries()) {
        for (let j = 0; j < 50; j++) socket.send(`${i} ${j}`);
      }
      await turnsUntil(() => messages.length === 400);
      isCounting = false;
      expect(Math.max(...perTurn.values())).toBeLessThanOrEqual(32); // 16 of a turn's polls, 16 of its timers
      for (const i of sockets.keys()) {
        const own = messages.filter((text) => text.startsWith(`${i} `));
        expect(own).toEqual(Array.from({ length: 50 }, (_, j) => `${i} ${j}`));
      }
    });

    it("cut a flood: no further data is read after the burst", async () => {
      texts.length = 0;
      let closedCalls = 0;
      const closed = () => {
        closedCalls += 1;
      };
      const route = { ...tight, closed };
      const server = await serve({ handle, clock: new ManualClock(), webSockets: { "*": route } });
      const raw = await RawClient.open(server);
      await raw.write(
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
      );
      await raw.readUntil(/101 Switching Protocols/);
      const frame = Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0x78]); // "x", masked with zeros
      raw.socket.write(Buffer.concat(Array.from({ length: 100_000 }, () => frame)));
      await raw.closed();
      expect(texts.length).toBe(10);
      expect(closedCalls).toBe(1);
      await turnsUntil(() => server.connections === 0);
      expect([...server.webSocketsOverLimit]).toEqual([["*", 1]]);
    });
  });

  describe("routes that fail", () => {
    const fail = (): never => {
      throw new Error("inside");
    };
    const failLater = (): unknown => Promise.reject(new Error("inside"));

    it.each<[string, Partial<WebSocketRoute>]>([
      ["open", { open: fail }],
      ["message", { message: fail }],
      ["message, later", { message: failLater }],
    ])("close the peer and not the process: %s", async (_, broken) => {
      const { log, lines } = logged();
      let closedCalls = 0;
      const closed = () => {
        closedCalls += 1;
      };
      const webSockets = { "/bad": { ...echo, closed, ...broken }, "/good": echo };
      const server = await serve({ handle, webSockets }, log);
      const good = await connected(server, "/good");
      const bad = client(server, "/bad");
      bad.on("open", () => bad.send("x"));
      expect((await closeOf(bad)).code).toBe(1011);
      expect(closedCalls).toBe(1);
      expect(lines.length).toBe(1);
      expect(String(lines[0]?.["error"])).toContain("inside");
      good.send("still here");
      expect(await nextText(good)).toBe("still here");
    });

    it("log exceptions of closed", async () => {
      const { log, lines } = logged();
      const server = await serve({ handle, webSockets: { "*": { ...echo, closed: fail } } }, log);
      (await connected(server)).close();
      await turnsUntil(() => lines.length === 1);
      await connected(server);
    });
  });

  describe("limits of the server", () => {
    it("count WebSockets as connections", async () => {
      const server = await serve({ handle, webSockets: { "*": echo }, connectionsMax: 2 });
      const first = await connected(server);
      await connected(server);
      expect(await (await RawClient.open(server)).closed()).toBe("");
      first.close();
      await turnsUntil(() => server.connections === 1);
      await connected(server);
    });

    it("count a closed WebSocket until its TCP connection ends", async () => {
      const server = await serve({ handle, webSockets: { "*": echo }, connectionsMax: 1 });
      const raw = await handshaken(server);
      await raw.write(binaryFrame);
      await raw.readUntil(closeFrame);
      expect(server.connections).toBe(1);
      expect(await (await RawClient.open(server)).closed()).toBe("");
    });

    it("end the TCP connection of a peer that keeps it", async () => {
      if (engine === "uws") return; // the library ends it after the idle time
      const server = await serveSockets({ "*": echo });
      const raw = await handshaken(server);
      await raw.write(binaryFrame);
      expect(await raw.closed()).toMatch(closeFrame);
      await turnsUntil(() => server.connections === 0);
    });

    it("read little after a close frame of either side", async () => {
      if (engine === "uws") return; // the library reads without a limit
      const server = await serveSockets({ "*": echo });
      for (const frame of [binaryFrame, Buffer.from("8882000000000000", "hex")]) {
        const raw = await handshaken(server);
        await raw.write(frame);
        await raw.readUntil(closeFrame);
        const piece = Buffer.concat(Array.from({ length: 50_000 }, () => binaryFrame));
        while (!raw.isClosed) {
          await raw.write(piece);
          await new Promise((resolve) => setImmediate(resolve));
        }
        expect(raw.socket.bytesWritten).toBeLessThan(50_000_000);
      }
    });

    it("cut further peers of an address with 8 closed ones, without a close frame", async () => {
      const server = await serveSockets({ "*": echo });
      const isPolite: boolean[] = [];
      for (let i = 0; i < 10; i++) {
        const raw = await handshaken(server);
        await raw.write(binaryFrame);
        isPolite.push(closeFrame.test(await raw.readUntil(closeFrame)));
      }
      expect(isPolite).toEqual([...Array(8).fill(true), false, false]);
    });

    it("accept any idle time and limit without ending the process", async () => {
      const server = await serveSockets({
        "/short": { ...echo, idleSeconds: 1, backpressureBytesMax: 1, messageBytesMax: 0 },
        "/long": { ...echo, idleSeconds: 1e9 },
      });
      const short = await connected(server, "/short");
      const long = await connected(server, "/long");
      const answer = nextText(long);
      long.send("still here");
      expect(await answer).toBe("still here");
      const ending = closeOf(short);
      short.send("no byte is allowed");
      expect((await ending).code).toBe(1009);
    });

    it("close WebSockets with 1001 on drain, and without a frame on close", async () => {
      const draining = await serveSockets({ "*": echo });
      const socket = await connected(draining);
      const drained = closeOf(socket);
      const clock = new ManualClock();
      const done = draining.drain(1_000, clock);
      expect((await drained).code).toBe(1001);
      await clock.advance(1_000);
      await done;
      const closed: WebSocketPeer[] = [];
      const cutting = await serveSockets({
        "*": { ...echo, closed: (peer) => void closed.push(peer) },
      });
      const cut = await connected(cutting);
      const ending = closeOf(cut);
      cutting.close();
      expect((await ending).code).toBe(1006);
      expect(closed.length).toBe(1);
    });
  });
});
