// Requests with the headers of a WebSocket handshake: those with another method, and invalid handshakes.

import { describe, expect, it } from "vitest";
import type { WebSocketRoute } from "../../../src/gateway/http/types.ts";
import { onEveryEngine, RawClient, serve } from "./clients.ts";

const route: WebSocketRoute = {
  messageBytesMax: 1000,
  messageLimits: { messagesPerSecond: 100, messagesBurst: 100, bytesPerSecond: 1_000_000 },
  backpressureBytesMax: 100_000,
  idleSeconds: 30,
  open: () => undefined,
  message: () => undefined,
  closed: () => undefined,
};
const upgrade = "Host: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
const key = "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n";
const version = "Sec-WebSocket-Version: 13\r\n";

async function open(): Promise<RawClient> {
  const server = await serve({
    handle: ({ method, body }) => ({
      status: 200,
      body: `${method} ${Buffer.from(body).toString()}`,
    }),
    webSockets: { "/": route },
  });
  return RawClient.open(server);
}

onEveryEngine((engine) => {
  describe("a WebSocket handshake", () => {
    it.each(["POST", "PUT"])("is a GET: a %s with its headers is ordinary", async (method) => {
      const client = await open();
      const request = `${method} / HTTP/1.1\r\n${upgrade}${key}${version}Content-Length: 3\r\n\r\nabc`;
      await client.write(request);
      await client.readUntil(new RegExp(`${method} abc$`));
      await client.write(request);
      await client.readUntil(new RegExp(`${method} abc[^]*${method} abc$`));
      expect(client.statuses).toEqual([200, 200]);
    });

    it.each([
      [
        "an invalid key",
        `${version}Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=a\r\n`,
        400,
        "16 bytes in base64, got \\",
      ],
      ["no version", key, 426, "Sec-WebSocket-Version: expected 13, got none"],
      ["an unknown version", `${key}Sec-WebSocket-Version: 7\r\n`, 426, 'expected 13, got \\"7'],
      [
        "a repeated protocol",
        `${key}${version}Sec-WebSocket-Protocol: a, a\r\n`,
        400,
        'different names, separated by commas, got \\"a, a',
      ],
    ])("with %s is refused like every request", async (_, headers, status, message) => {
      const client = await open();
      await client.write(`GET / HTTP/1.1\r\n${upgrade}${headers}\r\n`);
      const received = await client.readUntil(/\}\}$/);
      expect(client.statuses).toEqual([status]);
      expect(received).toContain('{"error":{"reason":"request_invalid","message":"Sec-WebSocket-');
      expect(received).toContain(message);
      if (status === 426) expect(received).toMatch(/sec-websocket-version: 13\r\n/i);
    });

    it("without a key is refused or ordinary", async () => {
      const client = await open();
      await client.write(`GET / HTTP/1.1\r\n${upgrade}${version}\r\n`);
      const received = await client.readUntil(/\}\}$|GET $/);
      if (engine === "uws") expect(received).toMatch(/GET $/);
      else expect(received).toContain("Sec-WebSocket-Key: expected 16 bytes in base64, got none");
    });
  });
});
