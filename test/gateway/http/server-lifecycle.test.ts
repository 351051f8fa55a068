// Listening, draining and closing.

import { request as httpRequest } from "node:http";
import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { kernelCallers } from "../../../src/gateway/http/caller-network.ts";
import type { HttpServer } from "../../../src/gateway/http/server.ts";
import type { HttpRequest, HttpResponse } from "../../../src/gateway/http/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { freePort } from "../../support/network/free-ports.ts";
import { turnsUntil } from "../../support/turns-until.ts";
import { deferred, onEveryEngine, openServer, RawClient, serve, urlOf } from "./clients.ts";

const ok: HttpResponse = { status: 200, body: "fine" };
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: test\r\n\r\n`;

async function refusalOf(opening: Promise<HttpServer>): Promise<ShredwayError> {
  try {
    (await opening).close();
  } catch (error) {
    if (error instanceof ShredwayError) return error;
    throw error;
  }
  throw new Error("expected a refusal");
}

onEveryEngine((engine) => {
  describe("listening", () => {
    it("listens on several addresses and reports plain client addresses", async () => {
      const server = await serve({
        listen: ["127.0.0.1:0", "[::1]:0", "[::]:0"],
        handle: ({ remoteAddress }) => ({ status: 200, body: remoteAddress }),
      });
      const [four, six, any] = server.addresses;
      expect(four).toMatch(/^127\.0\.0\.1:[1-9]\d+$/);
      expect(six).toMatch(/^\[::1\]:[1-9]\d+$/);
      const textOf = async (address?: string) => (await fetch(`http://${address}/`)).text();
      expect(await textOf(four)).toBe("127.0.0.1");
      expect(await textOf(six)).toBe("::1");
      // An IPv6 socket shows an IPv4 caller as ::ffff:127.0.0.1.
      expect(await textOf(any?.replace("[::]", "127.0.0.1"))).toBe("127.0.0.1");
    });

    it("reopens its port immediately, even after leaving connections open", async () => {
      const listen = [`127.0.0.1:${await freePort()}`];
      const first = await openServer({ listen, handle: () => ok, bodyBytesMax: () => 1000 });
      const client = await RawClient.open(first);
      await client.write(get("/"));
      await client.readUntil(/fine$/);
      first.close();
      await turnsUntil(() => client.isClosed);
      const second = await serve({ listen, handle: () => ok });
      expect((await fetch(urlOf(second))).status).toBe(200);
    });

    it("does not share a port, and leaves nothing open if it cannot listen", async () => {
      const handle = () => ok;
      const bodyBytesMax = () => 0;
      const free = `127.0.0.1:${await freePort()}`;
      // A fixed port number: the library shares ports by default, except those that the kernel chose.
      const usedAddress = `127.0.0.1:${await freePort()}`;
      const first = await serve({ listen: [usedAddress], handle });
      const refusal = await refusalOf(
        openServer({ listen: [free, usedAddress], handle, bodyBytesMax }),
      );
      expect(refusal.reason).toBe("http_open");
      expect(refusal.message).toBe(`cannot listen on ${usedAddress}: address already in use`);
      expect(refusal.details).toEqual({ address: usedAddress });
      closing(await openServer({ listen: [free], handle, bodyBytesMax }));
      expect((await fetch(urlOf(first))).status).toBe(200);
    });

    it("rejects invalid and foreign addresses", async () => {
      const open = (listen: string[]) =>
        refusalOf(openServer({ listen, handle: () => ok, bodyBytesMax: () => 0 }));
      expect((await open(["localhost:80"])).reason).toBe("address_invalid");
      expect((await open(["192.0.2.1:0"])).message).toMatch(/192\.0\.2\.1:0: .*not available/);
    });
  });

  /** Advances the clock until the server is closed. */
  async function drainedBy(clock: ManualClock, drained: Promise<void>): Promise<void> {
    const state = { isDrained: false };
    void drained.finally(() => {
      state.isDrained = true;
    });
    while (!state.isDrained) {
      await clock.advance(20);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  describe("closing", () => {
    it("closes a connection without a request after the keep-alive time", async () => {
      if (engine === "uws") return; // always 10 s
      const server = await serve({ handle: () => ok, keepAliveSeconds: 1 });
      const client = await RawClient.open(server);
      await client.write(get("/"));
      await client.readUntil(/fine$/);
      expect(client.received).toContain("Keep-Alive: timeout=1\r\n");
      await client.closed();
      expect(server.connections).toBe(0);
    });

    it("keeps a connection for the keep-alive time after a response that was read slowly", async () => {
      if (engine === "uws") return; // it has its own clock
      let nowMs = 0;
      const checks: (() => void)[] = [];
      const network = {
        ...kernelCallers,
        nowMs: () => nowMs,
        every: (_: number, check: () => void) => {
          checks.push(check);
          return { cancel: () => {} };
        },
      };
      const large = Buffer.alloc(20_000_000, "x"); // more than the kernel takes at once
      const handle = ({ path }: HttpRequest): HttpResponse =>
        path === "/large" ? { status: 200, body: large } : ok;
      const server = await serve({ handle, network, keepAliveSeconds: 5 });
      const client = await RawClient.open(server);
      await client.write(get("/large"));
      await client.readUntil(/timeout=5/);
      client.socket.pause();
      nowMs = 9_000;
      for (const check of checks) check();
      client.socket.resume();
      const end = client.received.indexOf("\r\n\r\n") + 4 + large.length;
      await turnsUntil(() => client.received.length === end);
      for (let turn = 0; turn < 5; turn++) {
        await new Promise((resolve) => setImmediate(resolve)); // the server hears that it is sent
        for (const check of checks) check();
      }
      await client.write(get("/"));
      await turnsUntil(() => client.received.endsWith("fine") || client.isClosed);
      expect(client.received.endsWith("fine")).toBe(true);
      nowMs = 16_000;
      for (const check of checks) check();
      await client.closed();
    });

    it("drains: completes running requests and refuses new ones", async () => {
      const answer = deferred<HttpResponse>();
      let calls = 0;
      const server = await serve({
        handle: ({ path }) => {
          calls += 1;
          return path === "/slow" ? answer.promise : ok;
        },
      });
      const idle = await RawClient.open(server);
      await idle.write(get("/"));
      await idle.readUntil(/fine/);
      const busy = await RawClient.open(server);
      await busy.write(get("/slow"));
      await turnsUntil(() => calls === 2);
      const clock = new ManualClock();
      const drained = server.drain(1_000, clock);
      await idle.write(get("/"));
      expect(await idle.closed()).toMatch(/503 Service Unavailable[\s\S]*http_closing/);
      await expect(RawClient.open(server)).rejects.toThrow("ECONNREFUSED");
      const large = Buffer.alloc(3_000_000, "x");
      answer.resolve({ status: 200, body: large });
      await drainedBy(clock, drained);
      const received = await busy.closed();
      expect(received).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*Connection: close/);
      expect(received.length).toBeGreaterThan(large.length);
      expect(clock.pending).toBe(0);
      expect(calls).toBe(2);
    });

    it("answers open connections with 503 for a second, then closes them", async () => {
      const server = await serve({ handle: () => ok });
      const [asking, silent] = [await RawClient.open(server), await RawClient.open(server)];
      for (const client of [asking, silent]) {
        await client.write(get("/"));
        await client.readUntil(/fine/);
      }
      const clock = new ManualClock();
      const beganNs = clock.monotonicNs();
      const drained = server.drain(10_000, clock);
      await clock.advance(900);
      await asking.write(get("/"));
      expect(await asking.closed()).toMatch(/503 Service Unavailable/);
      expect(silent.isClosed).toBe(false);
      await drainedBy(clock, drained);
      expect(clock.monotonicNs() - beganNs).toBeLessThan(1_500_000_000n);
      await silent.closed();
    });

    it("drains no longer than the grace period", async () => {
      let calls = 0;
      const server = await serve({
        handle: () => {
          calls += 1;
          return new Promise<HttpResponse>(() => undefined);
        },
      });
      const client = await RawClient.open(server);
      await client.write(get("/"));
      await turnsUntil(() => calls === 1);
      const clock = new ManualClock();
      const drained = server.drain(1_000, clock);
      await clock.advance(999);
      expect(server.connections).toBe(1);
      await clock.advance(1);
      await drained;
      expect(await client.closed()).toBe("");
    });

    it("closes immediately, twice, and inside a handler", async () => {
      const server = await serve({
        handle: () => {
          server.close();
          return ok;
        },
      });
      const client = await RawClient.open(server);
      await client.write(get("/"));
      expect(await client.closed()).toBe("");
      server.close();
      await server.drain(1, new ManualClock());
    });

    it("closes after the response to Connection: close", async () => {
      const server = await serve({ handle: async () => ok });
      const status = await new Promise((resolve, reject) => {
        const request = httpRequest(urlOf(server), { agent: false }, (answer) => {
          answer.resume();
          answer.on("end", () => resolve(answer.statusCode));
        });
        request.on("error", reject);
        request.end();
      });
      expect(status).toBe(200);
      await turnsUntil(() => server.connections === 0);
    });
  });
});
