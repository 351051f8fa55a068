// Route health: failures, refused connections, and pauses that the partner requests.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RouteConfig } from "../../../src/core/configuration/configuration.ts";
import { createLogger } from "../../../src/core/log.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import type { Route } from "../../../src/gateway/submission/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import {
  accepts,
  type Behaviour,
  Partner,
  routeConfig,
  TestOutbound,
} from "../../support/gateway/partner.ts";
import { freePort } from "../../support/network/free-ports.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";
import { turnsUntil } from "../../support/turns-until.ts";

let clock: ManualClock;
let partner: Partner;
let log: string;
const routes: Route[] = [];

beforeEach(async () => {
  clock = new ManualClock();
  partner = await Partner.open();
  log = "";
});

afterEach(async () => {
  const closed = routes.splice(0).map((route) => route.close());
  await partner.close();
  await Promise.all(closed);
  if (clock.pending > 0) throw new Error(`expected no timer, got ${clock.pending}`);
});

function open(config: Partial<RouteConfig> = {}): Route {
  const stream = {
    write: (line: string): void => {
      log += line;
    },
  };
  const route = openRoute(routeConfig({ kind: "swqos", url: partner.url, ...config }), {
    clock,
    log: createLogger({ stream }),
  });
  routes.push(route);
  return route;
}

let number = 0;
async function send(route: Route): Promise<string> {
  const outbound = new TestOutbound([fakeFacts(++number)]);
  if (!route.offer(outbound)) return "turned away";
  const end = await outbound.ended;
  return "reason" in end ? end.reason : end.kind;
}

const unavailable: Behaviour = (_request, response) => {
  response.writeHead(503).end("<html>busy</html>");
};

describe("a refused connection", () => {
  it("takes the route down until the partner accepts connections", async () => {
    await partner.close();
    const port = await freePort();
    const route = open({ url: `http://127.0.0.1:${port}/key-in-the-path` });
    expect(await send(route)).toBe("connection_refused");
    expect(route.isUp).toBe(false);
    expect(await send(route)).toBe("turned away");
    const { lastFailure, lastFailureNs } = route.snapshot();
    expect(lastFailureNs).toBe(clock.nowNs());
    expect(lastFailure).toContain(`127.0.0.1:${port}: connection_refused: ECONNREFUSED`);
    expect(route.snapshot()).toMatchObject({ health: "down", failed: 1n, sent: 0n });
    expect(clock.pending).toBe(1);
    partner = await Partner.open(port);
    await clock.advance(999);
    expect(partner.requests).toEqual([]);
    await clock.advance(1);
    await turnsUntil(() => route.isUp);
    expect(partner.requests).toMatchObject([{ method: "GET", url: "/key-in-the-path" }]);
    expect(await send(route)).toBe("acknowledged");
    expect(route.snapshot()).toMatchObject({ health: "up", acknowledged: 1n, turnedAway: 1n });
    expect(log).toContain("a route is down");
    expect(log).toContain("a route is up again");
    expect(log).not.toContain("key-in-the-path");
  });

  it("is probed at growing intervals of up to 15 s", async () => {
    const route = open();
    partner.behaviour = unavailable;
    for (let count = 0; count < 5; count++) await send(route);
    // Each probe has a different status, which shows when its response has arrived.
    let probes = 0;
    partner.behaviour = (_request, response) => void response.writeHead(510 + ++probes).end();
    for (const delayMs of [1000, 2000, 4000, 8000, 15_000, 15_000]) {
      const before = probes;
      await clock.advance(delayMs - 1);
      expect(probes).toBe(before);
      await clock.advance(1);
      await turnsUntil(() => route.snapshot().lastFailure.includes(`status ${510 + before + 1}`));
    }
    expect(route.isUp).toBe(false);
    expect(route.snapshot()).toMatchObject({ offered: 5n, sent: 5n, refused: 5n });
  });

  it("drops queued transactions, so that other routes can send them", async () => {
    await partner.close();
    const port = await freePort();
    const route = open({ url: `http://127.0.0.1:${port}`, connections: 1 });
    const outbounds = [1, 2, 3].map(() => new TestOutbound([fakeFacts(++number)]));
    for (const outbound of outbounds) expect(route.offer(outbound)).toBe(true);
    const ends = await Promise.all(outbounds.map(({ ended }) => ended));
    expect(ends).toMatchObject([
      { kind: "failed", reason: "connection_refused", isUnsent: true },
      { kind: "dropped", reason: "route_down" },
      { kind: "dropped", reason: "route_down" },
    ]);
    expect(route.snapshot()).toMatchObject({ failed: 1n, dropped: 2n, queued: 0, inFlight: 0 });
    partner = await Partner.open(port);
  });
});

