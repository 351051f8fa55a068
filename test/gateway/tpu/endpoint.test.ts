// The endpoint with leaders on the same machine, and with paths that lose packets.

import { createSocket } from "node:dgram";
import { expect, it, onTestFinished, vi } from "vitest";
import { credentialsOf, newCredentials } from "../../../src/core/quic/certificate.ts";
import type { QuicheConnection } from "../../../src/core/quic/quiche.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { LossyLink } from "../../support/network/lossy-link.ts";
import { describeQuic, quicheOfTests } from "../../support/quic/quic-server.ts";
import { closing, Sender, server, until } from "./endpoint-fixtures.ts";

function transaction(seed: number, length = 300): Buffer {
  return Buffer.from(Array.from({ length }, (_, i) => (seed * 31 + i * 7) % 251));
}

describeQuic("a leader that takes everything", () => {
  it("gets every transaction completely, and acknowledgements are reported after sending", async () => {
    const leader = await server();
    const sender = await Sender.open();
    const sizes = [1, 200, 1231, 1232, 1233, 1500, 4096];
    for (const [id, size] of sizes.entries())
      sender.send(id, leader.address, transaction(id, size));
    await until(() => expect(sender.of("acknowledged").length).toBe(sizes.length));
    expect(leader.transactions.toSorted((a, b) => a.length - b.length)).toEqual(
      sizes.map((size, id) => transaction(id, size)),
    );
    for (const [id] of sizes.entries()) {
      const own = sender.events.filter((event) => event.id === id).map(({ kind }) => kind);
      expect(own).toEqual(["sent", "acknowledged"]);
    }
    const state = sender.leader(leader);
    expect(state).toMatchObject({ phase: "connected", connections: 1, reset: 0, dropped: 0 });
    expect(state).toMatchObject({ sent: 7, acknowledged: 7, queued: 0, inFlight: 0 });
    expect(state.handshakeMs).toBeGreaterThan(0);
    expect(state.roundTripMs).toBeGreaterThan(0);
  });

  it("sees the identity's key, and can require a stateless retry", async () => {
    const leader = await server({ retries: true });
    const seed = Buffer.alloc(32, 9);
    const sender = await Sender.open({}, credentialsOf(seed));
    sender.send(1, leader.address, transaction(1));
    await until(() => expect(sender.of("acknowledged")).toEqual([1]));
    expect(leader.retried).toBe(1);
    expect(leader.identities).toEqual([
      "fd1724385aa0c75b64fb78cd602fa1d991fdebf76b13c58ed702eac835e9f618",
    ]);
  });

  it("can have an IPv6 address", async (context) => {
    const leader = await server({ host: "::1" }).catch(() => null);
    if (!leader) return context.skip("this machine has no IPv6");
    const sender = await Sender.open();
    sender.send(1, leader.address, transaction(1, 4096));
    await until(() => expect(sender.of("acknowledged")).toEqual([1]));
    expect(leader.transactions).toEqual([transaction(1, 4096)]);
    expect(sender.endpoint.leaders()[0]?.address).toBe(`[::1]:${leader.port}`);
  });

  it("is preconnected when near, and not when far", async () => {
    const [near, far] = [await server(), await server()];
    const sender = await Sender.open();
    sender.endpoint.selectLeaders([near.address, far.address]);
    await until(() => expect(near.connections + far.connections).toBe(2));
    expect(near.transactions).toEqual([]);
    sender.endpoint.selectLeaders([near.address]);
    await until(() => expect(far.closes).toEqual([0]));
    expect(near.connections).toBe(1);
    expect(sender.leader(far)).toMatchObject({ phase: "idle", lastClose: "not_needed" });
  });

  it("stays connected while nothing is sent", async () => {
    const leader = await server();
    const sender = await Sender.open();
    sender.endpoint.selectLeaders([leader.address]);
    await until(() => expect(leader.connections).toBe(1));
    const before = leader.packets;
    // The end of the handshake is smaller.
    await until(() => expect(leader.packets).toBeGreaterThan(before + 4));
    expect(leader.identities.length).toBe(1);
    expect(sender.leader(leader)).toMatchObject({ connections: 1, closes: {} });
  });
});

