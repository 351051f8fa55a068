// The UDP ports of a configuration, with their keys and real sockets.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { readConfigFacts } from "../../../src/platform/doctor/system.ts";
import { closing } from "../../support/closing.ts";
import { freeUdpPort } from "../../support/network/free-ports.ts";

const http = `http: { listen: "127.0.0.1:0" }
tips: { addresses: ["11111111111111111111111111111112"] }
`;

/** A UDP port of loopback in use. */
async function usePort(): Promise<string> {
  const socket = createSocket("udp4");
  closing({ close: () => void socket.close() });
  socket.bind(await freeUdpPort(), "127.0.0.1");
  await once(socket, "listening");
  return `127.0.0.1:${socket.address().port}`;
}

function portsOf(text: string) {
  const relay = 'relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: off }\n';
  return readConfigFacts("/etc/a.yaml", parseConfig(relay + text, "/etc/a.yaml")).ports;
}

describe("readConfigFacts", () => {
  it("checks the ports of ownership challenges, if the service opens them", async () => {
    const address = await usePort();
    const relay = { key: "relay.listen", address: "127.0.0.1:0", error: null };
    const delivery = `delivery: { proof: { listen: "${address}" } }\n`;
    expect(portsOf(http + delivery)).toEqual([
      relay,
      expect.objectContaining({
        key: "delivery.proof.listen",
        address,
        error: expect.stringContaining("in use"),
      }),
    ]);
    expect(portsOf(delivery)).toEqual([relay]);
    expect(portsOf(http)).toEqual([relay]);
    expect(portsOf(`${http}delivery: { proof: { listenIpv6: "[::1]:1" } }`)[1]?.key).toBe(
      "delivery.proof.listenIpv6",
    );
  });

  it("checks the addresses that send transaction pushes, if the configuration chooses them", async () => {
    const address = await usePort();
    const push = (text: string) => `${http}streams: { listen: "127.0.0.1:0", push: { ${text} } }`;
    expect(portsOf(push("")).map(({ key }) => key)).toEqual(["relay.listen"]);
    expect(portsOf(push(`from: "${address}", fromIpv6: "[::1]:0"`)).slice(1)).toEqual([
      expect.objectContaining({
        key: "streams.push.from",
        address,
        error: expect.stringContaining("in use"),
      }),
      { key: "streams.push.fromIpv6", address: "[::1]:0", error: null },
    ]);
    expect(portsOf(push('from: "192.0.2.1:0"'))[1]).toEqual({
      key: "streams.push.from",
      address: "192.0.2.1:0",
      error: expect.stringContaining("no interface of this machine has this address"),
      ownAddresses: expect.arrayContaining(["127.0.0.1"]),
    });
  });

  it("names the key of each listener for QUIC", async () => {
    const address = await usePort();
    const quic = `quic: { listen: "127.0.0.1:0", protectedListen: "${address}" }`;
    const ports = portsOf(`${http}${quic}`);
    expect(ports.map(({ key, error }) => [key, error === null])).toEqual([
      ["relay.listen", true],
      ["quic.listen", true],
      ["quic.protectedListen", false],
    ]);
  });
});
