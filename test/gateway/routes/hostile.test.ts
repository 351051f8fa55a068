// Partners whose responses are wrong, too large, too slow or missing.

import { createServer as createTlsServer } from "node:https";
import { createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RouteConfig } from "../../../src/core/configuration/configuration.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import type { Route, RouteEvent } from "../../../src/gateway/submission/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import {
  accepts,
  type Behaviour,
  Partner,
  routeConfig,
  TestOutbound,
} from "../../support/gateway/partner.ts";
import { selfSignedCertificate, selfSignedKey } from "../../support/quic/self-signed.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";
import { turnsUntil } from "../../support/turns-until.ts";

let clock: ManualClock;
let partner: Partner;
let route: Route;
const servers: { close(): unknown }[] = [];
const sockets = new Set<Socket>();

function openTo(url: string, config: Partial<RouteConfig> = {}): Route {
  return openRoute(routeConfig({ kind: "swqos", url, ...config }), { clock });
}

beforeEach(async () => {
  clock = new ManualClock();
  partner = await Partner.open();
  route = openTo(partner.url);
});

afterEach(async () => {
  const closed = route.close();
  await partner.close();
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  for (const server of servers.splice(0)) server.close();
  await closed;
});

let number = 0;
function offer(): TestOutbound {
  const outbound = new TestOutbound([fakeFacts(++number)]);
  expect(route.offer(outbound)).toBe(true);
  return outbound;
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** A server that writes bytes when a request starts. */
async function raw(answer: (socket: Socket, count: number) => void): Promise<string> {
  let count = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      if (bytes.toString("latin1", 0, 5) === "POST ") answer(socket, ++count);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${portOf(server)}`;
}

/** The result of a transaction to a partner that writes `text`. */
async function toRaw(answer: (socket: Socket, count: number) => void): Promise<RouteEvent> {
  const url = await raw(answer);
  await route.close();
  route = openTo(url);
  return offer().ended;
}

describe("a response", () => {
  it.each([
    ["HTML with 502", 502, "<html>Bad gateway</html>", { kind: "refused", isFinal: false }],
    ["HTML with 200", 200, "<html>hello</html>", { kind: "failed", reason: "answer_invalid" }],
    ["nothing", 200, "", { kind: "failed", reason: "answer_invalid" }],
    ["half of it", 200, '{"jsonrpc":"2.0","id":1,"resu', { reason: "answer_invalid" }],
    ["no object", 200, '"yes"', { reason: "answer_invalid" }],
    ["another id", 200, '{"jsonrpc":"2.0","id":77,"result":"x"}', { reason: "answer_mismatched" }],
    ["an id of text", 200, '{"jsonrpc":"2.0","id":"1","result":"x"}', { kind: "failed" }],
    ["neither result nor error", 200, '{"id":1}', { reason: "answer_invalid" }],
    ["an error that is a number", 200, '{"id":1,"error":5}', { reason: "answer_invalid" }],
    ["an array for one call", 200, "[]", { reason: "answer_missing" }],
    ["deep nesting", 200, "[".repeat(60_000), { reason: "answer_invalid" }],
    ["a key from elsewhere", 403, "no", { kind: "refused", reason: "unauthorized" }],
    ["no such path", 404, "no", { kind: "refused", reason: "http_404", isFinal: false }],
    ["a redirect", 302, "", { kind: "refused", reason: "http_302", isFinal: false }],
    ["too large", 413, "", { kind: "refused", reason: "too_large", isFinal: true }],
    ["bad request", 400, "?", { kind: "refused", reason: "request_invalid", isFinal: false }],
  ])("that is %s", async (_name, status, body, expected) => {
    partner.behaviour = (_request, response) => {
      response.writeHead(status, status === 302 ? { location: `${partner.url}/other` } : {});
      response.end(body);
    };
    expect(await offer().ended).toMatchObject(expected);
    expect(partner.requests.length).toBe(1);
  });

  it("to another transaction acknowledges nothing", async () => {
    const other = fakeFacts(999_999).signature;
    partner.behaviour = (_request, response) => {
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, result: other }));
    };
    expect(await offer().ended).toMatchObject({ kind: "failed", reason: "answer_mismatched" });
  });

  it("of 2 MB is cut at 64 kB", async () => {
    partner.behaviour = (_request, response) => {
      response.end("x".repeat(2 * 1024 * 1024));
    };
    expect(await offer().ended).toMatchObject({ kind: "failed", reason: "answer_too_large" });
    partner.behaviour = accepts;
    expect((await offer().ended).kind).toBe("acknowledged");
  });

  it("without an end is cut", async () => {
    partner.behaviour = (_request, response) => {
      const timer = setInterval(() => response.write("x".repeat(4096)), 1);
      response.on("close", () => clearInterval(timer));
    };
    expect(await offer().ended).toMatchObject({ kind: "failed", reason: "answer_too_large" });
  });

  it("in chunks is accepted", async () => {
    partner.behaviour = async (_request, response) => {
      for (const part of ['{"jsonrpc":"2.0",', '"id":1,"result"', ':"x"}']) {
        response.write(part);
        await new Promise((turn) => setImmediate(turn));
      }
      response.end();
    };
    expect((await offer().ended).kind).toBe("acknowledged");
  });
});

describe("bytes", () => {
  const body = '{"jsonrpc":"2.0","id":1,"result":"x"}';
  const good = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

  it.each([
    ["no HTTP", "hello\r\n\r\n", "answer_invalid"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", ""],
    ["100 Continue", `HTTP/1.1 100 Continue\r\n\r\n${good}`, "connection_lost"],
    ["an upgrade", "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", "connection_lost"],
    ["headers of 64 kB", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(65_536)}\r\n\r\n`, ""],
  ])("that are %s fail", async (_name, text, reason) => {
    const end = await toRaw((socket) => void socket.write(text));
    expect(end.kind).toBe("failed");
    if (reason !== "") expect(end).toMatchObject({ reason });
  });

  it("are matched by id even before the end of the connection", async () => {
    expect((await toRaw((socket) => void socket.end(good))).kind).toBe("acknowledged");
  });

  it("that end early leave the result unknown", async () => {
    const end = await toRaw((socket) => void socket.end(good.slice(0, -5)));
    expect(end).toMatchObject({ kind: "failed", reason: "connection_lost" });
    const reset = await toRaw((socket) => void socket.resetAndDestroy());
    expect(reset).toMatchObject({ kind: "failed", reason: "connection_lost" });
  });

  it("that arrive singly are limited by the time of the whole request", async () => {
    let socket: Socket | undefined;
    const url = await raw((created) => {
      created.write("HTTP/1.1 200 OK\r\n");
      socket = created;
    });
    await route.close();
    route = openTo(url, { timeoutMs: 400 });
    const outbound = offer();
    await outbound.sent;
    await turnsUntil(() => socket !== undefined);
    for (let line = 0; line < 3; line++) {
      socket?.write(`x-${line}: y\r\n`);
      await clock.advance(100);
      await new Promise((turn) => setImmediate(turn));
    }
    expect(outbound.kinds).toBe("sent");
    await clock.advance(100);
    expect(await outbound.ended).toMatchObject({ kind: "failed", reason: "timeout" });
  });

  it("that were not requested do not answer the next request", async () => {
    const url = await raw((socket, count) => {
      socket.write(count === 1 ? `${good}${good.replace('"id":1', '"id":2')}` : good);
    });
    await route.close();
    route = openTo(url, { connections: 1 });
    expect((await offer().ended).kind).toBe("acknowledged");
    // Either a new connection answers id 1 to call 2, or the ids mismatch.
    expect((await offer().ended).kind).toBe("failed");
  });

  it("to another request end the connection, so that a refusal without an id finds the right one", async () => {
    const late: (() => void)[] = [];
    const url = await raw((socket, count) => {
      if (count === 1) {
        socket.write(good.replace('"id":1', '"id":7'));
        late.push(() => socket.write("HTTP/1.1 429 Later\r\ncontent-length: 0\r\n\r\n"));
      } else socket.write(good.replace('"id":1', `"id":${count}`));
    });
    await route.close();
    route = openTo(url, { connections: 1 });
    expect(await offer().ended).toMatchObject({ kind: "failed", reason: "answer_mismatched" });
    const next = offer();
    for (const answer of late) answer();
    expect((await next.ended).kind).toBe("acknowledged");
  });
});

