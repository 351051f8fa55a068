// Accepted transactions are sent despite closing routes, failed writes and other accounts.

import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import { RouteTable } from "../../../src/gateway/routes/route-table.ts";
import { Pipeline } from "../../../src/gateway/submission/pipeline.ts";
import { closing } from "../../support/closing.ts";
import { Partner, routeConfig, signaturesOf } from "../../support/gateway/partner.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";
import { Harness } from "./harness.ts";
import { makeFacts } from "./model.ts";

it("is sent by another route, or by the reconfigured one, when a route closes", async () => {
  const partner = await Partner.open();
  closing({ close: () => partner.close() });
  const answers: (() => void)[] = [];
  partner.behaviour = ({ body }, response) => {
    answers.push(() => response.end(JSON.stringify(signaturesOf(body))));
  };
  const table = new RouteTable((config) => openRoute(config, { clock: systemClock }));
  closing({ close: () => table.close() });
  const config = routeConfig({ kind: "swqos", url: partner.url, connections: 1 });
  await table.replace([config]);
  const harness = new Harness();
  const pipeline = new Pipeline({
    clock: systemClock,
    log: { warn: () => {} },
    routes: () => table.routes(),
    policy: () => ({
      denyLeaders: new Set(),
      minimumTipLamports: 0n,
      partners: new Set<string>(),
      partnerUnitLamports: 10n,
    }),
    store: harness.store.of(() => true),
    landings: null,
    outcomes: null,
    leaders: () => ({ slot: 4n, current: "A", next: "B" }),
    slotNs: () => null,
    inspect: () => {
      throw new Error("nothing is restored");
    },
  });
  closing(pipeline);
  const all = Array.from({ length: 5 }, (_, i) => fakeFacts(1000 + i));
  for (const facts of all) {
    const request = harness.request(facts, { resendsMax: 0 });
    void pipeline.submit({ ...request, receivedNs: systemClock.nowNs() });
  }
  await until(() => partner.requests.length === 1, "the first of them at the partner");
  const closed = table.replace([{ ...config, timeoutMs: 1500 }]);
  partner.behaviour = ({ body }, response) => {
    response.end(JSON.stringify(signaturesOf(body)));
  };
  for (const answer of answers.splice(0)) answer();
  await closed;
  await until(() => partner.requests.length === 5, "each of them, once");
});

it("is sent even if the first of two equal calls could not be stored", async () => {
  const harness = new Harness();
  harness.leaders = { slot: 4n, current: "A", next: "bad" };
  const request = harness.request(harness.facts(), { mevProtect: true });
  harness.store.failShare = 1;
  const first = harness.pipeline.submit(request).catch((error: unknown) => String(error));
  const second = harness.pipeline.submit(request).catch((error: unknown) => String(error));
  void (async () => {
    await first;
    harness.store.failShare = 0;
  })();
  await harness.clock.advance(500);
  expect([await first, await second]).toEqual([
    expect.stringMatching(/(was )?not sent/),
    undefined,
  ]);
  harness.leaders = { slot: 9n, current: "C", next: "D" };
  await harness.clock.advance(1000);
  expect(harness.outbound.length).toBeGreaterThan(0);
});

it("is sent although another account fills its own quota for a day", async () => {
  const harness = new Harness({ openMax: 500, openPerAccountMax: 400 });
  const lifetime = new Uint8Array(32).fill(7);
  harness.nonce = pubkeyOf(lifetime);
  const nonceAccount = new Uint8Array(32).fill(9);
  let refused = 0;
  for (let i = 0; i < 500; i++) {
    const facts = makeFacts(harness.random, { lifetime, nonceAccount });
    harness.pipeline.submit(harness.request(facts, {}, "eve")).catch(() => refused++);
  }
  await harness.clock.advance(125_000);
  expect(refused).toBe(100);
  expect(await harness.submit(harness.facts(), {}, "ben")).toBe("accepted");
  const before = harness.outbound.length;
  await harness.clock.advance(60_000);
  const late = harness.outbound.slice(before).filter(({ transactions: [one] }) => one?.nonce);
  expect(late).toEqual([]); // still observed, but no longer sent
});

