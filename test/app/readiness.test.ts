// Readiness of the routes (what is known about partners before, during and after their first use) and of
// multicast groups.

import { expect, it } from "vitest";
import { checksOf } from "../../src/app/readiness.ts";
import type { RouteSnapshot } from "../../src/gateway/submission/types.ts";

function routesCheck(...healths: readonly RouteSnapshot["health"][]) {
  const checks = checksOf({
    phase: "running",
    lastShredNs: null,
    trafficProblem: null,
    isAuthenticated: false,
    schedule: undefined,
    slot: null,
    nowNs: 0n,
    gateway: {
      routes: healths.map((health, i) => ({ name: `route-${i}`, health })),
      keysInForce: 1,
      nodeDifferences: null,
      store: { isReachable: true, isOnFile: true },
    },
  });
  const { ok, detail } = checks.find(({ name }) => name === "routes") ?? {};
  return [ok, detail];
}

it("does not count a route as up before it was tried", () => {
  expect(routesCheck("unknown", "up")).toEqual([true, "1 of 2 are up; not tried yet: 1"]);
  expect(routesCheck("unknown", "unknown")).toEqual([true, "0 of 2 are up; not tried yet: 2"]);
  expect(routesCheck("down", "unknown")).toEqual([true, "0 of 2 are up; not tried yet: 1"]);
  expect(routesCheck("up", "up")).toEqual([true, "2 of 2 are up"]);
});

it("is not ready while every route is down", () => {
  expect(routesCheck("down", "down")).toEqual([false, "0 of 2 are up"]);
  expect(routesCheck("down", "up")).toEqual([true, "1 of 2 are up"]);
});

it("names the multicast groups that do not deliver, if a source has any", () => {
  const facts = {
    phase: "running",
    lastShredNs: null,
    trafficProblem: null,
    isAuthenticated: false,
    schedule: undefined,
    slot: null,
    nowNs: 0n,
    gateway: null,
  } as const;
  const found = (groups?: { count: number; problem: string | null }) =>
    checksOf({ ...facts, ...(groups && { groups }) }).find(({ name }) => name === "multicast");
  expect(found()).toBeUndefined();
  expect(found({ count: 2, problem: null })).toMatchObject({ ok: true, critical: false });
  const problem = "group 233.84.178.1 of edge: no shred for 30 s";
  expect(found({ count: 2, problem })).toMatchObject({ ok: false, detail: problem });
});