describe("a connection", () => {
  it("that was closed while idle has no effect", async () => {
    route = openTo(partner.url, { connections: 1 });
    expect((await offer().ended).kind).toBe("acknowledged");
    for (const socket of partner.sockets) socket.end();
    await turnsUntil(() => partner.sockets.size === 0);
    expect((await offer().ended).kind).toBe("acknowledged");
    expect(new Set(partner.posts.map(({ socket }) => socket)).size).toBe(2);
  });

  /** Accepts the first request; `later` answers the others of a connection. Returns the bodies. */
  function loses(later: Behaviour, firstOfOthers: Behaviour = accepts): string[] {
    const bodies: string[] = [];
    const used = new Set<Socket>();
    partner.behaviour = (request, response) => {
      bodies.push(request.body.toString());
      const isFirst = used.size === 0;
      const isReuse = used.has(request.socket);
      used.add(request.socket);
      if (isReuse) return later(request, response);
      return isFirst ? accepts(request, response) : firstOfOthers(request, response);
    };
    return bodies;
  }

  const destroys: Behaviour = ({ socket }) => void socket.destroy();

  it("closed at the moment of reuse is replaced, and its request repeated once", async () => {
    route = openTo(partner.url, { connections: 1 });
    const bodies = loses(destroys);
    expect((await offer().ended).kind).toBe("acknowledged");
    const outbound = offer();
    expect((await outbound.ended).kind).toBe("acknowledged");
    expect(outbound.kinds).toBe("sent acknowledged");
    expect(bodies).toEqual([bodies[0], bodies[1], bodies[1]]);
    expect(route.snapshot()).toMatchObject({ sent: 2n, acknowledged: 2n, failed: 0n });
    expect(route.snapshot().lastFailure).toBe("");
  });

  it("closed again after a repeated request is a failure", async () => {
    route = openTo(partner.url, { connections: 1 });
    const bodies = loses(destroys, destroys);
    expect((await offer().ended).kind).toBe("acknowledged");
    expect(await offer().ended).toMatchObject({
      kind: "failed",
      reason: "connection_lost",
      isUnsent: false,
    });
    expect(bodies.length).toBe(3);
  });

  it("closed after the first byte of a response repeats nothing", async () => {
    route = openTo(partner.url, { connections: 1 });
    const bodies = loses(({ socket }) => void socket.end("H"));
    expect((await offer().ended).kind).toBe("acknowledged");
    expect(await offer().ended).toMatchObject({ kind: "failed", reason: "connection_lost" });
    expect(bodies.length).toBe(2);
  });

  it("closed by a partner that then refuses connections leaves the result unknown", async () => {
    route = openTo(partner.url, { connections: 1 });
    loses(({ socket }) => {
      void partner.close();
      socket.destroy();
    });
    expect((await offer().ended).kind).toBe("acknowledged");
    expect(await offer().ended).toMatchObject({
      kind: "failed",
      reason: "connection_refused",
      isUnsent: false,
    });
  });

  it("to a server that closes after each response is reopened", async () => {
    partner.behaviour = (request, response) => {
      response.setHeader("connection", "close");
      return accepts(request, response);
    };
    for (let count = 0; count < 3; count++) expect((await offer().ended).kind).toBe("acknowledged");
    expect(new Set(partner.posts.map(({ socket }) => socket)).size).toBe(3);
  });

  it("that is never accepted ends with the time-out", async () => {
    // A TLS handshake with a silent server: connected, but not established.
    const url = (await raw(() => undefined)).replace("http:", "https:");
    await route.close();
    route = openTo(url, { timeoutMs: 5000 });
    const outbound = offer();
    await turnsUntil(() => sockets.size === 1);
    await clock.advance(5000);
    expect(await outbound.ended).toMatchObject({ kind: "failed", reason: "connect_timeout" });
    expect(outbound.kinds).toBe("failed");
    expect(route.isUp).toBe(false);
    // No socket remains.
    await turnsUntil(() => Array.from(sockets).every(({ destroyed }) => destroyed));
  });

  it("to an unknown name reports that", async () => {
    await route.close();
    route = openTo("http://partner.invalid");
    const end = await offer().ended;
    expect(end).toMatchObject({ kind: "failed", reason: "name_unknown" });
    expect(route.isUp).toBe(false);
  });

  it("with an untrusted certificate is refused", async () => {
    const server = createTlsServer(
      { key: selfSignedKey, cert: selfSignedCertificate },
      (_, end) => {
        end.end("never");
      },
    );
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    await route.close();
    route = openTo(`https://127.0.0.1:${portOf(server)}`);
    const outbound = offer();
    expect(await outbound.ended).toMatchObject({ kind: "failed", reason: "tls_refused" });
    expect(outbound.kinds).toBe("failed");
    expect(route.snapshot().lastFailure).toContain("DEPTH_ZERO_SELF_SIGNED_CERT");
  });
});

