// The engine "node": forms of requests that uWebSockets.js refuses or does not answer, sent as bytes.

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { kernelCallers } from "../../../src/gateway/http/caller-network.ts";
import { turnsUntil } from "../../support/turns-until.ts";
import { deferred, RawClient, serve } from "./clients.ts";
import { answersTo, body, echo, get, head } from "./raw-requests.ts";

describe("a request", () => {
  it.each(["100-continue", "100-Continue", "100-CONTINUE"])(
    "may ask whether to send its body: %s",
    async (value) => {
      const server = await echo();
      const [before = "", after = ""] = head.split("\r\n\r\n");
      const client = await answersTo(server, `${before}\r\nExpect: ${value}\r\n\r\n${after}`);
      await client.readUntil(/100 Continue/);
      await client.write(body);
      await client.readUntil(/<POST \/a/);
      expect(client.statuses).toEqual([100, 200]);
    },
  );

  it("closes the connection if a body that it asks for would be too large", async () => {
    const server = await echo();
    const client = await answersTo(
      server,
      `POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: ${2 ** 20}\r\nExpect: 100-continue\r\n\r\n`,
    );
    expect(await client.closed()).toContain("Connection: close");
    expect(client.statuses).toEqual([413]);
  });

  it("is answered for some time after its client has ended its side", async () => {
    const gate = deferred<void>();
    const server = await echo(gate.promise);
    const client = await answersTo(server, get("/slow"));
    client.socket.end();
    await sleep(2500); // longer than any pause of a check of time-outs
    gate.resolve();
    expect(await client.closed()).toContain("<GET /slow");
  });

  it.each([
    ["extensions", "3;a=b;c\r\nabc\r\n0\r\n\r\n"],
    ["a quoted extension", '3;a="b"\r\nabc\r\n0\r\n\r\n'],
    ["trailers", "3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n"],
    ["hexadecimal digits in upper case", "A\r\nabcdefghij\r\n0\r\n\r\n"],
  ])("may be chunked with %s", async (_, chunks) => {
    const server = await echo();
    const client = await answersTo(
      server,
      `POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`,
      `GET /after HTTP/1.1\r\nHost: a\r\n\r\n`,
    );
    await client.readUntil(/<POST \/c {2}abc.*<GET \/after {2}>/s);
    expect(client.statuses).toEqual([200, 200]);
  });

  it("may have a target in absolute form", async () => {
    const server = await echo();
    for (const [target, path] of [
      ["http://a/b?c=d", "/b c=d"],
      ["HTTPS://a:1/b", "/b "],
      ["http://a", "/ "],
    ]) {
      const client = await answersTo(server, `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`);
      await client.readUntil(new RegExp(`<GET ${path}`));
      expect(client.statuses).toEqual([200]);
    }
  });
});

describe("the limit of connections", () => {
  it("closes idle ones of the address with the most, so that it keeps no other address out", async () => {
    const gate = deferred<void>();
    const server = await serve({
      connectionsMax: 4,
      handle: async ({ path }) => {
        if (path === "/slow") await gate.promise;
        return { status: 200, body: "fine" };
      },
    });
    const other = "127.0.0.2";
    const busy = await RawClient.open(server, other);
    await busy.write(get("/slow"));
    const idle = [];
    for (let i = 0; i < 3; i++) idle.push(await RawClient.open(server, other));
    await idle[0]?.write("POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
    const client = await answersTo(server, get("/a"));
    await client.readUntil(/fine/);
    for (let i = 0; i < 6; i++) await RawClient.open(server, other);
    await client.write(get("/b"));
    await client.readUntil(/fine[\s\S]*fine/);
    expect(idle.map(({ isClosed }) => isClosed)).toEqual([true, true, true]);
    gate.resolve();
    await busy.readUntil(/fine/);
    expect(server.connectionsOverLimit).toBe(7);
    expect(server.connections).toBe(4);
  });
});

describe("a body", () => {
  it("must come within a minute, however often its pieces come", async () => {
    let nowMs = 0;
    let reads = 0;
    let check: () => void = () => undefined;
    const network = {
      ...kernelCallers,
      nowMs: () => {
        reads++;
        return nowMs;
      },
      every: (_periodMs: number, action: () => void) => {
        check = action;
        return { cancel: () => undefined };
      },
    };
    const server = await serve({ network, handle: () => ({ status: 200 }) });
    const client = await RawClient.open(server);
    let before = reads;
    await client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n");
    await turnsUntil(() => reads > before);
    for (nowMs = 9000; nowMs < 60_000; nowMs += 9000) {
      check();
      expect(server.connections).toBe(1);
      before = reads;
      await client.write("a");
      await turnsUntil(() => reads > before);
    }
    nowMs = 59_999;
    check();
    expect(client.isClosed).toBe(false);
    nowMs = 60_000;
    check();
    expect(await client.closed()).toBe("");
  });
});

describe("pipelined requests", () => {
  it("are not executed behind a response that closes the connection", async () => {
    const gate = deferred<void>();
    const seen: string[] = [];
    const server = await serve({
      bodyBytesMax: () => 10,
      handle: async ({ path }) => {
        seen.push(path);
        await gate.promise;
        return { status: 200 };
      },
    });
    const closing = "GET /one HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    const client = await answersTo(server, closing + get("/two"));
    gate.resolve();
    await client.closed();
    expect(seen).toEqual(["/one"]);
  });

  it("are bounded", async () => {
    const gate = deferred<void>();
    const server = await echo(gate.promise);
    const client = await answersTo(server, get("/slow") + get("/next").repeat(200));
    await turnsUntil(() => client.isClosed);
    gate.resolve();
    expect((await answersTo(server, get("/after"))).isClosed).toBe(false);
  });
});

describe("a request that cannot be read", () => {
  it.each([
    ["no request", "FOO\r\n\r\n", 400],
    ["an old version", "GET / HTTP/1.0\r\n\r\n", 505],
    ["a long head", `GET / HTTP/1.1\r\nHost: a\r\nX: ${"a".repeat(30_000)}\r\n\r\n`, 431],
    [
      "two lengths",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
      400,
    ],
  ])("gets an answer in JSON: %s", async (_, text, status) => {
    const server = await echo();
    const client = await answersTo(server, text);
    await client.closed();
    expect(client.statuses).toEqual([status]);
    const [, json = ""] = client.received.split("\r\n\r\n");
    expect(JSON.parse(json)).toMatchObject({ error: { reason: "request_invalid" } });
  });
});
