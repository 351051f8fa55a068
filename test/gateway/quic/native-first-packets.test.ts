// The addon's socket of first packets: what it answers, and that JavaScript reads its tokens.

import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { readLongHeader } from "../../../src/gateway/quic/long-header.ts";
import { RetryTokens } from "../../../src/gateway/quic/retry-tokens.ts";
import { native } from "../../../src/relay/data-plane/native.ts";
import {
  adoptUdpSocket,
  openUdpDescriptor,
  openUdpSocket,
  splitUdpPort,
} from "../../../src/relay/data-plane/udp-socket.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { firstPackets } from "../../support/quic/initial-flood.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";

/** A Retry packet: after the ids comes the token, up to the tag of 16 bytes. */
function retryIn(packet: Buffer): { readonly ownId: Uint8Array; readonly token: Uint8Array } {
  const clientBytes = packet[5] ?? 0;
  const ownAt = 7 + clientBytes;
  expect(packet[0]).toBe(0xf0);
  expect(packet[ownAt - 1]).toBe(8);
  return { ownId: packet.subarray(ownAt, ownAt + 8), token: packet.subarray(ownAt + 8, -16) };
}

describeQuic("the socket of first packets", () => {
  it.each(["127.0.0.1", "::1"])("makes tokens that JavaScript reads, for %s", async (host) => {
    const tokens = new RetryTokens(systemClock);
    const bound = openUdpDescriptor(host, 0);
    const descriptor = splitUdpPort(bound);
    const other = adoptUdpSocket(bound, { host });
    const client = openUdpSocket({ host, port: 0 });
    for (const socket of [other, client]) closing({ close: () => void socket.close() });
    const passed: { packet: Buffer; host: string; port: number }[] = [];
    const firstPacketSocket = closing(
      new (native().FirstPackets)(
        descriptor,
        1 << 20,
        tokens.key,
        Buffer.alloc(32),
        (packet, from, port) => {
          passed.push({ packet, host: from, port });
        },
      ),
    );
    const answers: Buffer[] = [];
    client.on("message", (packet) => answers.push(packet));
    const [initial = Buffer.alloc(0)] = firstPackets(1);
    const from = { host, port: client.address().port };
    // The first ones are passed on. The others are answered unless they come slowly.
    await until(() => {
      for (let i = 0; i < 10; i++) client.send(initial, other.address().port, host);
      return answers.length > 0 && passed.length > 0;
    }, "a packet that was passed on, and an answer");
    expect(passed[0]).toEqual({ packet: initial, ...from });
    const [answer = Buffer.alloc(0)] = answers;
    const { ownId, token } = retryIn(answer);
    const original = Buffer.from(readLongHeader(initial)?.dcid ?? []);
    expect(tokens.read(token, from, ownId)).toEqual(original);
    expect(tokens.read(token, { ...from, port: 1 }, ownId)).toBe(undefined);
    expect(firstPacketSocket.counts()).toMatchObject({
      invalidTokens: 0,
      unknown: 0,
      linkLocal: 0,
    });
  });

  it("closes while it passes packets on, and refuses wrong arguments", async () => {
    const host = "127.0.0.1";
    const bound = openUdpDescriptor(host, 0);
    const other = adoptUdpSocket(bound, { host });
    const descriptor = splitUdpPort(bound);
    const client = openUdpSocket({ host, port: 0 });
    for (const socket of [other, client]) closing({ close: () => void socket.close() });
    let calls = 0;
    const { FirstPackets } = native();
    expect(
      () => new FirstPackets(-1, 0, Buffer.alloc(32), Buffer.alloc(32), () => undefined),
    ).toThrow("descriptor");
    expect(
      () => new FirstPackets(descriptor, 0, Buffer.alloc(31), Buffer.alloc(32), () => undefined),
    ).toThrow("32 bytes");
    const socket = new FirstPackets(descriptor, 0, Buffer.alloc(32), Buffer.alloc(32), () => {
      calls++;
      socket.close();
    });
    const [initial = Buffer.alloc(0)] = firstPackets(1);
    const { port } = other.address();
    await until(() => {
      for (let i = 0; i < 4; i++) client.send(initial, port, host);
      return calls > 0;
    }, "a packet");
    socket.close();
    socket.know(Buffer.alloc(8));
    expect(calls).toBe(1);
    expect(socket.counts()).toMatchObject({ received: 0 });
  });
});
