// The engine "uws": the only file that uses uWebSockets.js.
//
// uWebSockets.js itself rejects HTTP/1.0 (505), a head above 4 kB per line or 20 kB in total (431),
// and contradicting lengths (400). It closes a connection on a request without Host, and after 10 s
// without traffic. It also closes a connection that pipelines requests behind an unanswered one.
//
// A PROXY protocol header (version 2) is skipped in every request. The library exposes only the
// last one, which any caller behind a proxy could forge, so no address is read from it.
//
// After a close frame the library discards what a peer sends, without a limit, until the peer closes or
// the idle time ends. It does not report that end. Each such connection is counted for the whole idle
// time, and web-socket-peers.ts limits their number per address.

import type {
  TemplatedApp,
  HttpRequest as UwsRequest,
  HttpResponse as UwsResponse,
  us_listen_socket,
} from "uWebSockets.js";
import { createServer } from "node:net";
import { formatAddress } from "../../core/addresses/addresses.ts";
import type { TlsMaterial } from "../../core/tls-material.ts";
import type { CallerListener } from "./caller-network.ts";
import type { Engine, EngineApp, EngineOptions, EngineWebSocketRoute } from "./engine.ts";
import type { HttpHead } from "./types.ts";
import type { Socket } from "./web-socket-peers.ts";

/**
 * LIBUS_LISTEN_DEFAULT. The exclusive option would refuse a port for a minute after a server with
 * open connections released it. This option shares a port silently, so server.ts tests the port
 * before.
 */
const sharedPort = 0;
const keepAliveSeconds = 10;
/** The library's timers are up to 4 s late. */
const timerSlackSeconds = 4;

/** Configures an app; every app of the engine gets the same routes. */
type Setup = (app: TemplatedApp, isTls: boolean) => void;

class UwsApp implements EngineApp {
  readonly #web: typeof import("uWebSockets.js");
  readonly #plain: TemplatedApp;
  /** The newest one listens; the earlier ones have the connections of earlier certificates. */
  readonly #secure: TemplatedApp[] = [];
  readonly #setups: Setup[] = [];
  readonly #tlsListeners = new Set<TlsListener>();
  #filter: Parameters<EngineApp["filter"]>[0] = () => undefined;

  constructor(web: typeof import("uWebSockets.js"), tls: TlsMaterial | undefined) {
    this.#web = web;
    this.#plain = web.App();
    if (tls) this.#secure.push(this.#secureApp(tls));
  }

  filter(call: Parameters<EngineApp["filter"]>[0]): void {
    this.#filter = call;
    this.#add((app) => void app.filter(call));
  }

