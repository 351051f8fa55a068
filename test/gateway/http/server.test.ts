import { describe, expect, it } from "vitest";
import type { HttpRequest, HttpResponse } from "../../../src/gateway/http/types.ts";
import { hasLinkLocal, linkLocalAddress } from "../../support/network/link-local.ts";
import { turnsUntil } from "../../support/turns-until.ts";
import { deferred, logged, onEveryEngine, RawClient, serve, urlOf } from "./clients.ts";

const ok: HttpResponse = { status: 200, body: "fine" };
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`;

onEveryEngine((engine) => {
  describe("requests and responses", () => {
    it("passes every part of a request and of a response", async () => {
      const seen: HttpRequest[] = [];
      const server = await serve({
        handle: (request) => {
          seen.push(request);
          return { status: 201, headers: { "x-kind": "test" }, body: "täxt" };
        },
      });
      const answer = await fetch(urlOf(server, "/a/%7Eb?c=1&d"), {
        method: "PUT",
        headers: { "X-One": "1" },
        body: "bödy",
      });
      expect(answer.status).toBe(201);
      expect(answer.statusText).toBe("Created");
      expect(answer.headers.get("x-kind")).toBe("test");
      expect(answer.headers.get("keep-alive")).toBe(engine === "uws" ? "timeout=10" : "timeout=90");
      expect(await answer.text()).toBe("täxt");
      const [request] = seen;
      expect(request).toMatchObject({ method: "PUT", path: "/a/%7Eb", query: "c=1&d" });
      expect(request?.remoteAddress).toBe("127.0.0.1");
      expect(request?.header("x-one")).toBe("1");
      expect(request?.header("x-two")).toBeUndefined();
      expect(Buffer.from(request?.body ?? []).toString()).toBe("bödy");
    });

    it.skipIf(!hasLinkLocal)("serves a caller with a link-local address", async () => {
      const local = await linkLocalAddress();
      const server = await serve({
        listen: ["[::]:0"],
        handle: ({ remoteAddress }) => ({ status: 200, body: `<${remoteAddress}>` }),
      });
      const client = await RawClient.open(server, undefined, local);
      await client.write(get("/"));
      expect(await client.readUntil(/<.*>/)).toContain(`<${local.replace(/%.*/, "")}>`);
    });

    it("joins repeated headers", async () => {
      const server = await serve({
        handle: (request) => ({ status: 200, body: request.header("x-a") ?? "" }),
      });
      const client = await RawClient.open(server);
      await client.write("GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\nx-a: 2\r\n\r\n");
      expect(await client.readUntil(/1, 2$/)).toContain("1, 2");
    });

    it("sends no body for HEAD and 204 and keeps the connection", async () => {
      const server = await serve({
        handle: ({ path, method }) => ({
          status: path === "/none" ? 204 : 200,
          body: `${method}!`,
        }),
      });
      const client = await RawClient.open(server);
      await client.write("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
      await client.readUntil(/\r\n\r\n/);
      expect(client.received).toMatch(/Content-Length: 5\r\n/);
      expect(client.received).not.toContain("HEAD!");
      await client.write(get("/none"));
      await client.readUntil(/204 No Content[\s\S]*\r\n\r\n/);
      await client.write("OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n");
      expect(await client.readUntil(/OPTIONS!/)).not.toContain("GET!");
      expect(client.statuses).toEqual([200, 204, 200]);
    });

    it("sends views of larger buffers, empty bodies and large ones", async () => {
      const large = Buffer.alloc(8_000_000, "0123456789abcdef");
      const server = await serve({
        handle: ({ path }) => {
          if (path === "/part") return { status: 200, body: Buffer.from("abcdef").subarray(2, 4) };
          return path === "/large" ? { status: 200, body: large } : { status: 200 };
        },
      });
      expect(await (await fetch(urlOf(server, "/part"))).text()).toBe("cd");
      expect(await (await fetch(urlOf(server))).text()).toBe("");
      const answer = Buffer.from(await (await fetch(urlOf(server, "/large"))).arrayBuffer());
      expect(answer.equals(large)).toBe(true);
    });

    it("answers 200 concurrent callers, each with its own response", async () => {
      const waiting: (() => void)[] = [];
      const server = await serve({
        handle: async ({ path }) => {
          await new Promise<void>((resolve) => {
            waiting.push(resolve);
            if (waiting.length === 200) for (const go of waiting.toReversed()) go();
          });
          return { status: 200, body: path };
        },
      });
      const paths = Array.from({ length: 200 }, (_, i) => `/${i}`);
      const answers = await Promise.all(
        paths.map(async (path) => (await fetch(urlOf(server, path))).text()),
      );
      expect(answers).toEqual(paths);
    });

    it("answers a request that offers an upgrade to HTTP/2 as HTTP/1.1", async () => {
      const server = await serve({
        handle: ({ method, body }) => ({ status: 200, body: `${method} ${body.length}.` }),
        webSockets: {
          "*": {
            messageLimits: { messagesPerSecond: 1, messagesBurst: 1, bytesPerSecond: 1 },
            messageBytesMax: 1,
            backpressureBytesMax: 1,
            idleSeconds: 10,
            open: () => undefined,
            message: () => undefined,
            closed: () => undefined,
          },
        },
      });
      const client = await RawClient.open(server);
      // Java's HttpClient sends this with its first request.
      const offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n";
      for (let i = 1; i <= 2; i++) {
        await client.write(`POST / HTTP/1.1\r\nHost: a\r\n${offer}Content-Length: 3\r\n\r\nabc`);
        await client.readUntil(new RegExp(`(POST 3\\.[^]*){${i}}`));
      }
      expect(client.statuses).toEqual([200, 200]);
    });

    it("answers pipelined requests in order", async () => {
      const server = await serve({ handle: ({ path }) => ({ status: 200, body: `<${path}>` }) });
      const client = await RawClient.open(server);
      const paths = Array.from({ length: 50 }, (_, i) => `/${i}`);
      await client.write(paths.map(get).join(""));
      await client.readUntil(/<\/49>/);
      expect(client.received.match(/<.*?>/g)).toEqual(paths.map((path) => `<${path}>`));
    });
  });

  describe("bodies", () => {
    const lengthOf = ({ body }: HttpRequest): HttpResponse => ({
      status: 200,
      body: `${body.length}`,
    });
    const head = (lines: string) => `POST / HTTP/1.1\r\nHost: a\r\n${lines}\r\n\r\n`;

    it("refuses an announced length above the limit before the body comes", async () => {
      const server = await serve({ handle: lengthOf, bodyBytesMax: () => 10 });
      const client = await RawClient.open(server);
      await client.write(head("Content-Length: 999999999"));
      const received = await client.closed();
      expect(received).toMatch(/^HTTP\/1\.1 413 Payload Too Large\r\n/);
      expect(received).toMatch(/Connection: close/);
      expect(received).toContain('"reason":"body_too_large"');
    });

    it("lets a caller with a slightly too large body read the response and continue", async () => {
      const server = await serve({ handle: lengthOf, bodyBytesMax: () => 10 });
      const client = await RawClient.open(server);
      await client.write(`${head("Content-Length: 11")}01234567890${head("Content-Length: 10")}`);
      await client.write("0123456789");
      await client.readUntil(/\r\n\r\n10$/);
      expect(client.statuses).toEqual([413, 200]);
    });

    it("limits a chunked body while it comes", async () => {
      let calls = 0;
      const server = await serve({
        handle: (request) => {
          calls += 1;
          return lengthOf(request);
        },
        bodyBytesMax: () => 10,
      });
      const fits = await RawClient.open(server);
      await fits.write(
        `${head("Transfer-Encoding: chunked")}6\r\nabcdef\r\n4\r\nabcd\r\n0\r\n\r\n`,
      );
      await fits.readUntil(/\r\n\r\n10$/);
      expect(fits.statuses).toEqual([200]);
      const exceeds = await RawClient.open(server);
      // The body never ends: the refusal must not wait for it.
      await exceeds.write(`${head("Transfer-Encoding: chunked")}6\r\nabcdef\r\n5\r\nabcde\r\n`);
      await exceeds.closed();
      expect(exceeds.statuses).toEqual([413]);
      expect(calls).toBe(1);
    });

    it("assembles a body from chunks of any size", async () => {
      const bodies: Uint8Array[] = [];
      const server = await serve({
        handle: (request) => {
          bodies.push(request.body);
          return lengthOf(request);
        },
      });
      const sent = Buffer.from(Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7) % 251));
      const slowBytes = sent.subarray(0, 200);
      const client = await RawClient.open(server);
      await client.write(head("Content-Length: 200"));
      for (let i = 0; i < 200; i++) await client.write(slowBytes.subarray(i, i + 1));
      await client.readUntil(/\r\n\r\n200$/);
      await client.write(head("Content-Length: 300000"));
      for (let i = 0; i < 300_000; i += 9_973) await client.write(sent.subarray(i, i + 9_973));
      await client.readUntil(/\r\n\r\n300000$/);
      expect(bodies.map((body) => body.length)).toEqual([200, 300_000]);
      // Uses equals: printing the difference of such arrays takes minutes.
      expect(Buffer.from(bodies[0] ?? []).equals(slowBytes)).toBe(true);
      expect(Buffer.from(bodies[1] ?? []).equals(sent)).toBe(true);
    });

    it("determines the limit per request and ignores bodies of GET", async () => {
      const server = await serve({
        handle: lengthOf,
        bodyBytesMax: ({ path, header }) => (path === "/big" && header("x-key") === "k" ? 100 : 1),
      });
      const post = async (path: string, key: string) =>
        (
          await fetch(urlOf(server, path), {
            method: "POST",
            headers: { "x-key": key },
            body: "ab",
          })
        ).status;
      expect(await post("/big", "k")).toBe(200);
      expect(await post("/big", "x")).toBe(413);
      expect(await post("/small", "k")).toBe(413);
      const client = await RawClient.open(server);
      await client.write("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
      await client.write(get("/"));
      await client.readUntil(/(200 OK[\s\S]*){2}0$/);
      expect(client.statuses).toEqual([200, 200]);
      expect(client.received.match(/\r\n\r\n0/g)?.length).toBe(2);
    });
  });

  describe("handlers that fail", () => {
    const failures: Record<string, () => HttpResponse | Promise<HttpResponse>> = {
      "/throws": () => {
        throw new Error("secret inside");
      },
      "/rejects": () => Promise.reject(new Error("secret inside")),
      "/throws-text": () => {
        // oxlint-disable-next-line typescript/only-throw-error -- handlers may throw anything
        throw "secret inside";
      },
      "/late": async () => {
        await Promise.resolve();
        throw new Error("secret inside");
      },
      "/nothing": () => JSON.parse("null"),
      "/status": () => ({ status: 99 }),
      "/body": () => ({ status: 200, body: JSON.parse("5") }),
      "/splits": () => ({ status: 200, headers: { "x-a": "1\r\nSet-Cookie: secret inside" } }),
      "/name": () => ({ status: 200, headers: { "x a": "1" } }),
      "/length": () => ({ status: 200, headers: { "Content-Length": "1" } }),
    };

    it.each(Object.keys(failures))(
      "answers 500 with a reference that the log contains: %s",
      async (path) => {
        const { log, lines } = logged();
        const server = await serve({ handle: failures[path] ?? (() => ok) }, log);
        for (const method of ["GET", "POST"]) {
          const answer = await fetch(urlOf(server, path), { method });
          expect(answer.status).toBe(500);
          const text = await answer.text();
          expect(text).not.toContain("secret");
          const { error } = JSON.parse(text);
          expect(error.reason).toBe("internal");
          const reference = /give reference ([0-9a-f]{12}) to the operator/.exec(
            error.message,
          )?.[1];
          const line = lines.at(-1);
          expect(line).toMatchObject({ reference, where: `${method} ${path}` });
          expect(String(line?.["error"])).toMatch(/secret inside|expected|null/);
        }
        expect(lines.length).toBe(2);
      },
    );

    it("answers 500 if the body limit throws", async () => {
      const server = await serve({
        handle: () => ok,
        bodyBytesMax: () => {
          throw new Error("no bound");
        },
      });
      expect((await fetch(urlOf(server), { method: "POST", body: "a" })).status).toBe(500);
      expect((await fetch(urlOf(server))).status).toBe(200);
    });
  });

  describe("callers that disconnect", () => {
    it("survives a response to a disconnected caller", async () => {
      const { log, lines } = logged();
      const answers = { "/answer": deferred<HttpResponse>(), "/fail": deferred<HttpResponse>() };
      let calls = 0;
      const server = await serve(
        {
          handle: ({ path }) => {
            calls += 1;
            return path === "/answer" || path === "/fail" ? answers[path].promise : ok;
          },
        },
        log,
      );
      for (const path of ["/answer", "/fail"]) {
        const client = await RawClient.open(server);
        await client.write(get(path));
        await turnsUntil(() => calls > 0);
        client.socket.resetAndDestroy();
        await turnsUntil(() => server.connections === 0);
        calls = 0;
      }
      answers["/answer"].resolve(ok);
      answers["/fail"].reject(new Error("too late"));
      await turnsUntil(() => lines.length === 1);
      expect((await fetch(urlOf(server))).status).toBe(200);
    });

    it("discards an aborted upload", async () => {
      let calls = 0;
      const server = await serve({
        handle: () => {
          calls += 1;
          return ok;
        },
      });
      for (const sent of [
        "POST / HTT",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
      ]) {
        const client = await RawClient.open(server);
        await client.write(sent);
        await turnsUntil(() => server.connections === 1);
        client.close();
        await turnsUntil(() => server.connections === 0);
      }
      expect(calls).toBe(0);
      expect((await fetch(urlOf(server))).status).toBe(200);
    });

    it("holds at most connectionsMax connections", async () => {
      const server = await serve({ handle: () => ok, connectionsMax: 2 });
      const first = await RawClient.open(server);
      const second = await RawClient.open(server);
      await second.write(get("/"));
      await second.readUntil(/fine/);
      const third = await RawClient.open(server);
      const surplus = engine === "uws" ? third : first;
      expect(await surplus.closed()).toBe("");
      expect(server.connectionsOverLimit).toBe(1);
      second.close();
      await turnsUntil(() => server.connections === 1);
      const fourth = await RawClient.open(server);
      await fourth.write(get("/"));
      expect(await fourth.readUntil(/fine/)).toContain("200 OK");
      expect(server.connectionsOverLimit).toBe(1);
    });
  });
});