describeQuic("a connection without losses", () => {
  it("does not ask the library for lost bytes with each transaction", async () => {
    const prototype: QuicheConnection = Reflect.get(quicheOfTests().Connection, "prototype");
    const asked = vi.spyOn(prototype, "stats");
    onTestFinished(() => asked.mockRestore());
    const leader = await server();
    const sender = await Sender.open();
    sender.endpoint.selectLeaders([leader.address]);
    await until(() => expect(sender.leader(leader).phase).toBe("connected"));
    asked.mockClear();
    for (let id = 0; id < 100; id++) {
      sender.send(id, leader.address, transaction(id));
      await until(() => expect(sender.of("acknowledged").length).toBe(id + 1));
    }
    expect(asked.mock.calls.length).toBeLessThan(50);
  });
});

describeQuic("a path that loses a tenth of the packets both ways", () => {
  it("delivers transactions of 4,096 bytes completely", async () => {
    const leader = await server();
    const path = await LossyLink.open(leader.port, { loss: 0.1 }, 42);
    closing.push(path);
    const sender = await Sender.open({ timeoutMs: 60_000 });
    const all = Array.from({ length: 60 }, (_, id) => transaction(id, 4096));
    for (const [id, bytes] of all.entries()) sender.send(id, path.address, bytes);
    await until(() => expect(sender.of("acknowledged").length).toBe(all.length));
    expect(path.lost).toBeGreaterThan(10);
    const sorted = (list: readonly Buffer[]) => list.map((one) => one.toString("hex")).toSorted();
    expect(sorted(leader.transactions)).toEqual(sorted(all));
  });

  it("never reports an arrival that did not happen", async () => {
    const leader = await server();
    const path = await LossyLink.open(leader.port, { loss: 0 }, 1);
    closing.push(path);
    // Shorter than the connection's lifetime, otherwise its end is reported.
    const sender = await Sender.open({ timeoutMs: 2500 });
    sender.endpoint.selectLeaders([path.address]);
    await until(() => expect(leader.connections).toBe(1));
    await until(() => expect(sender.leader(path.address).phase).toBe("connected"));
    path.quality.loss = 1;
    sender.send(1, path.address, transaction(1, 4096));
    await until(() => expect(sender.of("failed")).toEqual([1]));
    expect(sender.of("sent")).toEqual([1]);
    expect(sender.of("acknowledged")).toEqual([]);
    expect(sender.reasons()[0]).toMatch(/^(not_acknowledged|connection_lost: silent)$/);
    expect(leader.transactions).toEqual([]);
  });
});

describeQuic("a leader that limits streams", () => {
  it("gets no more streams than it allows, and the rest later", async () => {
    const leader = await server({ streamsMax: 4 });
    leader.isStuck = true;
    const sender = await Sender.open();
    for (let id = 0; id < 12; id++) sender.send(id, leader.address, transaction(id));
    await until(() => expect(sender.leader(leader)).toMatchObject({ queued: 8, sent: 4 }));
    leader.isStuck = false;
    await until(() => expect(sender.of("acknowledged").length).toBe(12));
    expect(leader.transactions.length).toBe(12);
    expect(leader.closes).toEqual([]);
  });

  it("drops waiting transactions at their deadline", async () => {
    const leader = await server({ streamsMax: 2 });
    leader.isStuck = true;
    const sender = await Sender.open();
    sender.endpoint.selectLeaders([leader.address]);
    for (let id = 0; id < 2; id++) sender.send(id, leader.address, transaction(id));
    await until(() => expect(sender.of("sent")).toEqual([0, 1]));
    sender.send(2, leader.address, transaction(2));
    sender.send(3, leader.address, transaction(3), 200);
    await until(() => expect(sender.of("dropped")).toEqual([3]));
    expect(sender.reasons()).toEqual(["deadline_passed"]);
    expect(sender.leader(leader).queued).toBe(1);
  });

  it("fills only its own queue", async () => {
    const [stuck, other] = [await server({ streamsMax: 1 }), await server()];
    stuck.isStuck = true;
    const sender = await Sender.open({ queueMax: 5 });
    for (let id = 0; id < 10; id++) sender.send(id, stuck.address, transaction(id));
    expect(sender.reasons()).toEqual(Array.from({ length: 5 }, () => "queue_full"));
    sender.send(100, other.address, transaction(100));
    await until(() => expect(sender.of("acknowledged")).toContain(100));
  });

  it("can stop a stream in flight", async () => {
    const leader = await server({ streamBytesMax: 1232 });
    leader.stopsStreams = true;
    const sender = await Sender.open();
    sender.send(1, leader.address, transaction(1, 4096));
    await until(() => expect(sender.reasons()).toEqual(["stream_stopped"]));
    expect(sender.of("dropped")).toEqual([1]);
    expect(sender.events.length).toBe(1);
    leader.stopsStreams = false;
    sender.send(2, leader.address, transaction(2));
    await until(() => expect(sender.of("acknowledged")).toEqual([2]));
    expect(sender.leader(leader)).toMatchObject({ reset: 1, sent: 1, dropped: 0 });
  });

  it("receives a transaction in parts if its window is smaller", async () => {
    const leader = await server({ streamBytesMax: 1232 });
    const sender = await Sender.open();
    sender.send(1, leader.address, transaction(1, 4096));
    await until(() => expect(sender.of("acknowledged")).toEqual([1]));
    expect(leader.transactions).toEqual([transaction(1, 4096)]);
  });
});