describe("a route without traffic", () => {
  it("is unknown until its first connection, and accepts transactions meanwhile", async () => {
    const route = open();
    expect(route.snapshot()).toMatchObject({ health: "unknown", lastFailure: "" });
    expect(route.isUp).toBe(true);
    await turnsUntil(() => route.snapshot().health !== "unknown");
    expect(route.snapshot()).toMatchObject({ health: "up", offered: 0n, sent: 0n });
    expect(partner.requests).toEqual([]);
  });

  it("is down soon after the start if its partner is dead, and says why", async () => {
    await partner.close();
    const port = await freePort();
    const route = open({ url: `http://127.0.0.1:${port}/key-in-the-path` });
    await turnsUntil(() => route.snapshot().health !== "unknown");
    expect(route.snapshot()).toMatchObject({
      health: "down",
      lastFailure: expect.stringContaining(`127.0.0.1:${port}: connection_refused: ECONNREFUSED`),
      offered: 0n,
      failed: 0n,
    });
    expect(log).toContain("a route is down");
    partner = await Partner.open(port);
    await clock.advance(1000);
    await turnsUntil(() => route.snapshot().health === "up");
  });

  it("is down if its partner speaks no TLS", async () => {
    const route = open({ url: partner.url.replace("http:", "https:") });
    await turnsUntil(() => route.snapshot().health === "down");
    expect(route.snapshot().lastFailure).toContain("tls_refused");
  });

  it("is up if one of its leaders' ports is, and unknown before any is known", async () => {
    const port = await freePort();
    const leaders = { a: `http://127.0.0.1:${port}`, b: partner.url };
    const route = openRoute(routeConfig({ kind: "alt-partner", leaders }), { clock });
    routes.push(route);
    expect(route.snapshot().health).toBe("unknown");
    await turnsUntil(() => route.snapshot().lastFailure !== "");
    await turnsUntil(() => route.snapshot().health === "up");
  });

  it("is connected to again while it is idle, without a request", async () => {
    const route = open();
    let connections = 0;
    partner.onConnection = () => void connections++;
    await turnsUntil(() => connections === 1);
    await turnsUntil(() => route.snapshot().health === "up");
    await clock.advance(29_000);
    expect(await send(route)).toBe("acknowledged");
    const used = connections;
    await clock.advance(1_000); // a response in this interval proves it
    expect(connections).toBe(used);
    await clock.advance(30_000);
    await turnsUntil(() => connections === used + 1);
    await turnsUntil(() => partner.sockets.size <= 1);
    const { port } = partner;
    await partner.close();
    await clock.advance(30_000);
    await turnsUntil(() => route.snapshot().health === "down");
    expect(partner.posts.length).toBe(1);
    partner = await Partner.open(port);
  });
});

