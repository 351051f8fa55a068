// The sandbox with ShredStream: a block engine for the relay, and a subscriber of the relay.

import { networkInterfaces } from "node:os";
import { expect, it } from "vitest";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";

/** An address of this machine outside the loopback interface, if there is one. */
const ownAddress =
  Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1";

it("receives shreds from its block engine, and serves a subscriber", async () => {
  const sandbox = await runningSandbox(undefined, { shredstream: "127.0.0.1:0" });
  const { service, shredstream } = sandbox;
  const source = () => sandbox.snapshot().relay.sources.find(({ name }) => name === "jito");
  await until(() => Number(source()?.verdicts.first) > 0, "first shreds of the block engine");
  // The first shreds can arrive before the answer to the heartbeat that asked for them.
  const status = () => service.relay.shredstream.statuses()[0];
  await until(() => status()?.state === "subscribed", "the answer of the block engine");
  expect(status()).toMatchObject({ name: "jito", problem: null });
  await until(() => service.relay.traces.delays().length > 0, "a trace packet");
  expect(service.relay.traces.delays()).toMatchObject([{ source: "jito", region: "frankfurt" }]);

  const proxy = () => sandbox.snapshot().receivers.find(({ name }) => name === "proxy")?.seen;
  await until(() => Number(proxy()?.verdicts.first) > 0, "verified shreds at the subscriber");
  await until(() => shredstream?.proxy.status?.state === "subscribed", "the answer of the relay");
  expect(shredstream?.proxy.status?.problem).toBeNull();
  expect(proxy()?.verdicts.duplicate).toBe(0n);
  expect(service.subscribers?.status()).toMatchObject({
    leases: new Map([["tier-1", 1]]),
    refusals: [],
  });
  expect(service.relay.snapshot().destinations.map(({ name }) => name)).toContain(
    `proxy ${shredstream?.proxy.receiver.address}`,
  );
});

it.each([
  ["every address", "0.0.0.0"],
  ["another address of the loopback interface", "127.0.0.9"],
  ["an address of another interface", ownAddress],
])("serves the subscriber at %s", async (_, address) => {
  const sandbox = await runningSandbox(undefined, { shredstream: `${address}:0` });
  const proxy = () => sandbox.snapshot().receivers.find(({ name }) => name === "proxy")?.seen;
  await until(() => Number(proxy()?.verdicts.first) > 0, "verified shreds at the subscriber");
  expect(sandbox.shredstream?.proxy.status?.problem).toBeNull();
});

it("has neither of them unless it is chosen", async () => {
  const sandbox = await runningSandbox();
  expect(sandbox.shredstream).toBeNull();
  expect(sandbox.service.subscribers).toBeUndefined();
  expect(sandbox.service.relay.config.sources.map(({ name }) => name)).not.toContain("jito");
});
