// Clients that stop in the middle: each is cut after about ten seconds, in real time.

import { describe, expect, it } from "vitest";
import type { HttpResponse } from "../../../src/gateway/http/types.ts";
import { deferred, onEveryEngine, RawClient, serve } from "./clients.ts";

const stalled: readonly (readonly [name: string, text: string])[] = [
  ["nothing", ""],
  ["a request line", "GET / HT"],
  ["half a head", "POST / HTTP/1.1\r\nHost: a\r\nConten"],
  ["half a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc"],
  ["half a chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"],
  ["a head after a request", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHos"],
];

onEveryEngine(() => {
  describe("a client that stalls", () => {
    it("is cut, wherever it stops", async () => {
      const handled: string[] = [];
      const server = await serve({
        handle: ({ method }) => {
          handled.push(method);
          return { status: 200 };
        },
      });
      const clients = await Promise.all(
        stalled.map(async ([name, text]) => {
          const client = await RawClient.open(server);
          await client.write(text);
          return { name, client };
        }),
      );
      await Promise.all(clients.map(({ client }) => client.closed()));
      expect(handled).toEqual(["GET"]);
      expect(server.connections).toBe(0);
    });

    it("is cut if it has ended its side and its request is not answered", async () => {
      const gate = deferred<HttpResponse>();
      const server = await serve({ handle: () => gate.promise });
      const client = await RawClient.open(server);
      await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      client.socket.end();
      expect(await client.closed()).toBe("");
      gate.resolve({ status: 200 });
    });
  });
});
