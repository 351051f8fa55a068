// HttpRoute against a real server: what is sent, reported, counted and refused.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RouteConfig } from "../../../src/core/configuration/configuration.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import type { Route } from "../../../src/gateway/submission/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { Partner, routeConfig, signaturesOf, TestOutbound } from "../../support/gateway/partner.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";

let clock: ManualClock;
let partner: Partner;
let routes: Route[];

beforeEach(async () => {
  clock = new ManualClock();
  partner = await Partner.open();
  routes = [];
});

afterEach(async () => {
  const closed = routes.map((route) => route.close());
  await partner.close();
  await Promise.all(closed);
  if (clock.pending > 0) throw new Error(`expected no timer, got ${clock.pending}`);
});

function open(config: Partial<RouteConfig> = {}): Route {
  const route = openRoute(routeConfig({ kind: "swqos", url: partner.url, ...config }), { clock });
  routes.push(route);
  return route;
}

let number = 0;
function outbound(options: ConstructorParameters<typeof TestOutbound>[1] = {}): TestOutbound {
  return new TestOutbound([fakeFacts(++number)], options);
}

function addsUp(route: Route): void {
  const counts = route.snapshot();
  const { turnedAway, acknowledged, refused, failed, dropped, queued, inFlight } = counts;
  expect(
    turnedAway + acknowledged + refused + failed + dropped + BigInt(queued) + BigInt(inFlight),
  ).toBe(counts.offered);
}

/** Responses that the test sends on demand. */
function held(): (() => void)[] {
  const answers: (() => void)[] = [];
  partner.behaviour = ({ body }, response) => {
    answers.push(() => response.end(JSON.stringify(signaturesOf(body))));
  };
  return answers;
}