it("is sent once if it was released from protection just before a kill", async () => {
  const harness = new Harness();
  harness.leaders = { slot: 4n, current: "A", next: "bad" };
  await harness.submit(harness.facts(), { mevProtect: true, resendsMax: 0 });
  harness.leaders = { slot: 9n, current: "C", next: "D" };
  await harness.clock.advance(60);
  expect(harness.outbound.length).toBe(1);
  const written = [...harness.store.records.values()].flatMap(({ events }) => events);
  expect(written.map(({ kind }) => kind)).toContain("queued");
});

it("is sent again after all routes refused it, because routes may change", async () => {
  const harness = new Harness();
  const facts = harness.facts();
  await harness.submit(facts);
  harness.refuseAll(true);
  await harness.clock.advance(100);
  expect(await harness.state(facts)).toBe("rejected routes_refused");
  expect(await harness.submit(facts)).toBe("accepted");
  expect(await harness.state(facts)).toBe("open null");
});

it.each([0, 1])(
  "is sent without a resend after %d restarts, if no route could connect",
  async (restarts) => {
    let harness = new Harness();
    const facts = harness.facts();
    harness.answer = (outbound) => {
      const atNs = harness.clock.nowNs();
      outbound.report({ kind: "failed", atNs, reason: "connection_refused", isUnsent: true });
      harness.answer = () => {};
      harness.takes = false; // the route is down
    };
    expect(await harness.submit(facts, { resendsMax: 0 })).toBe("accepted");
    await harness.clock.advance(2_000);
    expect(harness.outbound.length).toBe(1);
    if (restarts > 0) harness = await harness.next(facts);
    const before = harness.outbound.length;
    harness.takes = true;
    await harness.clock.advance(10_000);
    expect(harness.outbound.length - before).toBe(1);
  },
);

it("is never rejected because its routes closed", async () => {
  const harness = new Harness();
  const facts = harness.facts();
  await harness.submit(facts);
  harness.pipeline.stop();
  for (const outbound of harness.outbound) {
    outbound.report({ kind: "dropped", atNs: harness.clock.nowNs(), reason: "route_closed" });
  }
  harness.pipeline.close();
  await harness.clock.advance(100);
  const [record] = harness.store.records.values();
  expect(record?.state).toBe("open");
  expect(record?.events.map(({ kind }) => kind)).toEqual(["received", "queued", "dropped"]);
});

it("is not accepted before it is stored, even if it landed and is submitted again", async () => {
  const harness = new Harness();
  const facts = harness.facts();
  await harness.submit(facts);
  harness.answers.set(facts.signature, { slot: 5n, err: null, commitment: "confirmed" });
  await harness.clock.advance(1000);
  harness.store.failShare = 1;
  for (const _ of [1, 2]) expect(await harness.submit(facts, {}, "ben")).toMatch(/^store_failed/);
  harness.store.failShare = 0;
  expect(await harness.submit(facts, {}, "ben")).toBe("accepted");
  expect(harness.store.records.get(`ben ${facts.signature}`)?.state).toBe("landed");
});

it("is not sent while the store fails, and is sent after it recovers", async () => {
  const harness = new Harness();
  harness.store.failShare = 1;
  expect(await harness.submit(harness.facts())).toMatch(/^store_failed: .*may have been sent/);
  const sent = harness.outbound.length;
  expect(await harness.submit(harness.facts())).toMatch(
    /^store_failed: .*not persisted and not sent/,
  );
  expect(harness.outbound.length).toBe(sent);
  harness.store.failShare = 0;
  await harness.clock.advance(2000);
  expect(await harness.submit(harness.facts())).toBe("accepted");
});
