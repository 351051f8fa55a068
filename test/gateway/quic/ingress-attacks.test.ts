// The QUIC ingress under wrong and hostile use: streams, floods, forged packets, and a killed process.

import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { packetBytesMax } from "../../../src/core/quic/quiche.ts";
import { readLongHeader } from "../../../src/gateway/quic/long-header.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { resetUntilClosed } from "../../support/quic/attacks.ts";
import { ask, begin, connect, sessionsOf } from "../../support/quic/ingress-clients.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { needQuiche, QuicClient } from "../../support/quic/quic-client.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { tipping } from "../../support/transactions/tipping.ts";

const dropsOf = ({ ingress }: IngressRun) => ingress.snapshot().counts?.drops;
const countsOf = ({ ingress }: IngressRun) => ingress.snapshot().counts;

/** A plain socket that sends to the ingress and counts the bytes that it gets. */
async function stranger(run: IngressRun, listener = 0) {
  const { port } = parseEndpoint(run.address(listener));
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const got = { packets: [] as Buffer[], bytes: 0 };
  socket.on("message", (packet) => {
    got.packets.push(packet);
    got.bytes += packet.length;
  });
  closing({ close: () => void socket.close() });
  return { got, send: (packet: Uint8Array) => socket.send(packet, port, "127.0.0.1") };
}

/** A first packet of a client that never answers. */
function firstPacket(): Buffer {
  const { Connection } = needQuiche();
  const config = QuicClient.configOf({
    credentials: newEcdsaCredentials("good"),
    protocol: "shredway-tpu",
  });
  const at = { host: "127.0.0.1", port: 1 };
  const quic = Connection.connect(null, randomBytes(20), at, at, config);
  const packet = Buffer.alloc(packetBytesMax);
  return packet.subarray(0, quic.send(packet)?.[0] ?? 0);
}

/** The same first packet with a token. */
function withToken(packet: Buffer, token: Uint8Array): Buffer {
  const sourceAt = 6 + (packet[5] ?? 0);
  const tokenAt = sourceAt + 1 + (packet[sourceAt] ?? 0);
  const [head, rest] = [packet.subarray(0, tokenAt), packet.subarray(tokenAt + 1)];
  return Buffer.concat([head, Buffer.of(token.length), token, rest]);
}

/** Sends as much at once as flow and congestion control accept. */
async function sendSlowly(client: QuicClient, id: number, bytes: Buffer): Promise<void> {
  for (let rest = bytes; rest.length > 0; await new Promise(setImmediate)) {
    rest = rest.subarray(client.quic.streamSend(id, rest, false) ?? 0);
    client.work();
  }
}