describe("failures in a row", () => {
  it("take the route down after five; one success resets the count", async () => {
    const route = open();
    partner.behaviour = unavailable;
    for (let count = 0; count < 4; count++) expect(await send(route)).toBe("partner_error");
    partner.behaviour = accepts;
    expect(await send(route)).toBe("acknowledged");
    partner.behaviour = unavailable;
    for (let count = 0; count < 4; count++) expect(await send(route)).toBe("partner_error");
    expect(route.isUp).toBe(true);
    expect(await send(route)).toBe("partner_error");
    expect(route.isUp).toBe(false);
    expect(route.snapshot().lastFailure).toContain("HTTP status 503");
  });

  it("keep it down while probes get 5xx; then one transaction proves it", async () => {
    const route = open();
    partner.behaviour = unavailable;
    for (let count = 0; count < 5; count++) await send(route);
    partner.behaviour = (_request, response) => void response.writeHead(502).end();
    await clock.advance(1000);
    await turnsUntil(() => route.snapshot().lastFailure.includes("status 502"));
    expect(route.isUp).toBe(false);
    // The partner answers probes but accepts nothing: one transaction detects it, and the interval
    // grows.
    const waiting: (() => void)[] = [];
    partner.behaviour = ({ method }, response) => {
      if (method === "GET") response.writeHead(404).end();
      else waiting.push(() => response.writeHead(500).end());
    };
    await clock.advance(2000);
    await turnsUntil(() => route.isUp);
    const outbounds = [1, 2, 3].map(() => new TestOutbound([fakeFacts(++number)]));
    for (const outbound of outbounds) expect(route.offer(outbound)).toBe(true);
    await turnsUntil(() => waiting.length > 0);
    expect(route.snapshot()).toMatchObject({ inFlight: 1, queued: 2 });
    waiting[0]?.();
    const ends = await Promise.all(outbounds.map(({ ended }) => ended));
    expect(ends.map(({ kind }) => kind)).toEqual(["refused", "dropped", "dropped"]);
    expect(route.isUp).toBe(false);
    partner.behaviour = accepts;
    await clock.advance(3999);
    expect(route.isUp).toBe(false);
    await clock.advance(1);
    await turnsUntil(() => route.isUp);
    expect(await send(route)).toBe("acknowledged");
    expect(await Promise.all([send(route), send(route)])).toEqual(["acknowledged", "acknowledged"]);
  });

  it("do not include errors about a transaction", async () => {
    const route = open();
    partner.behaviour = (_request, response) => {
      response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no"}}');
    };
    for (let count = 0; count < 8; count++) expect(await send(route)).toBe("params_invalid");
    expect(route.isUp).toBe(true);
    expect(route.snapshot()).toMatchObject({ refused: 8n, lastFailure: "" });
  });
});

describe("429", () => {
  const limits = (retryAfter: string | null): Behaviour => {
    return (_request, response) => {
      response.writeHead(429, retryAfter === null ? {} : { "retry-after": retryAfter }).end("slow");
    };
  };

  it("with Retry-After pauses the route and keeps its queue", async () => {
    const route = open({ connections: 1 });
    partner.behaviour = limits("3");
    const refused = new TestOutbound([fakeFacts(++number)]);
    const waiting = new TestOutbound([fakeFacts(++number)]);
    route.offer(refused);
    route.offer(waiting);
    expect(await refused.ended).toMatchObject({
      kind: "refused",
      reason: "rate_limited",
      isFinal: false,
    });
    expect(await send(route)).toBe("turned away");
    expect(route.snapshot()).toMatchObject({ health: "down", queued: 1 });
    expect(route.snapshot().lastFailure).toContain("requested a pause of 3 s");
    partner.behaviour = accepts;
    await clock.advance(2999);
    expect(partner.requests.length).toBe(1);
    await clock.advance(1);
    expect((await waiting.ended).kind).toBe("acknowledged");
    expect(await send(route)).toBe("acknowledged");
  });

  it("accepts a date; an hour is reduced to a minute", async () => {
    const route = open();
    const inTwoSeconds = Number(clock.nowNs() / 1_000_000n) + 2000;
    partner.behaviour = limits(new Date(inTwoSeconds).toUTCString());
    expect(await send(route)).toBe("rate_limited");
    expect(route.isUp).toBe(false);
    await clock.advance(2000);
    expect(route.isUp).toBe(true);
    partner.behaviour = limits("3600");
    expect(await send(route)).toBe("rate_limited");
    await clock.advance(59_999);
    expect(route.isUp).toBe(false);
    await clock.advance(1);
    expect(route.isUp).toBe(true);
  });

  it("without Retry-After or with an invalid one does not pause", async () => {
    const route = open();
    for (const retryAfter of [null, "0", "soon", "-5", "Thu, 01 Jan 1970 00:00:00 GMT"]) {
      partner.behaviour = limits(retryAfter);
      expect(await send(route)).toBe("rate_limited");
      expect(route.isUp).toBe(true);
    }
  });
});

