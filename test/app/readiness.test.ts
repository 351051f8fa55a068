// Readiness of the routes (what is known about partners before, during and after their first use) and of
// multicast groups.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { checksOf, type ReadinessFacts } from "../../src/app/readiness.ts";
import type { RouteSnapshot } from "../../src/gateway/submission/types.ts";
import {
  type SubscriptionStatus,
  subscriptionEvents,
} from "../../src/relay/shredstream/subscription-status.ts";
import { runningFacts } from "./running-facts.ts";

function checksFor(
  healths: readonly RouteSnapshot["health"][],
  subscriptions: readonly SubscriptionStatus[] = [],
  gateway: Partial<NonNullable<ReadinessFacts["gateway"]>> = {},
) {
  return checksOf({
    ...runningFacts,
    subscriptions,
    gateway: {
      routes: healths.map((health, i) => ({ name: `route-${i}`, health })),
      keysInForce: 1,
      unusableKeys: [],
      certificateProblems: [],
      quicIsUp: null,
      nodeDifferences: null,
      store: { isReachable: true, isWriteFailing: false, isOnFile: true },
      ...gateway,
    },
  });
}

function routesCheck(...healths: readonly RouteSnapshot["health"][]) {
  const checks = checksFor(healths);
  const { ok, detail } = checks.find(({ name }) => name === "routes") ?? {};
  return [ok, detail];
}

it("does not count a route as up before it was tried", () => {
  expect(routesCheck("unknown", "up")).toEqual([true, "1 of 2 are up; not tried yet: 1"]);
  expect(routesCheck("unknown", "unknown")).toEqual([true, "0 of 2 are up; not tried yet: 2"]);
  expect(routesCheck("down", "unknown")).toEqual([true, "0 of 2 are up; not tried yet: 1"]);
  expect(routesCheck("up", "up")).toEqual([true, "2 of 2 are up"]);
});

it("reports block engines that do not send, without making the node unready", () => {
  const status: SubscriptionStatus = {
    name: "fra",
    state: "subscribed",
    host: "engine.example",
    target: "192.0.2.1:20000",
    problem: null,
    lastHeartbeatNs: 1n,
    ttlMs: 1,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every event is a key
    counts: Object.fromEntries(
      subscriptionEvents.map((event) => [event, 0]),
    ) as SubscriptionStatus["counts"],
  };
  const checkOf = (...statuses: readonly SubscriptionStatus[]) =>
    checksFor(["up"], statuses).find(({ name }) => name === "shredstream");
  expect(checkOf()).toBeUndefined();
  expect(checkOf(status)).toMatchObject({
    ok: true,
    detail: "fra: subscribed at engine.example for 192.0.2.1:20000",
  });
  expect(checkOf(status, { ...status, name: "ny", state: "failing", problem: "down" })).toEqual({
    name: "shredstream",
    ok: false,
    critical: false,
    detail: "ny: failing: down",
  });
});

it("is not ready while every route is down", () => {
  expect(routesCheck("down", "down")).toEqual([false, "0 of 2 are up"]);
  expect(routesCheck("down", "up")).toEqual([true, "1 of 2 are up"]);
  const text = "0 of 2 are up; reachable, but the last requests failed: route-1";
  expect(routesCheck("down", "failing")).toEqual([false, text]);
});

it("names the multicast groups that do not deliver, if a source has any", () => {
  const found = (groups?: { count: number; problem: string | null }) =>
    checksOf({ ...runningFacts, ...(groups && { groups }) }).find(
      ({ name }) => name === "multicast",
    );
  expect(found()).toBeUndefined();
  expect(found({ count: 2, problem: null })).toMatchObject({ ok: true, critical: false });
  const problem = "group 233.84.178.1 of edge: no shred for 30 s";
  expect(found({ count: 2, problem })).toMatchObject({ ok: false, detail: problem });
});

it("names changed certificates that cannot be used, without making the node unready", () => {
  const certificatesOf = (certificateProblems: readonly string[]) =>
    checksFor(["up"], [], { certificateProblems }).find(({ name }) => name === "certificates");
  expect(certificatesOf([])).toBeUndefined();
  const problem = "quic: the new TLS certificate cannot be used";
  expect(certificatesOf([problem])).toEqual({
    name: "certificates",
    ok: false,
    critical: false,
    detail: problem,
  });
});

it("reports a QUIC ingress whose process is down, without making the node unready", () => {
  const quicOf = (quicIsUp: boolean | null) =>
    checksFor(["up"], [], { quicIsUp }).find(({ name }) => name === "quic");
  expect(quicOf(null)).toBeUndefined();
  expect(quicOf(true)).toMatchObject({ ok: true });
  expect(quicOf(false)).toEqual({
    name: "quic",
    ok: false,
    critical: false,
    detail: "the process of the QUIC ingress waits for its restart",
  });
});

it("reports a database that answers but stores nothing as unready, if it belongs to this node", () => {
  const checkOf = (isOnFile: boolean) => {
    const store = { isReachable: true, isWriteFailing: true, isOnFile };
    return checksFor(["up"], [], { store }).find(({ name }) => name === "database");
  };
  const detail = "the last write failed: submissions and changes are refused";
  expect(checkOf(true)).toEqual({ name: "database", ok: false, critical: true, detail });
  expect(checkOf(false)).toEqual({ name: "database", ok: false, critical: false, detail });
});

it("has each check in the table of docs/metrics.md", () => {
  const named = (path: string, pattern: RegExp) =>
    new Set(Array.from(readFileSync(path, "utf8").matchAll(pattern), ([, name = ""]) => name));
  const [, table = ""] = readFileSync("docs/metrics.md", "utf8").split("| check | critical |");
  const rows = table.split("\n\n")[0]?.matchAll(/^\| `(\w+)` \|/gm) ?? [];
  const documented = new Set(Array.from(rows, ([, name = ""]) => name));
  const checks = named("src/app/readiness.ts", /(?:check\(|name = )"(\w+)"/g);
  expect(documented).toEqual(checks);
});

it("reports parts of the configuration that cannot work, and is not critical", () => {
  const found = (unworkableParts: string[]) =>
    checksOf({ ...runningFacts, unworkableParts }).find(({ name }) => name === "configuration");
  expect(found([])).toBeUndefined();
  expect(found(["one", "two"])).toMatchObject({ ok: false, critical: false, detail: "one; two" });
});
