// Counted faults in the operator's list of problems: kernel drops and failures of routes.

import { once } from "node:events";
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { CountedProblems } from "../../../src/platform/portal/counted-problems.ts";
import type { Sample } from "../../../src/platform/portal/sampler.ts";
import { Sampler } from "../../../src/platform/portal/sampler.ts";
import type { RelaySnapshot } from "../../../src/relay/data-plane/snapshot.ts";
import { base64, tipping } from "../../support/transactions/tipping.ts";
import { PortalHarness } from "./harness.ts";

function withDrops(snapshot: RelaySnapshot, drops: bigint): RelaySnapshot {
  return {
    ...snapshot,
    workers: snapshot.workers.map((worker) => ({ ...worker, receive_drops: drops })),
  };
}

describe("kernel drops", () => {
  it("are a problem with the time of the last one, if a feed was open", async () => {
    const harness = await PortalHarness.open();
    const snapshot = harness.service.relay.snapshot();
    const sampleOf = (drops: bigint): Sample => {
      const sample = new Sampler(() => withDrops(snapshot, drops)).take();
      if (!sample) throw new Error("expected a sample");
      return { ...sample, minuteAgo: withDrops(snapshot, 10n) };
    };
    const counted = new CountedProblems();
    const second = 1_000_000_000n;
    expect(counted.views(sampleOf(0n), [], second)).toEqual([]);
    expect(counted.views(null, [], second)).toEqual([]);
    const [first] = counted.views(sampleOf(3787n), [], 2n * second);
    expect(first).toMatchObject({ level: "warn", time: null });
    expect(first?.text).toContain(
      "worker 0: the kernel dropped 3,787 packets since the start, 3,777 in the last minute",
    );
    const later = counted.views(sampleOf(3788n), [], 3n * second);
    expect(later.map(({ time }) => time)).toEqual(["1970-01-01T00:00:03.000Z"]);
    const unchanged = counted.views(sampleOf(3788n), [], 9n * second);
    expect(unchanged.map(({ time }) => time)).toEqual(["1970-01-01T00:00:03.000Z"]);
    counted.forget();
    expect(counted.views(sampleOf(3788n), [], 9n * second)[0]?.time).toBeNull();
  });
});

describe("a route that fails", () => {
  it("is a problem with its last failure and its time, beside the table of routes", async () => {
    // It accepts the first connection, which finds out whether the partner is there, and then ends.
    const partner = createServer((socket) => {
      partner.close();
      socket.destroy();
    }).listen(0, "127.0.0.1");
    await once(partner, "listening");
    const address = partner.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const ended = once(partner, "close");
    const url = `http://127.0.0.1:${port}/`;
    const harness = await PortalHarness.open({
      routes: [{ name: "partner", kind: "scheduler", url }],
    });
    const ops = await harness.key("ops", ["submit", "operate"]);
    await ended;
    const feed = harness.feed(await harness.cookie(ops));
    await feed.has("problems", (list) => list.every(({ text }) => !text.startsWith("route ")));
    const params = [base64(tipping({ amount: 1n })), { encoding: "base64", skipPreflight: true }];
    const call = { jsonrpc: "2.0", id: 1, method: "sendTransaction", params };
    await harness.ask("POST", `/relay?api-key=${ops.text}`, { body: JSON.stringify(call) });
    const [route] = await feed.has("routes", ([one]) => one?.lastFailure !== null);
    expect(route?.lastFailure).toContain("connection_refused");
    expect(route?.lastFailureAt).toMatch(/^\d{4}-/);
    const problems = await feed.has("problems", (list) =>
      list.some(({ text }) => text.startsWith("route partner: 1 requests failed")),
    );
    const problem = problems.find(({ text }) => text.startsWith("route partner"));
    expect(problem).toMatchObject({ level: "warn", time: route?.lastFailureAt });
    expect(problem?.text).toContain("connection_refused");
  });
});
