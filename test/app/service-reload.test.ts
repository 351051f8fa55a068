// A reload of the whole service: all parts change, or none, and the operator reads the warnings of a start.

import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { Service } from "../../src/app/service.ts";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { ShredwayError } from "../../src/core/errors.ts";
import { createLogger } from "../../src/core/log.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import { RelayService } from "../../src/relay/relay-service.ts";
import { relayOptionsOf } from "../../src/relay/relay-tables.ts";
import { SubscriberService } from "../../src/relay/shredstream/subscriber-service.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { closing } from "../support/closing.ts";

const textOf = (source: string, destinations: string) => `relay:
  listen: "127.0.0.1:0"
  shredVersion: 99
  authentication: off
  allowPrivateDestinations: true
  sources: [ { name: ${source}, address: 127.0.0.1, tier: tier-1 } ]
  destinations: [ ${destinations} ]
shredstream: { listen: "127.0.0.1:0" }
`;
const one = '{ address: "127.0.0.1:9001", tier: tier-1 }';
const two = `${one}, { address: "127.0.0.1:9002", tier: tier-1 }`;

function openService() {
  const state = { text: textOf("a", one), isRejecting: false };
  const readConfig = () => parseConfig(state.text, "a.yaml");
  const config = readConfig();
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const clock = new ManualClock();
  const relay = new RelayService({
    relay: closing(Relay.open({ ...relayOptionsOf(config.relay), prefault: false })),
    config,
    readLeaders: () => {
      throw new Error("expected no leaders");
    },
    readOwnAddresses: () => [],
    log,
    clock,
  });
  if (!config.shredstream) throw new Error("expected the section shredstream");
  const subscribers = new SubscriberService({
    config: config.shredstream,
    socket: undefined,
    certificate: undefined,
    allowPrivate: () => true,
    isOwn: () => false,
    publish: (destinations) => {
      if (state.isRejecting) throw new ShredwayError("value_invalid", "planted");
      relay.setLeasedDestinations(destinations);
    },
    randomBytes,
    clock,
    log,
  });
  const service = closing(new Service({ relay, subscribers, config, readConfig, log }));
  const tables = () => {
    const { sources, destinations } = relay.snapshot();
    return [
      sources.map(({ name }) => name),
      destinations.map(({ address }) => address),
      relay.config.destinations.length,
    ];
  };
  return { service, state, lines, tables };
}

it("changes nothing if the subscribers are rejected", () => {
  const { service, state, lines, tables } = openService();
  const before = tables();
  expect(before).toEqual([["a"], ["127.0.0.1:9001"], 1]);
  state.text = textOf("b", two);
  state.isRejecting = true;
  expect(service.reload()).toBe(false);
  expect(lines.at(-1)).toContain("the previous configuration stays in force: planted");
  expect(tables()).toEqual(before);
  state.isRejecting = false;
  expect(service.reload()).toBe(true);
  expect(tables()).toEqual([["b"], ["127.0.0.1:9001", "127.0.0.1:9002"], 2]);
  // The tables of the last reload are now those to return to.
  state.text = textOf("c", one);
  state.isRejecting = true;
  expect(service.reload()).toBe(false);
  expect(tables()).toEqual([["b"], ["127.0.0.1:9001", "127.0.0.1:9002"], 2]);
});

it("logs a new warning of a reload once, and none that has been known before", () => {
  const { service, state, lines } = openService();
  const warned = (text: string) => lines.filter((line) => line.includes(text)).length;
  state.text = state.text.replace(/sources: .*/, "sources: []");
  expect([service.reload(), service.reload()]).toEqual([true, true]);
  expect(warned("relay.sources is empty: all packets are dropped")).toBe(1);
  expect(warned("AUTHENTICATION IS OFF")).toBe(0);
});