describe("secrets", () => {
  it("of URL and headers appear in no text", async () => {
    await route.close();
    const url = partner.url.replace("http://", "http://user-name:pass%2Fword@");
    route = openTo(`${url}/path-key/v1?api-key=query%20key`, {
      headers: { "x-auth": "header-key", Authorization: "Bearer bearer-key" },
    });
    const echoed = "path-key query key query%20key header-key bearer-key user-name pass/word";
    partner.behaviour = (_request, response) => {
      response.socket?.write(`HTTP/1.1 200 ${echoed}\r\n${echoed}`);
      response.socket?.end();
    };
    await offer().ended;
    const [request] = partner.requests;
    expect(request?.headers["x-auth"]).toBe("header-key");
    expect(request?.headers.authorization).toBe("Bearer bearer-key");
    expect(request?.url).toBe("/path-key/v1?api-key=query%20key");
    const { lastFailure } = route.snapshot();
    expect(lastFailure).not.toBe("");
    expect(lastFailure).not.toMatch(/path-key|query key|header-key|bearer-key|user-name|pass/);
  });

  it("of the URL's user are sent as basic authorization", async () => {
    await route.close();
    route = openTo(partner.url.replace("http://", "http://user:pass%2Fword@"));
    expect((await offer().ended).kind).toBe("acknowledged");
    const basic = Buffer.from("user:pass/word").toString("base64");
    expect(partner.requests[0]?.headers.authorization).toBe(`Basic ${basic}`);
  });
});
