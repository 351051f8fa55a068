// Property: for any behaviour of partners, every accepted transaction ends exactly once and the
// counters add up.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
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
import { fakeFacts } from "../../support/transactions/facts.ts";

const behaviours: Readonly<Record<string, Behaviour>> = {
  accepts,
  silent: () => undefined,
  busy: (_request, response) => void response.writeHead(503).end(),
  limited: (_request, response) => void response.writeHead(429, { "retry-after": "1" }).end(),
  garbage: (_request, response) => void response.end('[{"id":1},{"id"'),
  refuses: (_request, response) => void response.end('{"id":null,"error":{"code":-32602}}'),
  huge: (_request, response) => void response.end("x".repeat(100_000)),
  resets: ({ socket }) => void socket.resetAndDestroy(),
  halves: (_request, response) => {
    response.writeHead(200, { "content-length": "50" });
    response.write('{"id":');
    response.socket?.end();
  },
  closes: (request, response) => {
    response.setHeader("connection", "close");
    return accepts(request, response);
  },
};

const ways = /^(sent )?(acknowledged|refused|failed)$|^dropped$/;

function countersAddUp(route: Route): void {
  const counts = route.snapshot();
  const { turnedAway, acknowledged, refused, failed, dropped, queued, inFlight } = counts;
  const ended = acknowledged + refused + failed + dropped;
  expect(turnedAway + ended + BigInt(queued + inFlight)).toBe(counts.offered);
  expect(queued).toBeGreaterThanOrEqual(0);
  expect(inFlight).toBeGreaterThanOrEqual(0);
}

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("offer" as const),
      count: fc.integer({ min: 1, max: 6 }),
      isFlushed: fc.boolean(),
      deadlineMs: fc.constantFrom(-1, 400, 1e6),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("behave" as const),
      as: fc.constantFrom(...Object.keys(behaviours)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("pass" as const),
      ms: fc.constantFrom(10, 250, 1000, 4000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("turns" as const),
      count: fc.integer({ min: 1, max: 20 }),
    }),
  },
);

const shape = fc.record({
  connections: fc.integer({ min: 1, max: 3 }),
  queueMax: fc.integer({ min: 1, max: 8 }),
  callsPerRequest: fc.constantFrom(1, 3),
});

describe("a route", () => {
  it("ends every accepted transaction exactly once", async () => {
    await fc.assert(
      fc.asyncProperty(
        shape,
        fc.array(step, { minLength: 3, maxLength: 25 }),
        async (config, steps) => {
          const clock = new ManualClock();
          const partner = await Partner.open();
          const route = openRoute(
            routeConfig({ kind: "swqos", url: partner.url, timeoutMs: 800, ...config }),
            { clock },
          );
          const accepted: TestOutbound[] = [];
          let number = 0;
          let offered = 0;
          let reportsInOffer = 0;
          for (const one of steps) {
            if (one.kind === "behave") partner.behaviour = behaviours[one.as] ?? accepts;
            else if (one.kind === "pass") await clock.advance(one.ms);
            else if (one.kind === "turns") {
              for (let turn = 0; turn < one.count; turn++)
                await new Promise((next) => setImmediate(next));
            } else {
              for (let count = 0; count < one.count; count++) {
                const deadlineNs = clock.nowNs() + BigInt(one.deadlineMs) * 1_000_000n;
                const outbound = new TestOutbound([fakeFacts(++number)], { deadlineNs });
                outbound.onReport = () => countersAddUp(route);
                offered++;
                if (route.offer(outbound)) accepted.push(outbound);
                reportsInOffer += outbound.events.length;
                if (one.isFlushed) route.flush?.();
              }
            }
            countersAddUp(route);
          }
          const closed = route.close();
          await clock.advance(800);
          await closed;
          await partner.close();
          expect(reportsInOffer).toBe(0);
          for (const outbound of accepted) expect(outbound.kinds).toMatch(ways);
          const counts = route.snapshot();
          expect(counts).toMatchObject({ queued: 0, inFlight: 0, offered: BigInt(offered) });
          expect(counts.turnedAway).toBe(BigInt(offered - accepted.length));
          for (const kind of ["sent", "acknowledged", "refused", "failed", "dropped"] as const) {
            const reported = accepted
              .flatMap(({ events }) => events)
              .filter((event) => event.kind === kind);
            expect(counts[kind]).toBe(BigInt(reported.length));
          }
          expect(clock.pending).toBe(0);
        },
      ),
      { numRuns: 150 },
    );
  });
});
