// The engine "uws": the only file that uses uWebSockets.js.
//
// uWebSockets.js itself rejects HTTP/1.0 (505), a head above 4 kB per line or 20 kB in total (431),
// and contradicting lengths (400). It closes a connection on a request without Host, and after 10 s
// without traffic. It also closes a connection that pipelines requests behind an unanswered one.
//
// A PROXY protocol header (version 2) is skipped in every request. The library exposes only the
// last one, which any caller behind a proxy could forge, so no address is read from it.

import type { us_listen_socket } from "uWebSockets.js";
import type { Engine, EngineListener } from "./engine.ts";
import type { Socket } from "./web-socket-peers.ts";

/**
 * LIBUS_LISTEN_DEFAULT. The exclusive option would refuse a port for a minute after a server with
 * open connections released it. This option shares a port silently, so server.ts tests the port
 * before.
 */
const sharedPort = 0;
const keepAliveSeconds = 10;

/** null: the library has no binary for this version of Node and this processor. */
export async function openUwsEngine(): Promise<Engine | null> {
  let web: typeof import("uWebSockets.js");
  try {
    web = await import("uWebSockets.js");
  } catch {
    return null;
  }
  const app = web.App();
  // The library's type declarations lack listen() with host, port and options.
  const listening: { listen(...parameters: unknown[]): unknown } = app;
  return {
    keepAliveSeconds,
    app: {
      filter: (call) => void app.filter(call),
      any: (call) => void app.any("/*", call),
      ws: (path, route) =>
        void app.ws<Socket>(path === "*" ? "/*" : path, {
          ...route,
          upgrade: (response, request, context) =>
            route.upgrade(response, request, (userData) => {
              const key = request.getHeader("sec-websocket-key");
              const protocol = request.getHeader("sec-websocket-protocol");
              response.upgrade(userData, key, protocol, "", context);
            }),
        }),
      close: () => void app.close(),
      listen: (host, port) =>
        new Promise<EngineListener | null>((resolve) => {
          listening.listen(host, port, sharedPort, (socket: us_listen_socket | false) => {
            if (socket === false) resolve(null);
            else
              resolve({
                port: web.us_socket_local_port(socket),
                close: () => web.us_listen_socket_close(socket),
              });
          });
        }),
    },
  };
}
