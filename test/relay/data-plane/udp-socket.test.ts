// The control plane's UDP sockets: sending, receiving, port sharing, their options in the kernel, and
// that all sockets of the product have the same ones.

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { readOwnAddresses } from "../../../src/core/addresses/own-addresses.ts";
import { openUdpSocket } from "../../../src/relay/data-plane/udp-socket.ts";
import { newSockets, omit, udpSockets } from "../../support/network/udp-socket-options.ts";
import { runningSandbox } from "../../support/processes/sandbox.ts";

const hasIpv6 = readOwnAddresses().includes("::1");
const hosts = ["127.0.0.1", ...(hasIpv6 ? ["::1"] : [])];
const before = udpSockets();

const opened: Socket[] = [];
afterEach(async () => {
  for (const socket of opened.splice(0)) {
    const closed = once(socket, "close");
    socket.close();
    await closed;
  }
});

function at(host: string, port = 0): Socket {
  const socket = openUdpSocket({ host, port });
  opened.push(socket);
  return socket;
}

describe("openUdpSocket", () => {
  it.for(hosts)("%s: receives and sends", async (host) => {
    const [one, other] = [at(host), at(host)];
    const arrived = once(other, "message");
    one.send("whole", other.address().port, host);
    const [packet, from] = await arrived;
    expect(String(packet)).toBe("whole");
    expect(from).toMatchObject({ address: host, port: one.address().port });
  });

  it.for(hosts)("%s: shares its port with no other socket", async (host) => {
    const { port } = at(host).address();
    expect(() => at(host, port)).toThrow(
      expect.objectContaining({ code: "EADDRINUSE", message: expect.stringContaining(`:${port}`) }),
    );
    const other = createSocket({ type: host === "::1" ? "udp6" : "udp4", reuseAddr: true });
    opened.push(other);
    const failed = once(other, "error");
    other.bind({ port, address: host, exclusive: true });
    expect(await failed).toMatchObject([{ code: "EADDRINUSE" }]);
  });

  it("names the errno of a foreign address", () => {
    expect(() => at("192.0.2.1")).toThrow(expect.objectContaining({ code: "EADDRNOTAVAIL" }));
    expect(() => at("garbage")).toThrow(/garbage/);
  });

  it("sets the sizes of its buffers", () => {
    const socket = openUdpSocket({
      host: "127.0.0.1",
      port: 0,
      recvBufferSize: 64 << 10,
      sendBufferSize: 32 << 10,
    });
    opened.push(socket);
    expect(socket.getRecvBufferSize()).toBe(128 << 10); // the kernel doubles the requested size
    expect(socket.getSendBufferSize()).toBe(64 << 10);
  });

  it.runIf(hasIpv6)("leaves IPv4 free when it binds IPv6", () => {
    const { port } = at("::").address();
    expect(at("0.0.0.0", port).address().port).toBe(port);
  });
});

describe.skipIf(!before)("every UDP socket ignores ICMP about the path's MTU", () => {
  function states() {
    return newSockets(before ?? [], udpSockets() ?? []);
  }

  it.for(hosts)("%s: opened for Node.js", (host) => {
    at(host);
    const mtuDiscoverIpv6 = host === "::1" ? omit : -1;
    expect(states()).toMatchObject([{ mtuDiscover: omit, mtuDiscoverIpv6, reuseAddress: 0 }]);
  });

  it("the reader sees another setting", () => {
    opened.push(createSocket("udp4").bind(0, "127.0.0.1"));
    expect(states()).not.toMatchObject([{ mtuDiscover: omit }]);
  });

  it("relay, senders, challenges, leaders and their clients of a whole sandbox", async () => {
    await runningSandbox();
    const all = states();
    expect(all.length).toBeGreaterThan(10);
    expect(all.some(({ family }) => family === 4)).toBe(true);
    if (hasIpv6) expect(all.some(({ family }) => family === 6)).toBe(true);
    for (const { family, mtuDiscover, mtuDiscoverIpv6, reuseAddress } of all) {
      const expected = [omit, family === 6 ? omit : -1, 0];
      expect([mtuDiscover, mtuDiscoverIpv6, reuseAddress]).toEqual(expected);
    }
  });
});
