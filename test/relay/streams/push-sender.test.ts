// Sockets of transaction pushes: both families, refusals, errors of the kernel, and what arrives at them.

import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { PushSender } from "../../../src/relay/streams/push-sender.ts";
import { closing } from "../../support/closing.ts";
import { UdpReceiver, until } from "../../support/network/udp-receiver.ts";

const warnings: string[] = [];

function senderFrom(from = "127.0.0.1:0", fromIpv6 = "[::1]:0"): PushSender {
  warnings.length = 0;
  const log = { warn: (text: unknown) => void warnings.push(String(text)) };
  return closing(new PushSender({ from, fromIpv6, clock: systemClock, log }));
}

it("sends at once over both families, each from one port", async () => {
  const sender = senderFrom();
  const [ipv4, ipv6] = sender.addresses;
  for (const [host, from] of [
    ["127.0.0.1", ipv4],
    ["::1", ipv6],
  ] as const) {
    const receiver = closing(await UdpReceiver.open(host));
    const target = sender.to(receiver.address);
    const results: (Error | null)[] = [];
    const sent = Array.from({ length: 3 }, (_, i) =>
      target.send(Uint8Array.of(i), (error) => results.push(error)),
    );
    expect(sent).toEqual([true, true, true]);
    await until(() => receiver.packets.length === 3, "three datagrams");
    expect(receiver.packets.map((packet) => [...packet])).toEqual([[0], [1], [2]]);
    expect(results).toEqual([null, null, null]);
    expect(from).toMatch(/:\d+$/);
  }
});

it("reports what the kernel refuses to the push that sent it, and warns once a minute", async () => {
  const sender = senderFrom();
  const target = sender.to("127.0.0.1:9001");
  const results: (Error | null)[] = [];
  // Longer than every UDP datagram.
  for (let i = 0; i < 3; i++) target.send(new Uint8Array(70_000), (error) => results.push(error));
  await until(() => results.length === 3, "three results");
  expect(results.map((error) => error?.message.includes("EMSGSIZE"))).toEqual([true, true, true]);
  expect(warnings).toEqual([
    expect.stringMatching(
      /^streams: a transaction could not be sent to 127.0.0.1:9001: .*EMSGSIZE/,
    ),
  ]);
});

it("receives nothing at its ports: the kernel drops all of it", async () => {
  const sender = senderFrom();
  const [address = ""] = sender.addresses;
  const port = Number(address.split(":")[1]);
  const other = createSocket("udp4");
  closing({ close: () => void other.close() });
  for (let i = 0; i < 100; i++) {
    await new Promise((resolve) => other.send("x", port, "127.0.0.1", resolve));
  }
  const ofPort = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const drops = () => {
    const rows = readFileSync("/proc/net/udp", "utf8")
      .split("\n")
      .map((row) => row.trim().split(/ +/));
    return Number(rows.find(([, local]) => local?.endsWith(ofPort))?.at(-1));
  };
  await until(() => drops() === 100, "100 drops at its port");
});

it("refuses addresses that it cannot use, with the key of the configuration", async () => {
  expect(() => senderFrom("[::1]:0")).toThrow(
    "streams.push.from: expected an IPv4 address, got [::1]:0",
  );
  expect(() => senderFrom("127.0.0.1:0", "127.0.0.1:0")).toThrow(
    "streams.push.fromIpv6: expected an IPv6 address, got 127.0.0.1:0",
  );
  const occupied = closing(await UdpReceiver.open());
  expect(() => senderFrom(occupied.address)).toThrow(
    `streams.push.from: cannot send from ${occupied.address}: `,
  );
  expect(() => senderFrom("192.0.2.77:0")).toThrow("no interface of this machine has this address");
});

it("refuses further destinations after it was closed", () => {
  const sender = senderFrom();
  sender.close();
  expect(() => sender.to("127.0.0.1:9001")).toThrow(
    "destination 127.0.0.1:9001 cannot be reached: this machine has no ipv4 address",
  );
});