describe("a transaction", () => {
  it("is sent, then acknowledged", async () => {
    const route = open();
    const one = outbound();
    expect(route.offer(one)).toBe(true);
    expect(one.events).toEqual([]);
    expect((await one.ended).kind).toBe("acknowledged");
    expect(one.kinds).toBe("sent acknowledged");
    expect(one.events[0]).toEqual({ kind: "sent", atNs: clock.nowNs(), bytes: 215 });
    expect(route.snapshot()).toEqual({
      name: "partner",
      kind: "swqos",
      health: "up",
      lastFailure: "",
      lastFailureNs: null,
      offered: 1n,
      turnedAway: 0n,
      sent: 1n,
      acknowledged: 1n,
      refused: 0n,
      failed: 0n,
      dropped: 0n,
      queued: 0,
      inFlight: 0,
      sendP50Us: 0,
      sendP99Us: 0,
    });
  });

  it("is reported as sent before the response", async () => {
    const answers = held();
    const route = open();
    const one = outbound();
    route.offer(one);
    await one.sent;
    expect(one.kinds).toBe("sent");
    expect(route.snapshot()).toMatchObject({ sent: 1n, inFlight: 1, acknowledged: 0n });
    await partner.received(1);
    answers[0]?.();
    await one.ended;
    expect(one.kinds).toBe("sent acknowledged");
  });

  it("reuses connections within the limit", async () => {
    const route = open({ connections: 2 });
    for (let round = 0; round < 5; round++) {
      const outbounds = Array.from({ length: 6 }, () => outbound());
      for (const one of outbounds) expect(route.offer(one)).toBe(true);
      await Promise.all(outbounds.map(({ ended }) => ended));
    }
    expect(partner.posts.length).toBe(30);
    expect(new Set(partner.posts.map(({ socket }) => socket)).size).toBe(2);
    addsUp(route);
  });

  it("waits in a bounded queue", async () => {
    const answers = held();
    const route = open({ connections: 1, queueMax: 3 });
    const first = outbound();
    route.offer(first);
    await partner.received(1);
    const waiting = [outbound(), outbound(), outbound()];
    expect(waiting.map((one) => route.offer(one))).toEqual([true, true, true]);
    const refused = outbound();
    expect(route.offer(refused)).toBe(false);
    expect(route.snapshot()).toMatchObject({
      offered: 5n,
      turnedAway: 1n,
      queued: 3,
      inFlight: 1,
      health: "up",
    });
    for (const [place, one] of [first, ...waiting].entries()) {
      await partner.received(place + 1);
      answers[place]?.();
      expect((await one.ended).kind).toBe("acknowledged");
    }
    expect(refused.events).toEqual([]);
    addsUp(route);
  });

  it("is dropped if its deadline passes in the queue", async () => {
    const answers = held();
    const route = open({ connections: 1, timeoutMs: 60_000 });
    const first = outbound();
    route.offer(first);
    await partner.received(1);
    const late = outbound({ deadlineNs: clock.nowNs() + 1_000_000_000n });
    const slowRequest = outbound({ deadlineNs: clock.nowNs() + 9_000_000_000n });
    route.offer(late);
    route.offer(slowRequest);
    await clock.advance(1000);
    expect(late.events).toEqual([]);
    await clock.advance(250);
    expect(late.kinds).toBe("dropped");
    expect(late.events[0]).toMatchObject({ reason: "deadline_passed" });
    expect(slowRequest.events).toEqual([]);
    addsUp(route);
    answers[0]?.();
    await partner.received(2);
    answers[1]?.();
    expect((await slowRequest.ended).kind).toBe("acknowledged");
    expect(partner.posts.length).toBe(2);
  });

  it("is never sent after its deadline", async () => {
    const route = open();
    const late = outbound({ deadlineNs: clock.nowNs() - 1n });
    expect(route.offer(late)).toBe(true);
    expect(await late.ended).toMatchObject({ kind: "dropped", reason: "deadline_passed" });
    expect(partner.requests).toEqual([]);
  });

  it("fails alone without a response in time", async () => {
    const answers = held();
    const route = open({ timeoutMs: 500 });
    const slow = outbound();
    route.offer(slow);
    await slow.sent;
    await clock.advance(300);
    const quick = outbound();
    route.offer(quick);
    await quick.sent;
    await partner.received(2);
    await clock.advance(199);
    expect(slow.kinds).toBe("sent");
    await clock.advance(1);
    expect(slow.events[1]).toMatchObject({ kind: "failed", reason: "timeout" });
    expect(route.isUp).toBe(true);
    expect(route.snapshot().lastFailure).toBe(
      `127.0.0.1:${partner.port}: timeout: no response within 500 ms`,
    );
    answers[1]?.();
    expect((await quick.ended).kind).toBe("acknowledged");
    addsUp(route);
  });

  it("is refused in a mode that the route does not support", () => {
    const route = open();
    expect(route.offer(outbound({ mode: "bundle" }))).toBe(false);
    expect(route.offer(new TestOutbound([]))).toBe(false);
    expect(route.offer(new TestOutbound([fakeFacts(1), fakeFacts(2)]))).toBe(false);
    expect(route.snapshot()).toMatchObject({ offered: 3n, turnedAway: 3n });
  });

  it("can throw from its report without effect", async () => {
    const route = open();
    const broken = outbound();
    broken.onReport = () => {
      throw new Error("a listener's fault");
    };
    route.offer(broken);
    await broken.ended;
    const next = outbound();
    route.offer(next);
    expect((await next.ended).kind).toBe("acknowledged");
    addsUp(route);
  });
});