  any(call: Parameters<EngineApp["any"]>[0]): void {
    this.#add((app, isTls) => {
      app.any("/*", (response, request) => call(response, headOf(response, request, isTls)));
    });
  }

  ws(path: string, route: EngineWebSocketRoute): void {
    this.#add((app, isTls) => {
      app.ws<Socket>(path === "*" ? "/*" : path, {
        ...route,
        close: (ws) => {
          const socket = ws.getUserData();
          route.close(ws);
          this.#ended(route, socket);
        },
        upgrade: (response, request, context) => {
          const accept = (userData: Socket): void => {
            const key = request.getHeader("sec-websocket-key");
            const protocol = request.getHeader("sec-websocket-protocol");
            response.upgrade(userData, key, protocol, "", context);
          };
          route.upgrade(response, headOf(response, request, isTls), accept);
        },
      });
    });
  }

  async listen(host: string, port: number, isTls: boolean): Promise<CallerListener | null> {
    if (!isTls) return this.#listenWith(this.#plain, host, port);
    // A later certificate listens on the same port, which only an explicit port permits.
    const explicit = port === 0 ? await freePort(host) : port;
    const listener = this.#listenWith(this.#newest(), host, explicit);
    if (listener === null) return null;
    const own: TlsListener = { host, ...listener };
    this.#tlsListeners.add(own);
    return {
      port: own.port,
      close: () => {
        this.#tlsListeners.delete(own);
        own.close();
      },
    };
  }

  /** A new app on the same ports; the earlier one continues its connections. */
  replaceCertificate(material: TlsMaterial): void {
    const app = this.#secureApp(material);
    const replacements = [...this.#tlsListeners].map((listener) => {
      const replacement = this.#listenWith(app, listener.host, listener.port);
      return { listener, replacement };
    });
    const failed = replacements.find(({ replacement }) => replacement === null);
    if (failed) {
      app.close();
      throw new Error(
        `cannot listen again on ${failed.listener.host} port ${failed.listener.port}`,
      );
    }
    // A connection that the earlier socket has not accepted yet is reset; clients connect again.
    for (const { listener, replacement } of replacements) {
      listener.close();
      listener.close = () => replacement?.close();
    }
    this.#secure.push(app);
  }

  close(): void {
    for (const app of [this.#plain, ...this.#secure]) app.close();
  }

  /** The library does not report the end of a WebSocket to `filter`. */
  #ended(route: EngineWebSocketRoute, socket: Socket): void {
    const report = (): void => {
      this.#filter({ close: () => undefined }, -1);
      route.gone(socket);
    };
    const longestMs = (route.idleTimeout + timerSlackSeconds) * 1000;
    if (socket.peer.isClosing) setTimeout(report, longestMs).unref();
    else report();
  }

  #newest(): TemplatedApp {
    const app = this.#secure.at(-1);
    if (!app) throw new Error("a TLS listener without a certificate");
    return app;
  }

  #secureApp({ files }: TlsMaterial): TemplatedApp {
    const app = this.#web.SSLApp({ cert_file_name: files.certificate, key_file_name: files.key });
    for (const setup of this.#setups) setup(app, true);
    return app;
  }

  #add(setup: Setup): void {
    this.#setups.push(setup);
    setup(this.#plain, false);
    for (const app of this.#secure) setup(app, true);
  }

  /** The library calls back before it returns. */
  #listenWith(app: TemplatedApp, host: string, port: number): CallerListener | null {
    let listener: CallerListener | null = null;
    // The library's type declarations lack listen() with host, port and options.
    const listening: { listen(...parameters: unknown[]): unknown } = app;
    listening.listen(host, port, sharedPort, (socket: us_listen_socket | false) => {
      if (socket === false) return;
      listener = {
        port: this.#web.us_socket_local_port(socket),
        close: () => this.#web.us_listen_socket_close(socket),
      };
    });
    return listener;
  }
}

interface TlsListener {
  readonly host: string;
  readonly port: number;
  /** Closes the present socket. */
  close: () => void;
}

function freePort(host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen({ host, port: 0 }, () => {
      const address = probe.address();
      probe.close(() =>
        resolve(address !== null && typeof address === "object" ? address.port : 0),
      );
    });
  });
}

/** The library invalidates the request when the handler returns, so everything is copied. */
function headOf(response: UwsResponse, request: UwsRequest, isTls: boolean): HttpHead {
  const headers = new Map<string, string>();
  request.forEach((name, value) => {
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  });
  return {
    method: request.getMethod().toUpperCase(),
    path: request.getUrl(),
    query: request.getQuery() ?? "",
    header: (name) => headers.get(name),
    remoteAddress: addressOf(new Uint8Array(response.getRemoteAddress())),
    isTls,
  };
}

/** 4 or 16 bytes; a mapped IPv4 address is written as IPv4. Empty if the peer is already gone. */
function addressOf(bytes: Uint8Array): string {
  if (bytes.length === 16) return formatAddress(bytes);
  return bytes.length === 4 ? bytes.join(".") : "";
}

/** null: the library has no binary for this version of Node and this processor. */
export async function openUwsEngine({ tls }: EngineOptions): Promise<Engine | null> {
  let web: typeof import("uWebSockets.js");
  try {
    web = await import("uWebSockets.js");
  } catch {
    return null;
  }
  return { keepAliveSeconds, app: new UwsApp(web, tls) };
}
