// Sources of kind "shredstream" in a relay: a real block engine, real shreds, and reloads.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Service } from "../../../src/app/service.ts";
import { type Config, parseConfig } from "../../../src/core/configuration/configuration.ts";
import { KeyPair } from "../../../src/core/key-pair.ts";
import { createLogger } from "../../../src/core/log.ts";
import { readKeyPair } from "../../../src/platform/solana/key-file.ts";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { Relay } from "../../../src/relay/data-plane/relay.ts";
import { RelayService } from "../../../src/relay/relay-service.ts";
import { relayOptionsOf } from "../../../src/relay/relay-tables.ts";
import { TraceDelays } from "../../../src/relay/shredstream/trace-delays.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { oneLeaderTraffic } from "../../support/shreds/shred-traffic.ts";
import { writeKeyFile } from "../../support/shredstream/key-file.ts";
import { TestBlockEngine, traceShred } from "../../support/shredstream/test-block-engine.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const traffic = oneLeaderTraffic();

function open(engine: TestBlockEngine, keyFile: string, change = (source: string) => source) {
  const textOf = (sources: string, listen = "127.0.0.1:0") => `relay:
  listen: "${listen}"
  shredVersion: 99
  leaders: { file: leaders.json }
  sources: [ ${sources} ]
`;
  const jito = (region: string) =>
    `{ name: jito, kind: shredstream, tier: tier-1, shredstream: { url: "${engine.url}", keyFile: ${keyFile}, regions: [ ${region} ] } }`;
  const next = { text: textOf(change(jito("ny"))) };
  const readConfig = (): Config => parseConfig(next.text, "/a.yaml");
  const config = readConfig();
  const relay = Relay.open({ ...relayOptionsOf(config.relay), prefault: false });
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const clock = ManualClock.running();
  const service = new RelayService({
    relay,
    config,
    readLeaders: () => traffic.schedule(50n, 100),
    readOwnAddresses: () => [],
    shredstream: { readKey: readKeyPair, random: () => 0 },
    log,
    clock,
  });
  closing(service);
  return {
    service,
    whole: new Service({ relay: service, readConfig, log }),
    relay,
    lines,
    clock,
    next,
    textOf,
    jito,
  };
}

it("subscribes with its own port, accepts shreds of any sender, and follows reloads", async () => {
  const engine = closing(await TestBlockEngine.open());
  const keyFile = join(temporaryFolder(), "jito.json");
  const pair = writeKeyFile(keyFile, 3);
  const { service, whole, relay, lines, next, textOf, jito } = open(engine, keyFile);
  await service.start();
  const stateOf = () => service.shredstream.statuses()[0]?.state;
  await until(() => stateOf() === "subscribed", "a subscription");
  const port = Number((relay.addresses[0] ?? "").split(":")[1]);
  expect(engine.heartbeats).toMatchObject([{ ip: "127.0.0.1", port, regions: ["ny"] }]);

  const sender = closing(PacedSender.open({ to: `127.0.0.1:${port}` }));
  const packets = traffic.completeSlot().packets.map(({ packet }) => packet);
  sender.enqueue(packets, new BigUint64Array(packets.length));
  const counted = () => service.snapshot().sources.find(({ name }) => name === "jito")?.first;
  await until(() => counted() === BigInt(packets.length), "all shreds under the source");
  expect(service.snapshot().verdicts.unknown_source).toBe(0n);

  // An unchanged source keeps its subscription.
  expect(whole.reload()).toBe(true);
  expect(engine.countOf("challenge")).toBe(1);
  next.text = textOf(jito("slc"));
  expect(whole.reload()).toBe(true);
  await until(() => engine.heartbeats.at(-1)?.regions[0] === "slc", "a heartbeat for the region");
  expect(engine.countOf("challenge")).toBe(2);
  await until(() => stateOf() === "subscribed", "the new subscription");

  // An unusable key file leaves everything in force.
  next.text = textOf(jito("tokyo").replace("jito.json", "other.json"));
  expect(whole.reload()).toBe(false);
  expect(lines.at(-1)).toContain("key file");
  expect(stateOf()).toBe("subscribed");

  next.text = textOf("");
  expect(whole.reload()).toBe(true);
  expect(service.shredstream.statuses()).toEqual([]);
  expect(lines.join()).not.toContain(JSON.stringify([...pair.publicKey]).slice(1, -1));
});

it("keeps its port and its subscription if a reload changes relay.listen", async () => {
  const engine = closing(await TestBlockEngine.open());
  const keyFile = join(temporaryFolder(), "jito.json");
  writeKeyFile(keyFile, 3);
  const { service, whole, relay, lines, next, textOf, jito } = open(engine, keyFile);
  await service.start();
  await until(() => engine.heartbeats.length > 0, "a heartbeat");
  next.text = textOf(jito("ny"), "127.0.0.1:20001");
  expect(whole.reload()).toBe(true);
  expect(lines.join()).toContain("relay.listen");
  const sender = closing(PacedSender.open({ to: relay.addresses[0] ?? "" }));
  const packets = traffic.completeSlot().packets.map(({ packet }) => packet);
  sender.enqueue(packets, new BigUint64Array(packets.length));
  await until(() => service.snapshot().received === BigInt(packets.length), "every shred");
  expect(service.snapshot().verdicts.unknown_source).toBe(0n);
  expect(engine.countOf("challenge")).toBe(1);
});

