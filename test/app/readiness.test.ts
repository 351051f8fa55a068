// Readiness of the routes: what is known about partners before, during and after their first use.

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
