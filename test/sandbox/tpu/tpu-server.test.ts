// A leader's port, with a bare QUIC client that can violate every rule.

import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { credentialsOf } from "../../../src/core/quic/certificate.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import {
  badCertificateCode,
  type CloseReason,
  closeCodes,
  closeReasons,
  type TpuLimits,
} from "../../../src/sandbox/tpu/limits.ts";
import type { TpuPeer } from "../../../src/sandbox/tpu/peer-connection.ts";
import { TpuServer, type TpuServerOptions } from "../../../src/sandbox/tpu/tpu-server.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { needQuiche, QuicClient, quiche } from "../../support/quic/quic-client.ts";
import { selfSignedCertificate, selfSignedKey } from "../../support/quic/self-signed.ts";
import { restart } from "../../support/quic/tpu-restart.ts";

const gateway = SandboxKeyPair.named(1, "gateway");
const rich = SandboxKeyPair.named(1, "whale");
const stakes = {
  total: 1_000_000n,
  of: (identity: string) => (identity === rich.address ? 500_000n : 0n),
};

/** Long, because the machine may be busy. */
const patience = { handshakeMs: 30_000, streamMs: 30_000, idleMs: 60_000 };

interface Arrived {
  readonly wire: Buffer;
  readonly peer: TpuPeer;
}

class Leader {
  readonly arrived: Arrived[] = [];
  readonly server: TpuServer;

  static async open(
    limits: Partial<TpuLimits> = {},
    options: Partial<TpuServerOptions> = {},
  ): Promise<Leader> {
    const arrived: Arrived[] = [];
    const server = await TpuServer.open({
      quiche: needQuiche(),
      clock: systemClock,
      stakes,
      limits: { ...patience, connectionsPerAddressPerMinute: 1000, ...limits },
      onTransaction: (wire, peer) => arrived.push({ wire: Buffer.from(wire), peer }),
      ...options,
    });
    closing(server);
    return new Leader(server, arrived);
  }

  private constructor(server: TpuServer, arrived: Arrived[]) {
    this.server = server;
    this.arrived = arrived;
  }

  connect(pair: SandboxKeyPair = gateway): Promise<QuicClient> {
    return QuicClient.open(this.server.address, {
      credentials: credentialsOf(pair.seed),
      idleTimeoutMs: patience.idleMs,
    });
  }

  async connected(pair: SandboxKeyPair = gateway): Promise<QuicClient> {
    const before = this.server.counts.connections;
    const client = await this.connect(pair);
    await until(() => this.server.counts.connections > before, "a connection");
    return client;
  }

  has(count: number): Promise<void> {
    return until(() => this.arrived.length >= count, `${count} transactions`);
  }
}

