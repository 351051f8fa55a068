// Reload of routes: which routes stay open, which close, and in which order.

import { describe, expect, it } from "vitest";
import type { RouteConfig } from "../../../src/core/configuration/configuration.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import { RouteTable } from "../../../src/gateway/routes/route-table.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { Partner, routeConfig, TestOutbound } from "../../support/gateway/partner.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";

const clock = new ManualClock();
const url = "http://127.0.0.1:9";

function config(name: string, more: Partial<RouteConfig> = {}): RouteConfig {
  return routeConfig({ kind: "swqos", name, url, ...more });
}

function openTable(): RouteTable {
  return new RouteTable((one) => openRoute(one, { clock }));
}

const names = (table: RouteTable): string[] => table.snapshots().map(({ name }) => name);

describe("RouteTable", () => {
  it("keeps unchanged routes, opens new ones and closes removed ones", async () => {
    const table = openTable();
    await table.replace([config("a", { headers: { x: "1", y: "2" } }), config("b"), config("c")]);
    const [a, b, c] = table.routes();
    await table.replace([
      config("d"),
      config("c", { queueMax: 5 }),
      config("a", { headers: { y: "2", x: "1" } }),
    ]);
    expect(names(table)).toEqual(["d", "c", "a"]);
    const [, changed, unchanged] = table.routes();
    expect(unchanged).toBe(a);
    expect(changed).not.toBe(c);
    for (const removed of [b, c])
      expect(removed?.offer(new TestOutbound([fakeFacts(1)]))).toBe(false);
    expect(unchanged?.isUp).toBe(true);
    await table.close();
    expect(table.routes()).toEqual([]);
    expect(unchanged?.isUp).toBe(false);
  });

  it("puts new routes in force before it closes old ones", async () => {
    const partner = await Partner.open();
    const answers: (() => void)[] = [];
    partner.behaviour = (_request, response) => {
      answers.push(() => response.end('{"id":1,"result":"x"}'));
    };
    const table = openTable();
    await table.replace([config("a", { url: partner.url, connections: 1 })]);
    const [old] = table.routes();
    const underWay = new TestOutbound([fakeFacts(1)]);
    old?.offer(underWay);
    await partner.received(1);
    const waiting = new TestOutbound([fakeFacts(2)]);
    let seen: string[] = [];
    waiting.onReport = () => {
      seen = names(table);
    };
    old?.offer(waiting);
    let isSettled = false;
    const replaced = table.replace([config("b")]).finally(() => {
      isSettled = true;
    });
    expect(names(table)).toEqual(["b"]);
    expect(waiting.kinds).toBe("dropped");
    expect(seen).toEqual(["b"]);
    await Promise.resolve();
    expect(isSettled).toBe(false);
    answers[0]?.();
    await replaced;
    expect(underWay.kinds).toBe("sent acknowledged");
    await table.close();
    await partner.close();
  });

  it("changes nothing if a route cannot be opened", async () => {
    const table = openTable();
    await table.replace([config("a")]);
    const [a] = table.routes();
    const broken = config("c", { headers: { "content-length": "1" } });
    await expect(table.replace([config("b"), broken])).rejects.toMatchObject({
      reason: "config_invalid",
    });
    expect(table.routes()).toEqual([a]);
    expect(a?.isUp).toBe(true);
    await table.close();
    expect(clock.pending).toBe(0);
  });
});