describeQuic("a stream", () => {
  it("is dropped if its end comes too late; the connection and its credit remain", async () => {
    const run = await IngressRun.open({
      settings: { ...IngressRun.settings, streamTimeoutMs: 100, streamsMax: 4 },
    });
    const client = await connect(run);
    for (let round = 1; round <= 3; round++) {
      const ids = Array.from({ length: 4 }, () => client.begin(Buffer.from([1])));
      await until(() => dropsOf(run)?.timed_out === 4 * round, "the time-outs");
      for (const id of ids) client.finish(id, tipping().subarray(1));
      await until(() => client.credit === 4, "the credit");
    }
    client.send(tipping());
    await until(() => run.gateway.submitted.length === 1, "a submission");
  });

  it("is not dropped if its end has arrived and waits for room", async () => {
    const run = await IngressRun.open({
      settings: { ...IngressRun.settings, streamTimeoutMs: 100, streamsMax: 2 },
    });
    const client = await connect(run);
    const submits: (() => void)[] = [];
    run.gateway.submit = () => new Promise((resolve) => void submits.push(resolve));
    const [whole, ...others] = [1n, 2n, 3n].map((amount) => tipping({ amount }));
    const id = client.begin(Buffer.of(whole?.[0] ?? 0));
    const responses = others.map((bytes) => ask(client, bytes));
    await until(() => submits.length === 2, "as many submissions as may be under way");
    client.finish(id, whole?.subarray(1) ?? Buffer.alloc(0));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(dropsOf(run)?.timed_out).toBe(0);
    for (const submit of submits.splice(0)) submit();
    await Promise.all(responses);
    await until(() => submits.length === 1, "the third submission");
    submits[0]?.();
    expect(dropsOf(run)?.timed_out).toBe(0);
  });

  it("is dropped if it is empty, reset or too long, and a request learns why", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    expect(await ask(client, Buffer.alloc(0))).toMatchObject({
      status: 400,
      body: "value_invalid: stream: expected a transaction, got 0 bytes",
    });
    expect((await ask(client, Buffer.alloc(16_384 + 100))).body).toBe(
      "value_invalid: stream: expected at most 16392 bytes, got more",
    );
    client.reset(client.begin(Buffer.from([1])));
    await until(() => dropsOf(run)?.reset === 1, "the reset");
    expect(dropsOf(run)).toEqual({
      empty: 1,
      reset: 1,
      timed_out: 0,
      too_long: 1,
      memory_limit: 0,
    });
    expect((await ask(client, tipping())).status).toBe(200);
  });

  it("may come in any pieces", async () => {
    const run = await IngressRun.open({
      settings: { ...IngressRun.settings, streamTimeoutMs: 60_000 },
    });
    const client = await connect(run);
    const wire = tipping();
    const id = client.begin(wire.subarray(0, 1));
    for (let at = 1; at < wire.length - 1; at++) client.extend(id, wire.subarray(at, at + 1));
    client.finish(id, wire.subarray(-1));
    await until(() => run.gateway.submitted.length === 1, "a submission");
    expect(run.gateway.submitted[0]?.transactions[0]?.wire).toEqual(Buffer.from(wire));
  });

  it("may be one of as many long ones as the limits allow, all incomplete", async () => {
    const run = await IngressRun.open({
      settings: { ...IngressRun.settings, streamTimeoutMs: 60_000 },
    });
    const client = await connect(run);
    const ids = Array.from({ length: 64 }, () => client.begin(Buffer.alloc(0)));
    for (const id of ids) await sendSlowly(client, id, Buffer.alloc(2500));
    for (const id of ids) client.finish(id, Buffer.alloc(0));
    const submissions = () => [...run.ingress.snapshot().submissions.values()];
    await until(
      () => submissions().reduce((sum, count) => sum + count, 0) === 64,
      "the verdict on each stream",
    );
    expect(dropsOf(run)?.too_long ?? 0).toBe(0);
  });
});

describeQuic("a client that floods", () => {
  it("is closed with code 4 for too many streams without a transaction", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    expect(await resetUntilClosed(client)).toMatchObject({
      code: 4,
      reason: "excess: too many streams without a transaction",
    });
    await until(() => sessionsOf(run) === 0, "its end at the service");
    await connect(run);
  });

  it("waits when its streams are at the gateway, and nobody else does", async () => {
    const run = await IngressRun.open({ settings: { ...IngressRun.settings, streamsMax: 8 } });
    const release: (() => void)[] = [];
    run.gateway.submit = ({ accountId }) =>
      accountId === "a_1" ? new Promise((resolve) => release.push(resolve)) : Promise.resolve();
    const client = await connect(run);
    for (let i = 1; i <= 40; i++) client.send(tipping({ amount: BigInt(i) }));
    await until(() => release.length === 8, "eight submissions");
    run.gateway.keys.set("other", { ...IngressRun.key("other"), accountId: "a_2" });
    const other = await connect(run, { key: "other" });
    expect((await ask(other, tipping({ amount: 99n }))).status).toBe(200);
    expect(release.length).toBe(8);
    while (run.gateway.submitted.length < 41) {
      for (const end of release.splice(0)) end();
      await new Promise(setImmediate);
    }
    expect(new Set(run.gateway.submitted.map((one) => one.transactions[0]?.signature)).size).toBe(
      41,
    );
  });

  it("cannot open more connections than the service's limit", async () => {
    const run = await IngressRun.open({ settings: { ...IngressRun.settings, connectionsMax: 1 } });
    await connect(run);
    expect(await (await begin(run)).ended).toMatchObject({
      code: 2,
      reason: "connection_limit: the service has too many connections",
    });
    await until(() => countsOf(run)?.failedHandshakes === 1, "the end of the second one");
    expect(countsOf(run)?.handshakes).toBe(1);
  });

  it("must prove its address, and is then limited by address", async () => {
    const run = await IngressRun.open({
      settings: { ...IngressRun.settings, handshakesPerMinute: 2 },
    });
    await connect(run);
    await connect(run);
    const third = await begin(run);
    await until(() => countsOf(run)?.limitedHandshakes === 1, "a limited handshake");
    expect(countsOf(run)).toMatchObject({ retries: 1, handshakes: 2 });
    expect(third.quic.isEstablished()).toBe(false);
  });
});

