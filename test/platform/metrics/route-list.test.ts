// Metrics of the routes: the health of a partner that was tried, and of one that was not.

import { expect, it } from "vitest";
import type { RouteSnapshot } from "../../../src/gateway/submission/types.ts";
import { routeMetrics } from "../../../src/platform/metrics/route-list.ts";
import { capabilitiesOf, emptySnapshot } from "../../gateway/submission/model-routes-and-store.ts";

it("has no sample of shredway_route_up for a route that was not tried yet", () => {
  const routes = (["up", "down", "unknown"] as const).map(
    (health): RouteSnapshot => ({ ...emptySnapshot(capabilitiesOf({ name: health })), health }),
  );
  const up = routeMetrics.find(({ name }) => name === "shredway_route_up");
  const samples: (readonly [string | undefined, unknown])[] = [];
  up?.read({ routes, tpu: [], tpuTotals: new Map() }, ([route], value) => {
    samples.push([route, value]);
  });
  expect(samples).toEqual([
    ["up", 1],
    ["down", 0],
  ]);
});