const forged = oneLeaderTraffic(6);
it.each([
  ["forged shreds", () => forged.completeSlot().packets.map(({ packet }) => packet)],
  ["trace packets", () => [traceShred("ny", { seconds: 1, nanos: 0 })]],
])("does not take %s for shreds of the block engine", async (_, packetsOf) => {
  const engine = closing(await TestBlockEngine.open());
  const keyFile = join(temporaryFolder(), "jito.json");
  writeKeyFile(keyFile, 3);
  const { service, relay, clock } = open(engine, keyFile);
  await service.start();
  const statusOf = () => service.shredstream.statuses()[0];
  await until(() => statusOf()?.state === "subscribed", "a subscription");
  const sender = closing(PacedSender.open({ to: relay.addresses[0] ?? "" }));
  let sent = 0;
  // Such packets arrive before each movement of the clock.
  await until(() => {
    if (service.snapshot().received < BigInt(sent)) return false;
    if (sent > 0) clock.move(2000);
    const packets = packetsOf();
    sender.enqueue(packets, new BigUint64Array(packets.length));
    sent += packets.length;
    return (statusOf()?.counts.silence ?? 0) > 0;
  }, "a restart");
});

it.each([
  ["own_use", (source: string) => source.replace("tier-1", "tier-1, forward: false")],
  [
    "first_forwardable",
    (source: string) =>
      `${source}, { name: own, address: 127.0.0.9, tier: tier-1, forward: false }`,
  ],
] as const)(
  "takes shreds with the verdict %s for shreds of the block engine",
  async (verdict, change) => {
    const engine = closing(await TestBlockEngine.open());
    const keyFile = join(temporaryFolder(), "jito.json");
    writeKeyFile(keyFile, 3);
    const { service, relay, clock } = open(engine, keyFile, change);
    await service.start();
    const statusOf = () => service.shredstream.statuses()[0];
    await until(() => statusOf()?.state === "subscribed", "a subscription");
    const to = relay.addresses[0] ?? "";
    const packets = oneLeaderTraffic()
      .completeSlot()
      .packets.map(({ packet }) => packet);
    const countOf = (name: string, of: "own_use" | "first_forwardable") =>
      service.snapshot().sources.find((source) => source.name === name)?.verdicts[of];
    const jito = closing(PacedSender.open({ to }));
    if (verdict === "first_forwardable") {
      const own = closing(PacedSender.open({ to, from: "127.0.0.9:0" }));
      own.enqueue(packets, new BigUint64Array(packets.length));
      await until(() => countOf("own", "own_use") === BigInt(packets.length), "shreds for own use");
    }
    jito.enqueue(packets, new BigUint64Array(packets.length));
    await until(() => countOf("jito", verdict) === BigInt(packets.length), `${verdict} shreds`);
    // Both are due then; the check for silence comes before the heartbeat.
    clock.move(41_000);
    await until(() => engine.heartbeats.length > 1, "another heartbeat");
    expect(statusOf()?.counts).toMatchObject({ silence: 0, authentication: 1 });
  },
);

it("measures the one-way delay of trace packets by region", async () => {
  const engine = closing(await TestBlockEngine.open());
  const keyFile = join(temporaryFolder(), "jito.json");
  writeKeyFile(keyFile, 3);
  const { service, whole, next, textOf, relay } = open(engine, keyFile);
  const sender = closing(PacedSender.open({ to: relay.addresses[0] ?? "" }));
  const send = (region: string, delayMs: number) => {
    const createdMs = Date.now() - delayMs;
    const seconds = Math.floor(createdMs / 1000);
    const nanos = Math.floor((createdMs % 1000) * 1e6);
    sender.enqueue([traceShred(region, { seconds, nanos })], new BigUint64Array(1));
  };
  send("frankfurt", 500);
  send("ny", -2000);
  send("slc", 8_000_000); // a wrong clock or a forgery
  await until(() => service.snapshot().verdicts.trace === 3n, "trace packets");
  service.traces.update();
  const delays = service.traces.delays();
  expect(delays.map(({ source, region }) => [source, region])).toEqual([
    ["jito", "frankfurt"],
    ["jito", "ny"],
  ]);
  expect(delays[0]?.lastSeconds).toBeGreaterThanOrEqual(0.5);
  expect(delays[1]?.lastSeconds).toBeLessThan(0);
  expect(delays[0]?.histogram.count).toBe(1);
  next.text = textOf("");
  expect(whole.reload()).toBe(true);
  expect(service.traces.delays()).toEqual([]); // the source is removed
});

it("keeps the number of regions of each source bounded", () => {
  const traceOf = (source: string, region: string) => ({
    source,
    receivedNs: 1_000_000_000n,
    packet: traceShred(region, { seconds: 0, nanos: 999_000_000 }),
  });
  const flood = Array.from({ length: 100 }, (_, i) => traceOf("jito", `region-${i}`));
  const traces = [...flood, traceOf("other", "region-0")];
  const clock = new ManualClock();
  const delays = closing(new TraceDelays(() => traces, clock));
  delays.update();
  expect(delays.delays()).toHaveLength(33);
  expect(delays.delays().at(-1)).toMatchObject({ source: "other", region: "region-0" });
  expect(delays.delays()[0]?.lastSeconds).toBeCloseTo(0.001);
});

it("refuses a key file that others can read, and quotes none of it", () => {
  const keyFile = join(temporaryFolder(), "jito.json");
  const bytes = new Uint8Array(32).fill(77);
  writeFileSync(keyFile, JSON.stringify([...bytes, ...new KeyPair(bytes).publicKey]), {
    mode: 0o644,
  });
  const engine = { url: "http://127.0.0.1:1" };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only the URL is used
  const start = () => open(engine as TestBlockEngine, keyFile);
  expect(start).toThrow(/expected mode 0600 or stricter, got 0644; run: chmod 600/);
  expect(start).not.toThrow(/77/);
});