describeQuic("a flood on a connection of its own", () => {
  it("delays no other client, and ends nothing", async () => {
    const run = await IngressRun.open();
    let head: Uint8Array = new Uint8Array(0);
    const flooding = await connect(run, {
      onTransmit: (packet) => {
        if (!readLongHeader(packet)) head = packet.subarray(0, 9);
      },
    });
    const other = await connect(run);
    const packet = Buffer.concat([head, randomBytes(1200)]);
    expect(head).toHaveLength(9);
    for (let i = 1; i <= 10; i++) {
      for (let sent = 0; sent < 1000; sent++) flooding.transmit(packet);
      expect((await ask(other, tipping({ amount: BigInt(i) }))).status).toBe(200);
    }
    expect((await ask(flooding, tipping({ amount: 11n }))).status).toBe(200);
    expect(sessionsOf(run)).toBe(2);
  });
});

describeQuic("packets of strangers", () => {
  it("lead to retries under load, and a client still connects", async () => {
    const run = await IngressRun.open();
    const { got, send } = await stranger(run);
    const packets = Array.from({ length: 200 }, firstPacket);
    for (const packet of packets) {
      send(packet);
      await new Promise(setImmediate);
    }
    await until(() => (countsOf(run)?.packets ?? 0) >= 200, "all packets");
    expect(countsOf(run)?.retries).toBeGreaterThanOrEqual(100);
    await until(() => got.packets.length > 100, "the retries");
    const client = await connect(run);
    expect((await ask(client, tipping())).status).toBe(200);
  });

  it("are asked for a token of this service if theirs is of another one", async () => {
    const run = await IngressRun.open();
    const { got, send } = await stranger(run);
    // More than may begin a handshake at once.
    for (let i = 0; i < 20; i++) send(withToken(firstPacket(), randomBytes(40)));
    const isRetry = (packet: Buffer) => ((packet[0] ?? 0) & 0xf0) === 0xf0;
    await until(() => got.packets.some(isRetry), "a retry");
    await until(() => (countsOf(run)?.invalidTokens ?? 0) > 0, "the counts");
  });

  it("do not learn how to end a connection of another listener", async () => {
    const plain = { isProtected: false, isSwqosOnly: false, address: "127.0.0.1:0" };
    const run = await IngressRun.open({ listeners: [plain, plain] });
    const { got, send } = await stranger(run, 1);
    /** `heads`: the first bytes of its packets after the handshake. The first such packet may follow later. */
    const open = async (): Promise<{ client: QuicClient; heads: Buffer[] }> => {
      const heads: Buffer[] = [];
      const onTransmit = (packet: Buffer) => {
        if (!readLongHeader(packet)) heads.push(packet.subarray(0, 9));
      };
      return { client: await connect(run, { onTransmit }), heads };
    };
    const [connected, ended] = [await open(), await open()];
    await ended.client.close();
    await until(() => sessionsOf(run) === 1, "the end of a connection");
    for (const { heads } of [connected, ended]) {
      await until(() => heads.length > 0, "a packet after the handshake");
    }
    // For a while, the service waits for late packets of the connection that has ended.
    await until(() => {
      for (const { heads } of [connected, ended]) {
        send(Buffer.concat([...heads.slice(-1), randomBytes(40)]));
      }
      return got.packets.length > 0;
    }, "the reset of the connection that has ended");
    const tokens = got.packets.map((packet) => packet.subarray(-16).toString("hex"));
    expect(new Set(tokens).size).toBe(1);
  });

  it("get at most three times their bytes before they prove their address", async () => {
    const run = await IngressRun.open();
    const { got, send } = await stranger(run);
    const packet = firstPacket();
    send(packet);
    await until(() => countsOf(run)?.failedHandshakes === 1, "the end of the handshake");
    expect(got.bytes).toBeGreaterThan(0);
    expect(got.bytes).toBeLessThanOrEqual(3 * packet.length);
  });

  it("are ignored if they are not QUIC, and other versions are negotiated", async () => {
    const run = await IngressRun.open();
    const { got, send } = await stranger(run);
    for (let length = 0; length < 100; length++) send(randomBytes(length));
    const version = firstPacket();
    version.writeUInt32BE(0x1a2a3a4a, 1);
    send(version);
    await until(() => got.packets.some((packet) => packet.readUInt32BE(1) === 0), "a negotiation");
    const forged = firstPacket();
    forged.fill(0xff, 300, 400);
    send(forged);
    const client = await connect(run);
    expect((await ask(client, tipping())).status).toBe(200);
    expect(run.ingress.snapshot().process.ends.exited).toBe(0);
  });

  it("get no answer to a version negotiation, which could come from another service", async () => {
    const run = await IngressRun.open();
    const { got, send } = await stranger(run);
    const [negotiation, unknown] = [firstPacket(), firstPacket()];
    negotiation.writeUInt32BE(0, 1);
    unknown.writeUInt32BE(0x1a2a3a4a, 1);
    send(negotiation);
    send(unknown);
    await until(() => got.packets.length > 0, "the answer to the unknown version");
    const [first] = got.packets;
    expect(readLongHeader(first ?? Buffer.alloc(0))?.dcid).toEqual(readLongHeader(unknown)?.scid);
  });

  it("do not move a connection to their address", async () => {
    const run = await IngressRun.open();
    const { got, send } = await stranger(run);
    let isCopied = false;
    const client = await connect(run, { onTransmit: (packet) => isCopied && send(packet) });
    isCopied = true;
    for (let i = 1n; i <= 5n; i++) {
      expect((await ask(client, tipping({ amount: i }))).status).toBe(200);
    }
    expect(run.gateway.submitted.length).toBe(5);
    expect(got.packets).toEqual([]);
  });
});

