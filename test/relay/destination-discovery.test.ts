// Destinations from a URL: a real HTTP server, a real relay, and every kind of bad answer.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeEach, expect, it } from "vitest";
import { Service } from "../../src/app/service.ts";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { fetchDestinations } from "../../src/platform/solana/destination-list.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import { buildSchedule } from "../../src/relay/leaders/schedule.ts";
import { RelayService } from "../../src/relay/relay-service.ts";
import { relayOptionsOf } from "../../src/relay/relay-tables.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { closing } from "../support/closing.ts";
import { until } from "../support/network/udp-receiver.ts";

interface Answer {
  status: number;
  body: string;
}
let answer: Answer;
let requests: string[];
beforeEach(() => {
  answer = { status: 200, body: "[]" };
  requests = [];
});

async function openServer(): Promise<number> {
  const server: Server = createServer((request, response) => {
    requests.push(request.headers.authorization ?? "");
    response.statusCode = answer.status;
    response.end(answer.body);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  closing({
    close() {
      server.close();
      server.closeAllConnections();
    },
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  return (server.address() as AddressInfo).port;
}

async function open(more = "") {
  const port = await openServer();
  const textOf = (discovery: string) => `relay:
  listen: "127.0.0.1:0"
  shredVersion: 99
  leaders: { file: leaders.json }
  sources: [ { name: local, address: 127.0.0.1, tier: tier-1 } ]
  destinations: [ { address: "192.0.2.1:9000", tier: tier-1 } ]
${discovery}`;
  const url = `http://user:secret@127.0.0.1:${port}/list`;
  const section = (rest: string) => `  discovery: { url: "${url}", tier: tier-2, ${rest} }\n`;
  const next = { text: textOf(section(`port: 8001${more}`)) };
  const readConfig = () => parseConfig(next.text, "/a.yaml");
  const config = readConfig();
  const relay = Relay.open({ ...relayOptionsOf(config.relay), prefault: false });
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const clock = ManualClock.running();
  const service = closing(
    new RelayService({
      relay,
      config,
      readLeaders: () => buildSchedule(50n, [{ key: new Uint8Array(32).fill(7), slots: [0] }]),
      readOwnAddresses: () => [],
      fetchDestinations,
      log,
      clock,
    }),
  );
  await service.start();
  const table = () => service.snapshot().destinations.map(({ address, tier }) => [address, tier]);
  const polled = async (): Promise<void> => {
    const before = { ...status() };
    clock.move(30_001);
    await until(() => {
      const { failures, lastAnswerNs } = status();
      return failures !== before.failures || lastAnswerNs !== before.lastAnswerNs;
    }, "an answer");
  };
  const status = () => {
    const now = service.discovery.status();
    if (!now) throw new Error("expected a URL");
    return now;
  };
  await until(() => status().lastAnswerNs !== null || status().failures > 0, "the first answer");
  const whole = new Service({ relay: service, readConfig, log });
  return { service, whole, lines, clock, next, textOf, section, table, polled, status };
}

const configured = ["192.0.2.1:9000", "tier-1"];

it("adds and removes the destinations of each answer, beside the configured ones", async () => {
  answer.body = '["192.0.2.2", "192.0.2.3:7000", "[2001:db8::1]:7", "192.0.2.2:8001"]';
  const { service, table, polled, lines, status } = await open();
  expect(requests[0]).toBe(`Basic ${Buffer.from("user:secret").toString("base64")}`);
  // An answer is parsed once, not at every use.
  expect(service.discovery.destinations()).toBe(service.discovery.destinations());
  const all = ["192.0.2.2:8001", "192.0.2.3:7000", "[2001:db8::1]:7"];
  expect(table()).toEqual([configured, ...all.map((address) => [address, "tier-2"])]);
  expect(lines.join()).toContain("discovery: 3 destinations: 3 added, 0 removed");
  answer.body = '["192.0.2.3:7000", "192.0.2.1:9000"]';
  await polled();
  // A configured destination keeps its own tier.
  expect(table()).toEqual([configured, ["192.0.2.3:7000", "tier-2"]]);
  expect(status()).toMatchObject({ destinations: 2, failures: 0, problem: null });
  expect(lines.join()).not.toContain("secret");
});

it.each([
  ["another status", { status: 503, body: "[]" }, "expected HTTP status 200, got 503"],
  ["no JSON", { body: "<html>" }, "not valid JSON"],
  ["another type", { body: '{"a": 1}' }, "expected a JSON array of addresses"],
  ["a number", { body: "[1]" }, "expected addresses as text only, got 1 at 0"],
  ["a host name", { body: '["192.0.2.9", "example.org"]' }, 'invalid value \\"example.org'],
  ["port 0", { body: '["192.0.2.9:0"]' }, "192.0.2.9:0"],
  ["port 70000", { body: '["192.0.2.9:70000"]' }, "192.0.2.9:70000"],
  ["a private address", { body: '["10.0.0.1"]' }, "10.0.0.1 is an address of class private"],
  ["a multicast group", { body: '["239.1.1.1"]' }, "is an address of class multicast"],
  ["too many", { body: JSON.stringify(Array(2049).fill("192.0.2.9")) }, "at most 2048 addresses"],
  ["a long body", { body: `["${"1".repeat(300_000)}"]` }, "expected at most 262144 bytes"],
])("keeps the last good answer after %s", async (_, bad, message) => {
  answer.body = '["192.0.2.2"]';
  const { table, polled, lines, status, clock, service } = await open();
  const good = [configured, ["192.0.2.2:8001", "tier-2"]];
  expect(table()).toEqual(good);
  answer = { ...answer, ...bad };
  await polled();
  expect(table()).toEqual(good);
  expect(status().failures).toBe(1);
  expect(lines.at(-1)).toContain(message);
  expect(lines.at(-1)).toContain("the last good answer (1 destination) stays in force");
  answer = { status: 200, body: '["192.0.2.4"]' };
  await polled();
  expect(table()).toEqual([configured, ["192.0.2.4:8001", "tier-2"]]);
  expect(lines.join()).toContain("destinations are current again");
  service.close();
  expect(clock.pending).toBe(0);
});

it("follows a reload, and removes everything without the key", async () => {
  answer.body = '["192.0.2.2"]';
  const { whole, next, textOf, section, table, lines } = await open();
  next.text = textOf(section("port: 8002"));
  expect(whole.reload()).toBe(true);
  expect(table()).toEqual([configured, ["192.0.2.2:8002", "tier-2"]]);
  // The last answer has an address without a port.
  next.text = textOf(section("intervalSeconds: 60"));
  expect(whole.reload()).toBe(false);
  expect(lines.at(-1)).toContain("has no port; expected ip:port, or relay.discovery.port");
  expect(table()).toEqual([configured, ["192.0.2.2:8002", "tier-2"]]);
  next.text = textOf("");
  expect(whole.reload()).toBe(true);
  expect(table()).toEqual([configured]);
});

it("keeps the discovered destinations if the rest of a reload is rejected", async () => {
  answer.body = '["192.0.2.2"]';
  const { whole, next, textOf, section, table, lines } = await open();
  const good = [configured, ["192.0.2.2:8001", "tier-2"]];
  const unusable =
    '{ name: jito, kind: shredstream, tier: tier-1, shredstream: { url: "http://127.0.0.1:1", keyFile: none.json, regions: [ny] } }';
  const rejected = (discovery: string) =>
    textOf(discovery).replace("sources: [", `sources: [ ${unusable},`);
  for (const discovery of ["", section("port: 8002"), section("port: 8002").replace("/list", "")]) {
    next.text = rejected(discovery);
    expect(whole.reload()).toBe(false);
    expect(lines.at(-1)).toContain("none.json");
    expect(table()).toEqual(good);
  }
  expect(requests).toHaveLength(1);
});

it("refuses a tier that needs a restart, also without destinations yet", async () => {
  const { whole, next, textOf, section, lines } = await open();
  const tiers = "  tiers: [tier-1, tier-2, tier-3]\n";
  next.text = textOf(section("port: 8001").replace("tier-2", "tier-3") + tiers);
  expect(whole.reload()).toBe(false);
  expect(lines.at(-1)).toContain(
    'relay.discovery.tier: the running relay has no tier \\"tier-3\\"; expected tier-1, tier-2, or a restart',
  );
});

it("begins without destinations after a change of the URL", async () => {
  answer.body = '["192.0.2.2"]';
  const { whole, next, textOf, section, table, status } = await open();
  answer.body = '["192.0.2.3:7000"]';
  // The answer of the old URL has an address without a port.
  next.text = textOf(section("intervalSeconds: 60").replace("/list", "/other"));
  expect(whole.reload()).toBe(true);
  expect(table()).toEqual([configured]);
  expect(status()).toMatchObject({ destinations: 0, lastAnswerNs: null });
  await until(() => status().lastAnswerNs !== null, "an answer");
  expect(table()).toEqual([configured, ["192.0.2.3:7000", "tier-2"]]);
});
