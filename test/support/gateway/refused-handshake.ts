// WebSocket handshakes that the server refuses.

import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import Client from "ws";

interface HandshakeRefusal {
  readonly status?: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** The response that refuses the handshake of `socket`. */
export async function refusalOf(socket: Client): Promise<HandshakeRefusal> {
  socket.on("error", () => undefined);
  const [, response] = await once(socket, "unexpected-response");
  let body = "";
  for await (const piece of response) body += String(piece);
  socket.terminate();
  return { status: response.statusCode, headers: response.headers, body };
}

/** The same for a new client. `url`: of a request over HTTP. */
export function refusedHandshake(url: string): Promise<HandshakeRefusal> {
  return refusalOf(new Client(url.replace("http", "ws")));
}