describe("HTTP status 400", () => {
  const jsonRpcError = '{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad"}}';
  const answers = (body: string): Behaviour => {
    return (_request, response) => void response.writeHead(400).end(body);
  };

  it.each(["", "<html>400 Bad Request</html>", "malformed", '{"message":"no route matched"}'])(
    "with %j is not a partner's answer: five take the route down",
    async (body) => {
      const route = open();
      partner.behaviour = answers(body);
      for (let count = 0; count < 5; count++) {
        expect(route.isUp).toBe(true);
        expect(await send(route)).toBe("request_invalid");
      }
      expect(route.isUp).toBe(false);
      expect(route.snapshot()).toMatchObject({ health: "failing", refused: 5n });
      expect(route.snapshot().lastFailure).toContain(
        "expected a JSON-RPC error with HTTP status 400",
      );
    },
  );

  it("to everything keeps the route failing in spite of its probes, until a request succeeds", async () => {
    const route = open();
    partner.behaviour = answers("<html>400 Bad Request</html>");
    for (let count = 0; count < 5; count++) await send(route);
    const states = [route.snapshot().health];
    for (let round = 0; round < 3; round++) {
      await clock.advance(1000 * 2 ** round);
      await turnsUntil(() => route.isUp);
      states.push(route.snapshot().health);
      expect(await send(route)).toBe("request_invalid");
      expect(route.isUp).toBe(false);
      states.push(route.snapshot().health);
    }
    expect(new Set(states)).toEqual(new Set(["failing"]));
    expect(log.match(/a route is (down|up again)/g)).toEqual(["a route is down"]);
    partner.behaviour = accepts;
    await clock.advance(8000);
    await turnsUntil(() => route.isUp);
    expect(route.snapshot().health).toBe("failing");
    await send(route);
    expect(route.snapshot().health).toBe("up");
    expect(log.match(/a route is (down|up again)/g)).toEqual([
      "a route is down",
      "a route is up again",
    ]);
  });

  it("to requests, and no connection afterwards, is an outage", async () => {
    const route = open();
    partner.behaviour = answers("<html>400 Bad Request</html>");
    for (let count = 0; count < 5; count++) await send(route);
    expect(route.snapshot().health).toBe("failing");
    partner.behaviour = (_request, response) => void response.writeHead(503).end();
    await clock.advance(1000);
    await turnsUntil(() => route.snapshot().health === "down");
    expect(route.isUp).toBe(false);
  });

  it.each([jsonRpcError, "Blockhash not found", "transaction already processed"])(
    "with %j is the partner's answer",
    async (body) => {
      const route = open();
      partner.behaviour = answers(body);
      for (let count = 0; count < 6; count++) await send(route);
      expect(route.snapshot()).toMatchObject({ health: "up", lastFailure: "" });
    },
  );

  it("is the answer of a scheduler in plain text, but not without a text", async () => {
    const route = open({ kind: "scheduler", format: "bytes" });
    partner.behaviour = answers("malformed");
    for (let count = 0; count < 6; count++) expect(await send(route)).toBe("request_invalid");
    expect(route.isUp).toBe(true);
    partner.behaviour = answers("");
    for (let count = 0; count < 5; count++) await send(route);
    expect(route.isUp).toBe(false);
  });
});
