// Objects that exist once for each request have one hidden class: object spreads can give each its own.

import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { Query } from "../../src/gateway/endpoints/query.ts";
import type { HttpRequest } from "../../src/gateway/http/types.ts";
import type { Verdict } from "../../src/gateway/routes/dialect.ts";
import { RouteCounter } from "../../src/gateway/routes/route-counts.ts";
import { apiKey, GatewayRun } from "../support/gateway/gateway.ts";
import { TestOutbound } from "../support/gateway/partner.ts";
import { classChanges } from "../support/hidden-class.ts";
import { base64, tipping } from "../support/transactions/tipping.ts";
import { serve, urlOf } from "./http/clients.ts";

const count = 8;
const wires = Array.from({ length: count }, (_, i) =>
  tipping({ tip: 15_000n, amount: BigInt(i + 1) }),
);

function check({ submitted }: GatewayRun): void {
  expect(submitted).toHaveLength(count);
  expect(classChanges(submitted)).toBe(0);
  expect(classChanges(submitted.map(({ options }) => options))).toBe(0);
  expect(classChanges(submitted.flatMap(({ transactions }) => transactions))).toBe(0);
}

describe("one hidden class", () => {
  it("is found, and others are counted", () => {
    const made = [0, 1, 2].map((value) => ({ value }));
    expect(classChanges(made)).toBe(0);
    expect(classChanges([...made, { other: 1 }, { value: 4 }])).toBe(2);
  });

  it("is that of all requests of a server", async () => {
    const seen: HttpRequest[] = [];
    const server = await serve({
      handle: (request) => {
        seen.push(request);
        return { status: 200, body: "ok" };
      },
    });
    for (let i = 0; i < count; i++) await fetch(urlOf(server), { method: "POST", body: `${i}` });
    expect(seen).toHaveLength(count);
    expect(classChanges(seen)).toBe(0);
  });

  it("is that of all submissions in JSON", async () => {
    const run = await GatewayRun.open();
    for (const wire of wires) {
      await run.call("sendTransaction", [
        base64(wire),
        { encoding: "base64", skipPreflight: true },
      ]);
    }
    check(run);
  });

  it("is that of all submissions on /relayb", async () => {
    const run = await GatewayRun.open();
    for (const wire of wires) await run.post(wire, "/relayb?api-key=good");
    check(run);
  });

  it("is that of all submissions on streams", async () => {
    const run = await GatewayRun.open();
    for (const body of wires) {
      const { reason } = await run.gateway.answerStream({
        key: apiKey("good"),
        body,
        query: new Query(""),
        takesBundles: true,
        receivedNs: 1n,
        ingress: "quic",
      });
      expect(reason).toBeNull();
    }
    check(run);
  });

  it.each<Verdict>([
    { kind: "acknowledged" },
    { kind: "refused", reason: "rejected", isFinal: true },
    { kind: "failed", reason: "timeout", isUnsent: true },
  ])("is that of all events of the same kind: $kind", (verdict) => {
    const counter = new RouteCounter(systemClock, undefined);
    const outbound = new TestOutbound([]);
    for (let i = 0; i < count; i++) counter.end(outbound, verdict);
    expect(outbound.events).toMatchObject(outbound.events.map(() => verdict));
    expect(classChanges(outbound.events)).toBe(0);
  });
});