describe.skipIf(!quiche)("a leader's port over QUIC", () => {
  it("receives a transaction with the sender's identity", async () => {
    const leader = await Leader.open();
    const client = await leader.connected();
    const wire = randomBytes(200);
    client.send(wire);
    await leader.has(1);
    expect(leader.arrived).toEqual([
      { wire, peer: { identity: gateway.address, isStaked: false } },
    ]);
    const staked = await leader.connected(rich);
    staked.send(wire);
    await leader.has(2);
    expect(leader.arrived[1]?.peer).toEqual({ identity: rich.address, isStaked: true });
    expect(leader.server.connections).toBe(2);
  });

  it("assembles transactions of every size, and rejects longer ones", async () => {
    const leader = await Leader.open();
    const client = await leader.connected();
    const wires = [1, 1199, 1232, 1233, 4095, 4096].map((size) => randomBytes(size));
    for (const wire of wires) client.send(wire);
    await leader.has(wires.length);
    const bySize = leader.arrived.map(({ wire }) => wire).toSorted((a, b) => a.length - b.length);
    expect(bySize).toEqual(wires);
    client.send(randomBytes(4097));
    expect(await client.ended).toEqual({
      by: "peer",
      isApp: true,
      code: closeCodes.invalid_stream,
      reason: "invalid_stream",
    });
    expect(leader.arrived.length).toBe(wires.length);
    expect(leader.server.counts.closed.invalid_stream).toBe(1);
  });

  it("assembles transactions that arrive in parts, and counts all of them", async () => {
    const leader = await Leader.open();
    const client = await leader.connected();
    const wire = randomBytes(4096);
    const id = client.begin(wire.subarray(0, 1000));
    const other = randomBytes(100);
    client.send(other);
    await leader.has(1);
    client.finish(id, wire.subarray(1000));
    await leader.has(2);
    expect(leader.arrived.map((one) => one.wire)).toEqual([other, wire]);
    const long = client.begin(randomBytes(1000));
    client.send(other);
    await leader.has(3);
    client.finish(long, randomBytes(3097));
    expect(await client.ended).toMatchObject({ by: "peer", code: closeCodes.invalid_stream });
  });

  it("recognizes a repeated first packet", async () => {
    const limits = { connectionsPerAddressPerMinute: 1 };
    const leader = await Leader.open(limits, { retries: false });
    const sent: Buffer[] = [];
    const client = await QuicClient.open(leader.server.address, {
      onTransmit: (packet) => sent.push(packet),
    });
    const [first] = sent;
    if (!first) throw new Error("expected a first packet, got none");
    client.transmit(first);
    client.send(randomBytes(100));
    await leader.has(1);
    expect(leader.server.counts.connectionsIgnored).toBe(0);
  });

  it("validates the sender's address before it stores any state", async () => {
    const leader = await Leader.open();
    const client = await leader.connected();
    expect(leader.server.counts.retries).toBe(1);
    const [retry] = client.packets;
    expect(((retry?.[0] ?? 0) >> 4) & 3).toBe(3); // long header, type Retry
    const open = await Leader.open({}, { retries: false });
    const direct = await open.connected();
    expect(open.server.counts.retries).toBe(0);
    direct.send(randomBytes(100));
    await open.has(1);
  });

  it("rejects peers without a certificate, or with a key of another type", async () => {
    const leader = await Leader.open();
    const { address } = leader.server;
    const none = await QuicClient.open(address, { credentials: null });
    expect(await none.ended).toMatchObject({ by: "peer", isApp: false, code: 0x100 + 116 });
    const credentials = { keyPem: selfSignedKey, certificatePem: selfSignedCertificate };
    const other = await QuicClient.open(address, { credentials });
    other.send(randomBytes(100));
    expect(await other.ended).toMatchObject({ by: "peer", isApp: false, code: badCertificateCode });
    await until(() => leader.server.counts.certificatesRefused === 2, "two refusals");
    expect(leader.arrived).toEqual([]);
    expect(leader.server.connections).toBe(0);
  });

  it("rejects another protocol", async () => {
    const leader = await Leader.open();
    const client = await QuicClient.open(leader.server.address, { protocol: "h3" });
    expect(await client.ended).toMatchObject({ by: "peer", isApp: false, code: 0x100 + 120 });
    await until(() => leader.server.counts.handshakesFailed === 1, "a failure");
  });

  it("offers a known version to peers that request another", async () => {
    const leader = await Leader.open();
    const client = await QuicClient.open(leader.server.address);
    const initial = Buffer.alloc(1200);
    initial.set([0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, ...randomBytes(8), 8, ...randomBytes(8)]);
    client.transmit(initial);
    const isNegotiation = (packet: Buffer): boolean => packet.readUInt32BE(1) === 0;
    await until(() => client.packets.some(isNegotiation), "a version negotiation");
  });

  it("does not answer packets that are not QUIC", async () => {
    const leader = await Leader.open();
    const client = await leader.connected();
    const before = leader.server.counts.packetsUnknown;
    const strange = [
      Buffer.of(),
      Buffer.of(0x80),
      Buffer.of(0xc0, 0, 0, 0, 1, 21),
      Buffer.alloc(1200),
      Buffer.alloc(1200, 0xff),
      Buffer.concat([Buffer.of(0x40), randomBytes(60)]),
    ];
    for (const packet of strange) client.transmit(packet);
    await until(
      () => leader.server.counts.packetsUnknown >= before + strange.length - 1,
      "strange packets",
    );
    client.send(randomBytes(100));
    await leader.has(1);
  });
});

