// A PROXY protocol header is skipped for every sender. The library accepts it before any request,
// so a caller behind a proxy could replace the proxy's address; no address is read from it.

import { describe, expect, it } from "vitest";
import type { TipSnapshot } from "../../../src/tips/tip-types.ts";
import { GatewayRun, loopback } from "../../support/gateway/gateway.ts";
import { onEveryEngine, RawClient, serve } from "./clients.ts";

const signature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");

/** Version 2, TCP over IPv4 or IPv6, from `source` (4 or 16 bytes). */
function headerOf(source: readonly number[]): Buffer {
  const family = source.length === 4 ? 0x11 : 0x21;
  const addresses = Buffer.from([...source, ...source.map(() => 9), 0x12, 0x34, 0, 80]);
  const head = Buffer.from([0x21, family, 0, addresses.length]);
  return Buffer.concat([signature, head, addresses]);
}

const v4 = headerOf([203, 0, 113, 7]);
const v6 = headerOf([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

function get(path: string, headers = ""): Buffer {
  return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`);
}

onEveryEngine((engine) => {
  describe("a PROXY protocol header", () => {
    it.each([
      ["version 2, IPv4", [Buffer.concat([v4, get("/")])]],
      ["version 2, IPv6", [Buffer.concat([v6, get("/")])]],
      ["version 2 in a packet of its own", [v4, get("/")]],
    ])("does not change the address that handlers see: %s", async (_, pieces) => {
      const server = await serve({
        handle: ({ remoteAddress }) => ({ status: 200, body: `from ${remoteAddress}.` }),
      });
      const client = await RawClient.open(server);
      for (const piece of pieces) await client.write(piece);
      await client.readUntil(/from .*\./);
      expect(client.statuses).toEqual([200]);
      expect(client.received).toContain("from 127.0.0.1.");
    });

    it("is skipped or rejected between two requests, where only the caller can have sent it", async () => {
      const server = await serve({
        handle: ({ path, remoteAddress }) => ({ status: 200, body: `${path} ${remoteAddress}.` }),
      });
      const client = await RawClient.open(server);
      await client.write(Buffer.concat([v4, get("/1")]));
      await client.readUntil(/\/1 .*\./);
      await client.write(Buffer.concat([v6, get("/2")]));
      await client.readUntil(/\/2 .*\.|400 Bad Request/);
      expect(client.received).toContain("/1 127.0.0.1.");
      if (engine === "uws") expect(client.received).toContain("/2 127.0.0.1.");
      else expect(client.statuses).toEqual([200, 400]);
    });

    it("of version 1 is rejected as invalid HTTP", async () => {
      const server = await serve({ handle: () => ({ status: 200 }) });
      const client = await RawClient.open(server);
      const line = "PROXY TCP4 203.0.113.7 192.0.2.2 4660 80\r\n";
      await client.write(Buffer.concat([Buffer.from(line), get("/")]));
      await client.closed();
      expect(client.statuses).toEqual([engine === "uws" ? 505 : 400]);
    });

    const snapshot: TipSnapshot = {
      timeMs: 0,
      percentiles: { p25: 0n, p50: 0n, p75: 0n, p95: 0n, p99: 0n },
      emaP50: 0n,
      count: 0,
      windowStartMs: 0,
      isStale: true,
    };

    it.each([
      ["an unlisted peer", []],
      ["a listed proxy", loopback],
    ])("of %s cannot bypass a limit by address", async (_, trustedProxies) => {
      const tipFloor = { snapshot, onRefresh: () => () => undefined };
      const { server } = await GatewayRun.open({ trustedProxies }, { tipFloor });
      const statuses: number[] = [];
      for (let i = 0; i < 12; i++) {
        const client = await RawClient.open(server);
        await client.write(Buffer.concat([headerOf([203, 0, 113, i]), get("/tip_floor")]));
        await client.readUntil(/\r\n\r\n/);
        statuses.push(...client.statuses);
      }
      expect(statuses.filter((status) => status === 429)).toHaveLength(2);
    });

    it("of a trusted proxy does not change X-Forwarded-For", async () => {
      const tipFloor = { snapshot, onRefresh: () => () => undefined };
      const { server } = await GatewayRun.open({ trustedProxies: loopback }, { tipFloor });
      for (let i = 0; i < 12; i++) {
        const client = await RawClient.open(server);
        const forwarded = `X-Forwarded-For: 203.0.113.${i}\r\n`;
        await client.write(Buffer.concat([v4, get("/tip_floor", forwarded)]));
        await client.readUntil(/\r\n\r\n/);
        expect(client.statuses).toEqual([200]);
      }
    });
  });
});
