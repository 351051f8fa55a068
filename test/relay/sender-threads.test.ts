import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import { RelayService } from "../../src/relay/relay-service.ts";
import { relayOptionsOf } from "../../src/relay/relay-tables.ts";
import {
  chooseSenderThreads,
  senderThreadsText,
  type spareCpus,
} from "../../src/relay/sender-threads.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";

const facts = (cpus: number, change: Partial<Parameters<typeof spareCpus>[1]> = {}) => ({
  allowed: Array.from({ length: cpus }, (_, cpu) => cpu),
  isolated: [],
  hasQuota: false,
  workerCpus: [],
  ...change,
});
const relayConfig = (text: string) =>
  parseConfig(`relay: { shredVersion: 1, authentication: off, ${text} }`, "a.yaml").relay;

describe("chooseSenderThreads", () => {
  it.each([
    ["two CPUs", 1, facts(2), 0],
    ["three CPUs: the worker and two others", 1, facts(3), 0],
    ["four CPUs", 1, facts(4), 1],
    ["many CPUs", 1, facts(64), 2],
    ["too few for each of two workers", 2, facts(5), 0],
    ["one for each of two workers", 2, facts(6), 1],
    ["isolated CPUs do not count", 1, facts(6, { isolated: [4, 5] }), 1],
    ["workers on isolated CPUs", 1, facts(5, { isolated: [4], workerCpus: [4] }), 2],
    ["a quota", 1, facts(64, { hasQuota: true }), 0],
  ])("auto, %s", (_, workers, machine, expected) => {
    const { perWorker } = chooseSenderThreads({ senderThreads: "auto", workers }, machine);
    expect(perWorker).toBe(expected);
  });

  it("leaves two CPUs to the other threads on every machine", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 1, max: 256 }),
        (workers, cpus) => {
          const { perWorker } = chooseSenderThreads(
            { senderThreads: "auto", workers },
            facts(cpus),
          );
          if (perWorker > 0) expect(workers * (1 + perWorker) + 2).toBeLessThanOrEqual(cpus);
        },
      ),
    );
  });

  it("follows a number on every machine", () => {
    for (const senderThreads of [0, 3]) {
      expect(chooseSenderThreads({ senderThreads, workers: 1 }, facts(2))).toEqual({
        perWorker: senderThreads,
        reason: `relay.senderThreads: ${senderThreads}`,
      });
    }
  });
});

describe("senderThreadsText", () => {
  const auto = { senderThreads: "auto", workers: 1 } as const;

  it.each([
    [
      2,
      8,
      "relay: 2 sender threads per worker (relay.senderThreads: auto, 7 CPUs beside the workers)",
    ],
    [
      1,
      4,
      "relay: 1 sender thread per worker (relay.senderThreads: auto, 3 CPUs beside the workers)",
    ],
    [0, 8, "relay: no sender threads (clones or AF_XDP are in use)"],
    [
      0,
      2,
      "relay: no sender threads (relay.senderThreads: auto would need 3 CPUs beside the worker, got 1)",
    ],
  ])("%i in use on %i CPUs", (inUse, cpus, text) => {
    expect(senderThreadsText(inUse, chooseSenderThreads(auto, facts(cpus)))).toBe(text);
  });

  it("names a configured 0", () => {
    const choice = chooseSenderThreads({ senderThreads: 0, workers: 1 }, facts(8));
    expect(senderThreadsText(0, choice)).toBe("relay: no sender threads (relay.senderThreads: 0)");
  });
});

describe("relay.senderThreads", () => {
  it("is auto by default, which the relay options leave open", () => {
    expect(relayConfig("").senderThreads).toBe("auto");
    expect(relayOptionsOf(relayConfig(""))).not.toHaveProperty("senderThreads");
    expect(relayOptionsOf(relayConfig("senderThreads: 0")).senderThreads).toBe(0);
    expect(relayOptionsOf(relayConfig("senderThreads: 15")).senderThreads).toBe(15);
  });

  it.each(["16", "-1", "1.5", "many", "[1]"])("refuses %s", (value) => {
    expect(() => relayConfig(`senderThreads: ${value}`)).toThrow(
      /relay\.senderThreads: invalid value .+; expected auto or an integer 0 to 15$/,
    );
  });
});

describe("RelayService", () => {
  it("logs once how many sender threads its relay has, and why", async () => {
    const config = parseConfig(
      'relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: off, senderThreads: 2, transmit: socket }',
      "a.yaml",
    );
    const relay = Relay.open({ ...relayOptionsOf(config.relay), prefault: false });
    expect(relay.senderThreads).toBe(2);
    const lines: string[] = [];
    const service = new RelayService({
      relay,
      config,
      readLeaders: () => {
        throw new Error("not used");
      },
      readOwnAddresses: () => [],
      senderThreads: chooseSenderThreads(config.relay, facts(2)),
      log: createLogger({ stream: { write: (line) => void lines.push(line) } }),
      clock: new ManualClock(),
    });
    await service.start();
    service.close();
    expect(lines.filter((line) => line.includes(" per worker"))).toEqual([
      expect.stringContaining("relay: 2 sender threads per worker (relay.senderThreads: 2)"),
    ]);
  });
});
