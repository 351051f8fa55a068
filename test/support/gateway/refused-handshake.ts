// WebSocket handshakes that the server refuses.

import { once } from "node:events";
import Client from "ws";

/** The response that refuses the handshake of `socket`. */
export async function refusalOf(socket: Client): Promise<{ status?: number; body: string }> {
  socket.on("error", () => undefined);
  const [, response] = await once(socket, "unexpected-response");
  let body = "";
  for await (const piece of response) body += String(piece);
  socket.terminate();
  return { status: response.statusCode, body };
}

/** The same for a new client. `url`: of a request over HTTP. */
export function refusedHandshake(url: string): Promise<{ status?: number; body: string }> {
  return refusalOf(new Client(url.replace("http", "ws")));
}