describeQuic("a connection that is lost", () => {
  it("fails sent transactions; unsent ones use the next connection", async () => {
    const leader = await server({ streamBytesMax: 1232 });
    leader.isStuck = true;
    const path = await LossyLink.open(leader.port, { loss: 0 }, 1);
    closing.push(path);
    const sender = await Sender.open();
    sender.endpoint.selectLeaders([path.address]);
    await until(() => expect(leader.connections).toBe(1));
    sender.send(1, path.address, transaction(1, 4096));
    await until(() => expect(sender.leader(path.address)).toMatchObject({ inFlight: 1, sent: 0 }));
    sender.send(2, path.address, transaction(2, 4096));
    leader.isStuck = false;
    leader.closeAll(0);
    await until(() => expect(sender.of("acknowledged").toSorted((a, b) => a - b)).toEqual([1, 2]));
    expect(leader.transactions.length).toBe(2);
    expect(sender.leader(path.address)).toMatchObject({ connections: 2, closes: { closed: 1 } });
  });
});

describeQuic("a leader that rejects", () => {
  const refusals = [
    [{ code: 1, isApp: true }, "dropped"],
    [{ code: 2, isApp: true }, "disallowed"],
    [{ code: 3, isApp: true }, "exceed_max_stream_count"],
    [{ code: 4, isApp: true }, "too_many"],
    [{ code: 5, isApp: true }, "invalid_stream"],
    [{ code: 2, isApp: false }, "connection_refused"],
    [{ code: 0, isApp: true }, "closed"],
  ] as const;

  it.each(refusals)("by %j is counted by name and not retried early", async (refusal, name) => {
    const leader = await server();
    leader.refusal = refusal;
    const sender = await Sender.open();
    sender.endpoint.selectLeaders([leader.address]);
    await until(() => expect(sender.leader(leader).closes[name]).toBeGreaterThan(0));
    expect(sender.leader(leader).lastClose).toBe(name);
  });

  it("is not retried for each offered transaction", async () => {
    const leader = await server();
    leader.refusal = { code: 2, isApp: true };
    // The pause lasts until the test advances this clock.
    const clock = new ManualClock();
    const sender = await Sender.open({}, newCredentials(), clock);
    sender.endpoint.selectLeaders([leader.address]);
    while (sender.leader(leader).phase !== "backing_off") {
      await clock.advance(5); // quiche's timers, in case of packet loss
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const { connections } = sender.leader(leader);
    for (let id = 1; id <= 20; id++) sender.send(id, leader.address, transaction(id), 50);
    expect(sender.reasons().slice(-20)).toEqual(
      Array.from({ length: 20 }, () => "backing_off: disallowed"),
    );
    sender.send(21, leader.address, transaction(21));
    expect(sender.leader(leader)).toMatchObject({ phase: "backing_off", queued: 1, connections });
  });

  it("is retried after the pause, and waiting transactions arrive", async () => {
    const leader = await server();
    leader.refusal = { code: 4, isApp: true };
    const sender = await Sender.open();
    sender.endpoint.selectLeaders([leader.address]);
    await until(() => expect(sender.leader(leader).closes["too_many"]).toBeGreaterThan(0));
    leader.refusal = null;
    sender.send(1, leader.address, transaction(1));
    await until(() => expect(sender.of("acknowledged")).toEqual([1]));
  });

  it("because of another protocol is counted by its TLS alert", async () => {
    const leader = await server({ protocol: "h3" });
    const sender = await Sender.open();
    sender.endpoint.selectLeaders([leader.address]);
    await until(() =>
      expect(Object.keys(sender.leader(leader).closes)).toEqual(["tls_no_application_protocol"]),
    );
  });
});

describeQuic("a leader that is not there", () => {
  it("delays no other leader and is reported by name", async () => {
    const [silent, other] = [await server(), await server()];
    silent.isSilent = true;
    const sender = await Sender.open({ timeoutMs: 5000 });
    sender.endpoint.selectLeaders([silent.address]);
    for (let id = 0; id < 5; id++) sender.send(id, silent.address, transaction(id), 300);
    for (let id = 10; id < 15; id++) sender.send(id, other.address, transaction(id));
    await until(() => expect(sender.of("acknowledged")).toEqual([10, 11, 12, 13, 14]));
    await until(() => expect(sender.leader(silent).closes["handshake_timeout"]).toBeGreaterThan(0));
    await until(() =>
      expect(sender.of("dropped").toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4]),
    );
    expect(sender.leader(silent).handshakeMs).toBeNull();
  });

  it("any more is given up, and gets transactions when it responds again", async () => {
    const leader = await server();
    const sender = await Sender.open({ timeoutMs: 5000 });
    sender.send(1, leader.address, transaction(1));
    await until(() => expect(sender.of("acknowledged")).toEqual([1]));
    leader.isSilent = true;
    sender.endpoint.selectLeaders([leader.address]);
    await until(() => expect(sender.leader(leader).closes["silent"]).toBe(1));
    leader.isSilent = false;
    sender.send(2, leader.address, transaction(2));
    await until(() => expect(sender.of("acknowledged")).toEqual([1, 2]));
    expect(sender.leader(leader).closes["idle_timeout"]).toBeUndefined();
  });

  it("is tried at once for a transaction, although it did not answer before", async () => {
    const leader = await server();
    leader.isSilent = true;
    const clock = new ManualClock();
    const sender = await Sender.open({ timeoutMs: 1000 }, newCredentials(), clock);
    sender.endpoint.selectLeaders([leader.address]);
    const isPaused = () => {
      const { phase, closes } = sender.leader(leader);
      return phase === "backing_off" && (closes["handshake_timeout"] ?? 0) >= 4;
    };
    while (!isPaused()) {
      await clock.advance(50);
      await new Promise((resolve) => setImmediate(resolve));
    }
    leader.isSilent = false;
    // The clock does not advance, so the pause does not end by itself.
    sender.send(1, leader.address, transaction(1), 100);
    await until(() => expect(sender.of("acknowledged")).toEqual([1]));
  });

  it("can return", async () => {
    const leader = await server();
    leader.isSilent = true;
    const sender = await Sender.open({ timeoutMs: 2000 });
    sender.endpoint.selectLeaders([leader.address]);
    await until(() => expect(sender.leader(leader).closes["handshake_timeout"]).toBeGreaterThan(0));
    leader.isSilent = false;
    await until(() => expect(leader.connections).toBe(1));
  });
});