describeQuic("the process", () => {
  it("starts again with another certificate, and clients learn that their connection is gone", async () => {
    const run = await IngressRun.open();
    const before = await connect(run);
    run.ingress.identify(newEcdsaCredentials("shredway"));
    const after = await connect(run);
    const { pid } = run.ingress.snapshot().process;
    process.kill(pid ?? 0, "SIGKILL");
    await until(() => {
      const { process: state } = run.ingress.snapshot();
      return state.pid !== null && state.pid !== pid && run.ingress.snapshot().isUp;
    }, "another process");
    for (const client of [before, after]) {
      client.send(tipping());
      await client.ended;
    }
  });

  it("starts again after a kill, and clients learn at once that their connection is gone", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    const address = run.address();
    let persist: () => void = () => undefined;
    run.gateway.submit = () =>
      new Promise((resolve) => {
        persist = resolve;
      });
    void client.request(tipping());
    await until(() => run.gateway.submitted.length === 1, "a submission");
    const { pid } = run.ingress.snapshot().process;
    process.kill(pid ?? 0, "SIGKILL");
    await until(() => sessionsOf(run) === 0, "the end of the session");
    await until(() => {
      const { process: state } = run.ingress.snapshot();
      return state.pid !== null && state.pid !== pid;
    }, "another process");
    // The submission goes on; its answer must not reach a connection of the new process.
    const next = await connect(run);
    run.gateway.submit = () => Promise.resolve();
    persist();
    expect((await ask(next, tipping({ amount: 2n }))).status).toBe(200);
    expect(run.address()).toBe(address);
    expect(run.ingress.snapshot().submissions.get("accepted")).toBe(2);
    expect(run.ingress.snapshot().ends.get("process_lost")).toBe(1);
    client.send(tipping({ amount: 3n }));
    await client.ended;
  });
});
