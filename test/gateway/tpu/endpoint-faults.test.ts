// Faults of the endpoint: lost connections, kernel errors, a blocked process. Each transaction
// still gets its end.

import { expect, it } from "vitest";
import { newCredentials } from "../../../src/core/quic/certificate.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { LossyLink } from "../../support/network/lossy-link.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { closing, Sender, server, until } from "./endpoint-fixtures.ts";

async function open(timeoutMs = 30_000) {
  const { endpoint, events } = await Sender.open({ timeoutMs });
  return { endpoint, events };
}

function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

const bytesOf = (length: number) => Buffer.alloc(length, length % 251);

describeQuic("a connection that is lost", () => {
  it("after an identity change returns unsent transactions, and another connection sends them", async () => {
    const leader = await server({ streamBytesMax: 2000 });
    leader.isStuck = true;
    const { endpoint, events } = await open();
    endpoint.send({ id: 1, address: leader.address, bytes: bytesOf(4096), restMs: 60_000 });
    await until(() => expect(endpoint.leaders()[0]).toMatchObject({ queued: 0, inFlight: 1 }));
    await until(() => expect(leader.connections).toBe(1));
    endpoint.identify(newCredentials());
    leader.isStuck = false;
    leader.closeAll(0);
    await until(() => expect(events.map(({ kind }) => kind)).toEqual(["sent", "acknowledged"]));
    expect(leader.transactions).toEqual([bytesOf(4096)]);
    expect(endpoint.leaders()[0]?.connections).toBe(2);
  });

  it("after an identity change reports unsent transactions that no connection accepts", async () => {
    const leader = await server({ streamBytesMax: 2000 });
    leader.isStuck = true;
    const { endpoint, events } = await open();
    endpoint.selectLeaders([leader.address]);
    await until(() => expect(endpoint.leaders()[0]?.phase).toBe("connected"));
    endpoint.selectLeaders([]);
    endpoint.send({ id: 1, address: leader.address, bytes: bytesOf(4096), restMs: 3000 });
    await until(() => expect(endpoint.leaders()[0]).toMatchObject({ queued: 0, inFlight: 1 }));
    await until(() => expect(leader.connections).toBe(1));
    endpoint.identify(newCredentials());
    leader.closeAll(0);
    leader.isSilent = true;
    await until(() => expect(events.map(({ kind }) => kind)).toEqual(["dropped"]));
    expect(events[0]).toMatchObject({ reason: "deadline_passed" });
  });

  it("on close leaves nothing queued", async () => {
    const leader = await server({ streamBytesMax: 2000 });
    leader.isStuck = true;
    const { endpoint, events } = await open();
    endpoint.send({ id: 1, address: leader.address, bytes: bytesOf(4096), restMs: 60_000 });
    await until(() => expect(endpoint.leaders()[0]).toMatchObject({ queued: 0, inFlight: 1 }));
    endpoint.identify(newCredentials());
    endpoint.close();
    expect(events).toMatchObject([{ id: 1, kind: "dropped", reason: "route_closed" }]);
    expect(endpoint.leaders()[0]).toMatchObject({ connections: 1, queued: 0 });
  });
});

describeQuic("a stream that was opened and could not be used", () => {
  it("is used by the next transaction", async () => {
    const leader = await server({ streamsMax: 1, streamBytesMax: 500 });
    const { endpoint, events } = await open();
    endpoint.selectLeaders([leader.address]);
    await until(() => expect(leader.connections).toBe(1));
    await until(() => expect(endpoint.leaders()[0]?.phase).toBe("connected"));
    endpoint.send({ id: 1, address: leader.address, bytes: bytesOf(1000), restMs: 100 });
    await until(() => expect(events).toMatchObject([{ id: 1, kind: "dropped" }]));
    endpoint.send({ id: 2, address: leader.address, bytes: bytesOf(300), restMs: 60_000 });
    await until(() => expect(events.at(-1)).toMatchObject({ id: 2, kind: "acknowledged" }));
  });
});

describeQuic("a process that was blocked", () => {
  it("reads received packets before it gives anything up", async () => {
    const leader = await server();
    const { endpoint, events } = await open(2000);
    const push = leader.transactions.push.bind(leader.transactions);
    leader.transactions.push = (...transactions) => {
      // The leader's response is in the socket buffer by then.
      process.nextTick(standStill, 2500);
      return push(...transactions);
    };
    endpoint.send({ id: 1, address: leader.address, bytes: bytesOf(300), restMs: 60_000 });
    await until(() => expect(events.length).toBe(2));
    expect(events.map(({ kind }) => kind)).toEqual(["sent", "acknowledged"]);
  });
});