describeQuic("bounds", () => {
  it("stays within the connection limit and closes unneeded connections", async () => {
    const servers = await Promise.all(Array.from({ length: 4 }, () => server()));
    const sender = await Sender.open({ connectionsMax: 2 });
    for (const [id, { address }] of servers.entries()) {
      sender.send(id, address, transaction(id));
      await until(() => expect(sender.of("acknowledged")).toContain(id));
    }
    sender.endpoint.selectLeaders(servers.slice(2).map(({ address }) => address));
    await until(() => expect(servers.map(({ connections }) => connections)).toEqual([0, 0, 1, 1]));
    const open = sender.endpoint.leaders().filter(({ phase }) => phase === "connected");
    expect(open.length).toBe(2);
  });

  it("replaces the farthest preconnection by one that is needed now", async () => {
    const [near, far, now] = [await server(), await server(), await server()];
    const sender = await Sender.open({ connectionsMax: 2 });
    sender.endpoint.selectLeaders([near.address, far.address, now.address]);
    await until(() => expect(near.connections + far.connections).toBe(2));
    expect(now.initials).toBe(0);
    sender.send(1, now.address, transaction(1));
    await until(() => expect(sender.of("acknowledged")).toEqual([1]));
    await until(() => expect([near.connections, far.connections]).toEqual([1, 0]));
  });

  it("connects with the farthest leader again when a connection is free", async () => {
    const [near, far, now] = [await server(), await server(), await server()];
    const clock = new ManualClock();
    const sender = await Sender.open({ connectionsMax: 2 }, newCredentials(), clock);
    sender.endpoint.selectLeaders([near.address, far.address]);
    await until(() => expect(near.connections + far.connections).toBe(2));
    sender.send(1, now.address, transaction(1));
    await until(() => expect(sender.of("acknowledged")).toEqual([1]));
    await until(() => expect([near.connections, far.connections]).toEqual([1, 0]));
    // The selection does not change.
    while (far.connections === 0) {
      await clock.advance(50);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await until(() => expect(now.connections).toBe(0));
    expect(near.connections).toBe(1);
  });

  it("drops transactions for a further leader while all connections are busy", async () => {
    const servers = [await server(), await server()];
    const sender = await Sender.open({ connectionsMax: 2 });
    for (const [id, leader] of servers.entries()) {
      leader.isSilent = true;
      sender.send(id, leader.address, transaction(id));
    }
    const third = await server();
    sender.send(2, third.address, transaction(2));
    expect(sender.events).toMatchObject([{ id: 2, kind: "dropped", reason: "no_connection_left" }]);
  });

  it("survives arbitrary packets", async () => {
    const leader = await server();
    const path = await LossyLink.open(leader.port, { loss: 0 }, 1);
    closing.push(path);
    const sender = await Sender.open();
    sender.send(1, path.address, transaction(1));
    await until(() => expect(sender.of("acknowledged")).toEqual([1]));
    const stranger = createSocket("udp4");
    const noise = Array.from({ length: 200 }, (_, i) => transaction(i, 1 + ((i * 37) % 1400)));
    const ports = path.callers;
    expect(ports.length).toBe(1);
    for (const packet of noise) stranger.send(packet, ports[0], "127.0.0.1");
    for (const packet of path.answers) {
      const broken = Buffer.from(packet);
      broken[broken.length - 1] = (broken.at(-1) ?? 0) ^ 1;
      stranger.send(broken, ports[0], "127.0.0.1");
    }
    sender.send(2, path.address, transaction(2));
    await until(() => expect(sender.of("acknowledged")).toEqual([1, 2]));
    stranger.close();
  });
});

describeQuic("another identity", () => {
  it("opens new connections and completes transactions on old ones", async () => {
    const leader = await server();
    const sender = await Sender.open({}, credentialsOf(Buffer.alloc(32, 1)));
    sender.endpoint.selectLeaders([leader.address]);
    await until(() => expect(leader.connections).toBe(1));
    leader.isStuck = true;
    for (let id = 0; id < 5; id++) sender.send(id, leader.address, transaction(id));
    sender.endpoint.identify(credentialsOf(Buffer.alloc(32, 2)));
    sender.send(5, leader.address, transaction(5));
    leader.isStuck = false;
    await until(() => expect(sender.of("acknowledged").length).toBe(6));
    await until(() => expect(leader.connections).toBe(1));
    expect(leader.identities.length).toBe(2);
    expect(new Set(leader.identities).size).toBe(2);
    expect(leader.transactions.length).toBe(6);
    expect(sender.of("failed")).toEqual([]);
    expect(sender.leader(leader).closes).toEqual({ renewed: 1 });
  });
});

describeQuic("the end", () => {
  it("is announced to leaders; drops queued transactions and fails those in flight", async () => {
    const [leader, stuck] = [await server(), await server({ streamsMax: 1 })];
    stuck.isStuck = true;
    const sender = await Sender.open();
    sender.endpoint.selectLeaders([leader.address, stuck.address]);
    await until(() => expect(leader.connections + stuck.connections).toBe(2));
    for (let id = 0; id < 3; id++) sender.send(id, stuck.address, transaction(id));
    expect(sender.leader(stuck)).toMatchObject({ queued: 2 });
    sender.endpoint.close();
    expect(sender.of("dropped")).toEqual([1, 2]);
    expect(sender.reasons().slice(0, 2)).toEqual(["route_closed", "route_closed"]);
    await until(() => expect(leader.closes).toEqual([0]));
  });
});
