// Faults of the endpoint: lost connections, kernel errors, a blocked process. Each transaction
// still gets its end.

import { expect, it } from "vitest";
import { newCredentials } from "../../../src/gateway/tpu/certificate.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { Sender, server, until } from "./endpoint-fixtures.ts";

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