describeQuic("a kernel that refuses packets", () => {
  it("is reported", async () => {
    const { endpoint } = await open();
    // Broadcast addresses are refused by default.
    endpoint.selectLeaders([{ host: "255.255.255.255", port: 8009 }]);
    await until(() => expect(endpoint.failures.packets).toBeGreaterThan(0));
    expect(endpoint.failures.last).toMatch(/^send E[A-Z]+/);
  });
});

describeQuic("a transaction that waits for the congestion window", () => {
  it("is not reported as sent because other packets are repeated", async () => {
    const leader = await server();
    const path = await LossyLink.open(leader.port, { loss: 0 }, 1);
    closing.push(path);
    const { endpoint, events } = await open();
    endpoint.selectLeaders([path.address]);
    await until(() => expect(endpoint.leaders()[0]?.phase).toBe("connected"));
    await until(() => expect(leader.connections).toBe(1));
    path.quality.loss = 1;
    // Twelve fill the window of ten packets but for a rest that is smaller than the thirteenth.
    const lengths = [...Array.from({ length: 12 }, () => 1000), 700];
    for (const [id, length] of lengths.entries()) {
      endpoint.send({ id, address: path.address, bytes: bytesOf(length), restMs: 60_000 });
    }
    const first = path.lost;
    // Repetitions of the first ones, which the congestion window does not limit.
    await until(() => expect(path.lost).toBeGreaterThan(Math.max(first, lengths.length) + 3));
    const sent = events.flatMap(({ kind, id }) => (kind === "sent" ? [id] : []));
    expect(sent).not.toContain(12);
    expect(sent.length).toBeGreaterThan(8);
    path.quality.loss = 0;
    const acknowledged = () =>
      events.flatMap(({ kind, id }) => (kind === "acknowledged" ? [id] : []));
    await until(() => expect(acknowledged().length).toBe(lengths.length));
  });
});

describeQuic("a leader that stops a stream after all of it was sent", () => {
  it("did not acknowledge it, although the stop comes with an acknowledgement of a part", async () => {
    const leader = await server();
    leader.stopsStreams = true;
    const { endpoint, events } = await open();
    // On a slow machine all bytes may be acknowledged before the stop, or a packet be repeated: then
    // the transaction counts as acknowledged.
    let id = 0;
    const isStopped = () => events.some((event) => "reason" in event);
    while (!isStopped() && id < 50) {
      endpoint.send({ id: ++id, address: leader.address, bytes: bytesOf(4096), restMs: 60_000 });
      await until(() => expect(events.length).toBe(2 * id));
    }
    expect(events.slice(-2)).toMatchObject([
      { id, kind: "sent" },
      { id, kind: "failed", reason: "stream_stopped" },
    ]);
    expect(endpoint.leaders()[0]).toMatchObject({ reset: 1, acknowledged: id - 1, inFlight: 0 });
    leader.stopsStreams = false;
    endpoint.send({ id: ++id, address: leader.address, bytes: bytesOf(300), restMs: 60_000 });
    await until(() => expect(events.at(-1)).toMatchObject({ id, kind: "acknowledged" }));
  });
});

describeQuic("keep-alives", () => {
  it("that never left do not count as unanswered", async () => {
    const leader = await server();
    const clock = new ManualClock();
    const path = await LossyLink.open(leader.port, { loss: 0 }, 1);
    closing.push(path);
    const { endpoint, events } = await Sender.open({}, newCredentials(), clock);
    endpoint.selectLeaders([path.address]);
    await until(() => expect(leader.connections).toBe(1));
    await until(() => expect(endpoint.leaders()[0]?.phase).toBe("connected"));
    path.quality.loss = 1;
    // They fill the congestion window of ten packets: keep-alives do not leave either.
    const lengths = [...Array.from({ length: 10 }, () => 1200), 700];
    for (const [id, length] of lengths.entries()) {
      endpoint.send({ id, address: path.address, bytes: bytesOf(length), restMs: 600_000 });
    }
    await clock.advance(900);
    for (let second = 0; second < 7; second++) await clock.advance(1000);
    expect(endpoint.leaders()[0]).toMatchObject({ phase: "connected", closes: {} });
    path.quality.loss = 0;
    const acknowledged = () => events.filter(({ kind }) => kind === "acknowledged").length;
    for (let round = 0; acknowledged() < lengths.length && round < 3000; round++) {
      await clock.advance(2);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    expect(acknowledged()).toBe(lengths.length);
  });
});