describe.skipIf(!quiche)("a leader's port with hostile packets", () => {
  it("survives, and continues to serve other peers", async () => {
    const leader = await Leader.open();
    const client = await leader.connected();
    const real: Buffer[] = [];
    const recorded = await QuicClient.open(leader.server.address, {
      onTransmit: (packet) => real.push(packet),
    });
    await recorded.established;
    for (let i = 0; i < 5; i++) recorded.send(randomBytes(1500));
    await leader.has(5);
    const random = new SeededRandom(7);
    const below = (max: number): number => Math.floor(random.share() * max);
    let sent = 0;
    const before = leader.server.counts.packets;
    for (let round = 0; round < 2000; round++) {
      const packet = Buffer.from(real[below(real.length)] ?? []);
      for (let flips = below(4); flips >= 0; flips--) packet[below(60)] = below(256);
      client.transmit(round % 5 === 0 ? packet.subarray(0, below(packet.length)) : packet);
      sent++;
      // At most the capacity of the socket.
      if (sent % 50 === 0) {
        await until(() => leader.server.counts.packets >= before + sent - 50, "their arrival");
      }
    }
    client.send(Buffer.from("well-behaved"));
    await until(
      () => leader.arrived.some(({ wire }) => wire.toString() === "well-behaved"),
      "a transaction among them",
    );
  });
});

describe.skipIf(!quiche)("limits of a leader", () => {
  const closedAs = (reason: CloseReason) => ({
    by: "peer",
    isApp: true,
    code: closeCodes[reason],
    reason,
  });

  it("closes the connection above a peer's limit, and admits other peers", async () => {
    const leader = await Leader.open({ connectionsPerPeer: 2 });
    const first = await leader.connected();
    await leader.connected();
    const third = await leader.connect();
    expect(await third.ended).toEqual(closedAs("too_many"));
    await leader.connected(rich);
    expect(leader.server.connections).toBe(3);
    await first.close();
    await until(() => leader.server.connections === 2, "room");
    await leader.connected();
    expect(leader.server.counts.closed.too_many).toBe(1);
  });

  it("drops the least recently used connection if the table is full", async () => {
    const leader = await Leader.open({ unstakedConnectionsMax: 2 });
    const first = await leader.connected(SandboxKeyPair.named(1, "a"));
    const second = await leader.connected(SandboxKeyPair.named(1, "b"));
    first.send(randomBytes(100));
    await leader.has(1);
    await leader.connected(SandboxKeyPair.named(1, "c"));
    expect(await second.ended).toEqual(closedAs("dropped"));
    expect(leader.server.connections).toBe(2);
    // Staked peers have their own limit.
    await leader.connected(rich);
    expect(leader.server.connections).toBe(3);
  });

  it("disallows unstaked peers if their limit is 0", async () => {
    const leader = await Leader.open({ unstakedConnectionsMax: 0 });
    const client = await leader.connect();
    expect(await client.ended).toEqual(closedAs("disallowed"));
    await leader.connected(rich);
  });

  it("ignores an address with too many connections until a minute has passed", async () => {
    const clock = ManualClock.running();
    const leader = await Leader.open({ connectionsPerAddressPerMinute: 2 }, { clock });
    for (let i = 0; i < 2; i++) await (await leader.connected()).close();
    const ignored = await leader.connect();
    await until(() => leader.server.counts.connectionsIgnored > 0, "one that is ignored");
    expect(ignored.quic.isEstablished()).toBe(false);
    await ignored.close();
    clock.move(60_000);
    await leader.connected();
  });

  it("accepts its own tokens, for their address, for a limited time", async () => {
    const clock = ManualClock.running();
    const leader = await Leader.open({}, { clock });
    leader.server.faults.handshakeDelayMs = 60_000;
    const client = await leader.connect(); // its first packet waits
    await until(() => leader.server.counts.packets > 0, "a packet");
    leader.server.faults.handshakeDelayMs = 0;
    clock.move(60_000); // now it receives its retry, and answers it
    await client.established;
    await until(() => leader.server.counts.connections === 1, "a connection");
    leader.server.faults.handshakeDelayMs = 20_000; // longer than the validity of a token
    await leader.connect();
    const isRefused = (): boolean => leader.server.counts.tokensRefused > 0;
    await until(() => {
      clock.move(20_000);
      return isRefused();
    }, "a token that is too old");
    expect(leader.server.counts.connections).toBe(1);
  });

  it("returns stream credit slowly to unstaked peers, and immediately to staked ones", async () => {
    const clock = new ManualClock();
    const limits = { streamsMax: 10, streamsPerWindow: 1000, unstakedStreamsPerWindow: 3 };
    const leader = await Leader.open(limits, { clock });
    const staked = await leader.connected(rich);
    for (let i = 0; i < 400; i++) staked.send(randomBytes(50));
    await leader.has(400); // 80 % of all, by half of the stake
    const client = await leader.connected();
    expect(client.credit).toBe(10);
    for (let i = 0; i < 100; i++) client.send(randomBytes(50));
    for (let window = 1; window <= 3; window++) {
      // The number of concurrent streams, and the number that was read.
      await until(() => client.streams === 10 + 3 * window, "its credit");
      expect(leader.arrived.length).toBe(400 + 3 * window);
      await clock.advance(100);
    }
    staked.send(randomBytes(50));
    await leader.has(413);
  });

  it("ends unfinished streams, and keeps their connection open", async () => {
    const leader = await Leader.open({ streamMs: 50, streamsMax: 3 });
    const client = await leader.connected();
    client.begin(randomBytes(10));
    client.begin(randomBytes(10));
    await until(() => leader.server.counts.streamsDropped === 2, "the end of both");
    client.send(randomBytes(100));
    await leader.has(1);
    expect(leader.server.connections).toBe(1);
  });

  it("ends a handshake that takes too long", async () => {
    const leader = await Leader.open({ handshakeMs: 50 }, { retries: false });
    const client = await QuicClient.open(leader.server.address);
    // Only its first packet: the following ones are not sent.
    client.quic.send = () => null;
    await until(() => leader.server.counts.handshakesFailed === 1, "the end of its handshake");
    expect(leader.server.connections).toBe(0);
  });

  it("closes idle connections", async () => {
    const leader = await Leader.open({ idleMs: 2000 });
    const client = await leader.connected();
    await until(() => leader.server.connections === 0, "the end of silence");
    expect((await client.ended).by).toBe("time");
  });
});

