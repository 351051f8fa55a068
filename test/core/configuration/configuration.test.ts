import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  type Config,
  formatConfig,
  loadConfig,
  parseConfig,
} from "../../../src/core/configuration/configuration.ts";
import { configurationExample } from "../../../src/core/configuration/document.ts";
import type { RelayOptions } from "../../../src/relay/data-plane/relay-options.ts";
import { relayOptionsOf } from "../../../src/relay/relay-tables.ts";
import { least, messageOf, path } from "./config-texts.ts";

describe("good configurations", () => {
  it("fills in every default", () => {
    expect(parseConfig(least, path)).toEqual({
      relay: {
        listen: ["0.0.0.0:20000"],
        workers: 1,
        tiers: ["tier-1", "tier-2"],
        authentication: "leader-schedule",
        shredVersion: 50093,
        leaders: { file: "/etc/shredway/leaders.json" },
        sources: [],
        destinations: [],
        allowPrivateDestinations: false,
        receive: {
          mode: "socket",
          bufferBytes: 67_108_864,
          wait: "block",
          spinMicroseconds: 150,
          busyPollMicroseconds: 0,
        },
        send: { bufferBytes: 16_777_216, gso: true, ttl: 64, dscp: 0 },
        transmit: "auto",
        failedChecksPerSecond: 1000,
        keepRetransmitterSignatures: false,
        senderThreads: "auto",
        lockMemory: false,
        deshred: true,
      },
      operations: { allow: ["127.0.0.0/8", "::1"], destinationSeries: 256 },
      data: { directory: "/etc/shredway/data", historyHours: 24 },
      tips: {
        addresses: [],
        shredAddresses: [],
        minimumLamports: 10_000,
        minimumLamportsByMethod: {},
      },
      tiers: {},
      delivery: {
        regions: ["frankfurt", "new-york"],
        region: "frankfurt",
        destinationsPerAccount: 2,
        denied: [],
        proof: { listen: "0.0.0.0:0", listenIpv6: "[::]:0", hours: 24 },
      },
      regions: [],
      gateway: {
        requestsPerSecond: 50,
        burst: 100,
        openMax: 50_000,
        openPerAccountMax: 10_000,
        checkThreads: 2,
        warmUpSubmissions: 4000,
        checkQueueMax: 2048,
        fastPath: true,
        resendMs: 2000,
        partnerUnitLamports: 10,
        readMethods: { add: [], remove: [] },
        denyLeaders: [],
        dontFrontPrefixes: ["jitodontfront", "dontbund1e"],
      },
      nonces: { pollMs: 400 },
      portal: { enabled: true, sessionHours: 12 },
      tracker: { refreshMinutes: 60, denied: [] },
      routes: [],
    });
  });

  it("accepts the example of the documentation, which the relay accepts unchanged", () => {
    const config = parseConfig(configurationExample(), path);
    const options: RelayOptions = relayOptionsOf(config.relay);
    expect(options.workers).toBe(2);
    expect(config.relay.sources[0]).toEqual({
      name: "fra-a",
      address: "10.0.0.0/24",
      tier: "tier-1",
    });
  });

  it("resolves relative paths from the folder of the file", () => {
    const { nonces, routes, data } = parseConfig(
      `${least}solana: { rpc: "http://127.0.0.1:8899" }
data: { directory: here }
nonces: { fundingKeyFile: ../keys/funding.json, authorityKeyFile: /keys/authority.json }
routes: [{ name: direct, kind: tpu, identityFile: identity.json }]
`,
      path,
    );
    expect(data.directory).toBe("/etc/shredway/here");
    expect(nonces.fundingKeyFile).toBe("/etc/keys/funding.json");
    expect(nonces.authorityKeyFile).toBe("/keys/authority.json");
    expect(routes[0]?.identityFile).toBe("/etc/shredway/identity.json");
  });

  it("leaves the port of a source of kind shredstream to the relay, and resolves its key file", () => {
    // The running relay may listen on another port than a reloaded file says.
    const sources = `relay:
  shredVersion: 1
  leaders: { file: leaders.json }
  listen: "0.0.0.0:20001"
  sources:
    - name: jito
      kind: shredstream
      tier: tier-1
      shredstream: { url: "https://engine.example", keyFile: jito.json, regions: [ny] }
`;
    expect(parseConfig(sources, path).relay.sources[0]).toEqual({
      name: "jito",
      kind: "shredstream",
      tier: "tier-1",
      shredstream: {
        url: "https://engine.example",
        keyFile: "/etc/shredway/jito.json",
        regions: ["ny"],
      },
    });
  });

  it("masks the URL of discovered destinations", () => {
    const url = "https://someone:hidden@inventory.example/hidden?key=hidden";
    const text = `${least}  discovery: { url: "${url}", tier: tier-1 }\n`;
    const shown = formatConfig(parseConfig(text, path));
    expect(shown).toContain("https://inventory.example/masked");
    expect(shown).not.toContain("hidden");
  });

  it("accepts the options of a full configuration", () => {
    const text = `
relay:
  listen: ["0.0.0.0:20000", "[::]:20001"]
  workers: 2
  cpus: [2, 3]
  tiers: [gold, silver, bronze]
  authentication: off
  shredVersion: 1
  allowPrivateDestinations: true
  sources:
    - { name: a, address: 10.0.0.0/8, tier: gold }
    - { name: b, address: 10.1.0.0/16, tier: silver }
    - { name: c, port: 20001, tier: bronze }
    - { name: d, address: 10.0.0.0/8, port: 20001, tier: bronze }
  destinations:
    - { address: "127.0.0.1:9000", tier: gold }
    - { address: "127.0.0.1:9001", tier: gold, name: second }
    - { address: "[fd00::1]:9001", tier: bronze }
  receive: { wait: spin }
  send: { gso: false, source: 10.0.0.9 }
`;
    expect(messageOf(text)).toBe("accepted");
    // YAML 1.2: `off` is a text.
    expect(parseConfig(text, path).relay.authentication).toBe("off");
  });

  it("writes the effective configuration so that it reads back the same", () => {
    for (const text of [least, configurationExample()]) {
      const config: Config = parseConfig(text, path);
      const printed = formatConfig(config, "fra-1");
      expect(formatConfig(parseConfig(printed, "/elsewhere/x.yaml"), "other")).toBe(printed);
    }
  });
});