describe("arrays of calls", () => {
  it("contain only transactions that have to wait", async () => {
    const answers = held();
    const route = open({ connections: 1, callsPerRequest: 4 });
    const first = outbound();
    route.offer(first);
    await partner.received(1);
    const waiting = Array.from({ length: 6 }, () => outbound());
    for (const one of waiting) route.offer(one);
    for (let request = 0; request < 3; request++) {
      await partner.received(request + 1);
      answers[request]?.();
    }
    for (const one of [first, ...waiting]) {
      expect((await one.ended).kind).toBe("acknowledged");
    }
    const sizes = partner.posts.map(({ body }) => {
      const parsed: unknown = JSON.parse(body.toString());
      return Array.isArray(parsed) ? parsed.length : 0;
    });
    expect(sizes).toEqual([0, 4, 2]);
    expect(route.snapshot()).toMatchObject({ sent: 7n, acknowledged: 7n });
  });

  it("are distributed over the free connections", async () => {
    held();
    const route = open({ connections: 4, callsPerRequest: 16 });
    for (let count = 0; count < 8; count++) route.offer(outbound());
    await partner.received(4);
    const sizes = partner.posts.map(({ body }) => {
      const parsed: unknown = JSON.parse(body.toString());
      return Array.isArray(parsed) ? parsed.length : 0;
    });
    expect(sizes).toEqual([2, 2, 2, 2]);
  });

  it("wait for the end of the turn, except the first that is flushed", async () => {
    const route = open({ connections: 3, callsPerRequest: 16 });
    const first = outbound();
    route.offer(first);
    await first.ended; // one connection is open now
    held();
    const many = Array.from({ length: 5 }, () => outbound());
    for (const one of many) {
      route.offer(one);
      route.flush?.();
    }
    expect(many.map(({ kinds }) => kinds)).toEqual(["sent", "", "", "", ""]);
    await partner.received(4);
    const sizes = partner.posts.slice(1).map(({ body }) => {
      const parsed: unknown = JSON.parse(body.toString());
      return Array.isArray(parsed) ? parsed.length : 1;
    });
    expect(sizes.toSorted((a, b) => a - b)).toEqual([1, 2, 2]);
    addsUp(route);
  });
});

describe("closing", () => {
  it("drops queued transactions and completes running requests", async () => {
    const answers = held();
    const route = open({ connections: 1 });
    const underWay = outbound();
    route.offer(underWay);
    await partner.received(1);
    const waiting = outbound();
    route.offer(waiting);
    const closed = route.close();
    expect(waiting.events).toMatchObject([{ kind: "dropped", reason: "route_closed" }]);
    expect(route.isUp).toBe(false);
    expect(route.offer(outbound())).toBe(false);
    answers[0]?.();
    await closed;
    expect(underWay.kinds).toBe("sent acknowledged");
    expect(route.snapshot()).toMatchObject({ turnedAway: 1n, queued: 0, inFlight: 0 });
    addsUp(route);
    await route.close();
  });

  it("cuts requests that do not end in time", async () => {
    held();
    const route = open({ timeoutMs: 700 });
    const underWay = outbound();
    route.offer(underWay);
    await partner.received(1);
    let isClosed = false;
    const closed = route.close().finally(() => {
      isClosed = true;
    });
    await clock.advance(699);
    expect(isClosed).toBe(false);
    await clock.advance(1);
    await closed;
    expect(underWay.events.at(-1)).toMatchObject({ kind: "failed", reason: "timeout" });
    addsUp(route);
  });
});

describe("a listener", () => {
  it("can close the route or offer again from its report", async () => {
    const route = open({ callsPerRequest: 4, connections: 1 });
    const queued = outbound();
    const late = outbound({ deadlineNs: clock.nowNs() - 1n });
    late.onReport = () => void route.close();
    route.offer(queued);
    route.offer(late);
    expect(await queued.ended).toMatchObject({ kind: "dropped", reason: "route_closed" });
    expect(partner.requests).toEqual([]);
    addsUp(route);
    const other = open();
    const first = outbound();
    const second = outbound();
    first.onReport = () => {
      if (first.events.length === 2) expect(other.offer(second)).toBe(true);
    };
    other.offer(first);
    expect((await second.ended).kind).toBe("acknowledged");
    addsUp(other);
  });
});