describe.skipIf(!quiche)("a leader with faults", () => {
  it("closes all connections with any code", async () => {
    const leader = await Leader.open();
    for (const reason of closeReasons) {
      const client = await leader.connected();
      leader.server.disconnect(reason);
      expect(await client.ended).toMatchObject({ isApp: true, code: closeCodes[reason], reason });
      leader.server.faults.refuse = reason;
      const refused = await leader.connect();
      expect(await refused.ended).toMatchObject({ isApp: true, code: closeCodes[reason], reason });
      leader.server.faults.refuse = null;
    }
    leader.server.faults.refuse = "certificate";
    const refused = await leader.connect();
    expect(await refused.ended).toMatchObject({ isApp: false, code: badCertificateCode });
  });

  it("becomes silent, and then responds again", async () => {
    const leader = await Leader.open();
    const client = await leader.connected();
    leader.server.faults.silent = true;
    const { packets } = leader.server.counts;
    client.send(randomBytes(100));
    const newcomer = await leader.connect();
    await until(() => leader.server.counts.packets >= packets + 2, "packets of both");
    expect(leader.arrived).toEqual([]);
    expect(newcomer.packets).toEqual([]);
    leader.server.faults.silent = false;
    await leader.has(1); // sent again
    await newcomer.established;
  });

  it("restarts at its port without its state, and moves to another", async () => {
    const leader = await Leader.open();
    const { address } = leader.server;
    const client = await leader.connected();
    await restart(leader.server);
    expect(leader.server.address).toBe(address);
    const unknown = leader.server.counts.packetsUnknown;
    client.send(randomBytes(100));
    await until(() => leader.server.counts.packetsUnknown > unknown, "an unknown connection");
    expect(leader.arrived).toEqual([]);
    (await leader.connected()).send(randomBytes(100));
    await leader.has(1);
    await leader.server.move();
    expect(leader.server.address).not.toBe(address);
    (await leader.connected()).send(randomBytes(100));
    await leader.has(2);
  });

  it("sends a close packet when it closes", async () => {
    const leader = await Leader.open();
    const client = await leader.connected();
    await leader.server.close();
    expect(await client.ended).toMatchObject({ by: "peer", isApp: true, code: 0 });
    await leader.server.close();
    await leader.server.start();
    expect(leader.server.connections).toBe(0);
  });
});