describe("files", () => {
  it("loads a file, and names a missing one", () => {
    const folder = mkdtempSync(join(tmpdir(), "shredway-"));
    try {
      const file = join(folder, "shredway.yaml");
      expect(() => loadConfig(file)).toThrow(`${file}: cannot be read`);
      writeFileSync(file, least);
      expect(loadConfig(file).relay.leaders?.file).toBe(join(folder, "leaders.json"));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("accepts a node instead of a leader file, and never prints the node's key", () => {
    const relay = "relay: { shredVersion: 1 }";
    const url = "https://user:hidden@rpc.example.com/v1/hidden?api-key=hidden";
    const config = parseConfig(`solana: { rpc: "${url}" }\n${relay}\n`, path);
    expect(config.solana?.rpc).toBe(url);
    expect(config.relay.leaders).toBeUndefined();
    expect(formatConfig(config)).toContain("rpc: https://rpc.example.com/masked");
    expect(formatConfig(config)).not.toContain("hidden");
    expect(() => parseConfig(`solana: { rpc: "ftp://hidden" }\n${relay}\n`, path)).toThrow(
      /shredway.yaml:1: solana.rpc: URL of ftp; expected a URL of http or https, such as https:\/\/HOST\/PATH/,
    );
    expect(() => parseConfig(`${relay}\n`, path)).toThrow(
      /leaders: missing leader schedule; expected leaders.file or solana.rpc/,
    );
  });
});
