// Requests as bytes, and a server that answers with what it received.

import type { HttpServer } from "../../../src/gateway/http/server.ts";
import type { HttpResponse } from "../../../src/gateway/http/types.ts";
import { RawClient, serve } from "./clients.ts";

export const body = '{"jsonrpc":"2.0","id":1}';
export const head = `POST /a?b=c HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`;

/** Answers with the method, the target and the body, after `gate` for the path /slow. */
export function echo(gate: Promise<void> = Promise.resolve()): Promise<HttpServer> {
  return serve({
    handle: async ({ method, path, query, body: received }): Promise<HttpResponse> => {
      if (path === "/slow") await gate;
      return {
        status: 200,
        body: `<${method} ${path} ${query} ${Buffer.from(received).toString()}>`,
      };
    },
  });
}

export async function answersTo(
  server: HttpServer,
  ...pieces: readonly string[]
): Promise<RawClient> {
  const client = await RawClient.open(server);
  for (const piece of pieces) await client.write(piece);
  return client;
}

export function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
}
