// The operator's view of sources, from a relay that subscribes at the sandbox's block engine.

import { expect, it } from "vitest";
import { sourceViews } from "../../../src/platform/portal/operator-views.ts";
import { reportBetween } from "../../../src/relay/data-plane/report.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { runningSandbox } from "../../support/processes/sandbox.ts";

it("shows the subscription of a source and the delay of its trace packets", async () => {
  const sandbox = await runningSandbox(undefined, { shredstream: "127.0.0.1:0" });
  const { relay } = sandbox.service;
  const minuteAgo = relay.snapshot();
  await until(() => relay.traces.delays().length > 0, "a trace packet");
  const now = relay.snapshot();
  const sample = { now, minuteAgo, report: reportBetween(minuteAgo, now) };
  const views = sourceViews(sample, relay.shredstream.statuses(), relay.traces.delays());
  const delay = { region: "frankfurt", lastNs: expect.any(Number) };
  expect(views.find(({ name }) => name === "jito")).toMatchObject({
    state: "subscribed",
    problem: null,
    traceDelays: [delay],
  });
  const other = { state: null, traceDelays: [] };
  expect(views.find(({ name }) => name === "fra-a")).toMatchObject(other);
});
