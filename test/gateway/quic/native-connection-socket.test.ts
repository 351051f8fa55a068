// The addon's socket of connections: what it passes on, to whom, and what it sends.

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { expect, it } from "vitest";
import { encodeAddress } from "../../../src/gateway/quic/server-sockets.ts";
import { native } from "../../../src/relay/data-plane/native.ts";
import {
  type ConnectionPacketListener,
  packetSlots,
  slotBytes,
} from "../../../src/relay/data-plane/native-connection-socket.ts";
import { openUdpDescriptor } from "../../../src/relay/data-plane/udp-socket.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";

const host = "127.0.0.1";
const idKey = Buffer.alloc(32, 7);

async function openClient(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.bind(0, host);
  await once(socket, "listening");
  closing({ close: () => void socket.close() });
  return socket;
}

interface Received {
  readonly connection: number;
  readonly text: string;
  /** undefined: the connection's own. */
  readonly from: { readonly host: string; readonly port: number } | undefined;
}

/** A socket, and what it has passed on. */
function openServer(also: () => void = () => undefined) {
  const memory = Buffer.alloc(packetSlots * slotBytes);
  const passed: Received[] = [];
  const received: ConnectionPacketListener = (connection, slot, length, from) => {
    const at = slot * slotBytes;
    const text = memory.toString("latin1", at + 9, at + length);
    passed.push({ connection, text, from });
    also();
  };
  const { ConnectionSocket } = native();
  const descriptor = openUdpDescriptor(host, 0);
  const server = closing(new ConnectionSocket(descriptor, 1 << 20, idKey, memory, received));
  return { server, passed, port: server.address().port };
}

const packetOf = (id: Uint8Array, text: string) =>
  Buffer.concat([Buffer.of(0x40), id, Buffer.from(text, "latin1")]);

it("passes packets of a connection to it, others as strays, and none with foreign ids", async () => {
  const { server, passed, port } = openServer();
  const [client, stranger] = [await openClient(), await openClient()];
  const from = { host, port: client.address().port };
  const [known, unknown] = [server.newId(), server.newId()];
  server.know(known, 5, encodeAddress(from));
  client.send(packetOf(Buffer.alloc(8, 1), "foreign"), port, host);
  client.send(packetOf(known, "one"), port, host);
  stranger.send(packetOf(known, "copied"), port, host);
  client.send(packetOf(unknown, "two"), port, host);
  client.send(packetOf(known, "three"), port, host);
  await until(() => passed.length === 3 && server.counts().received === 5, "three packets");
  expect(passed).toEqual([
    { connection: 5, text: "one", from: undefined },
    { connection: -1, text: "two", from },
    { connection: 5, text: "three", from: undefined },
  ]);
  expect(server.counts()).toMatchObject({ received: 5, unknown: 3, limited: 0, linkLocal: 0 });
  server.forget(known);
  client.send(packetOf(known, "four"), port, host);
  await until(() => passed.length === 4, "a stray packet");
  expect(passed[3]).toEqual({ connection: -1, text: "four", from });
});

it("recognises the ids of another socket with the same key, as after a restart", async () => {
  const { passed, port } = openServer();
  const client = await openClient();
  client.send(packetOf(openServer().server.newId(), "old"), port, host);
  await until(() => passed.length === 1, "a stray packet");
  expect(passed[0]).toMatchObject({ connection: -1, text: "old" });
});

it("sends on flush, in order, and names what the kernel refuses", async () => {
  const { server } = openServer();
  const client = await openClient();
  const got: string[] = [];
  client.on("message", (packet) => got.push(packet.toString()));
  const texts = Array.from({ length: packetSlots + 5 }, (_, i) => `packet ${i}`);
  const address = encodeAddress({ host, port: client.address().port });
  for (const text of texts) server.send(Buffer.from(text), address);
  server.send(Buffer.from("nowhere"), encodeAddress({ host: "255.255.255.255", port: 9 }));
  server.flush();
  await until(() => got.length === texts.length, "all packets");
  expect(got).toEqual(texts);
  expect(server.counts().failed).toBe(1);
  expect(server.counts().lastFailure).not.toBe("");
  const tooLong = Buffer.alloc(slotBytes + 1);
  expect(() => server.send(tooLong, address)).toThrow("expected at most 1536 bytes, got 1537");
});

it("may be closed by its listener, and refuses wrong arguments", async () => {
  let calls = 0;
  const opened = openServer(() => {
    calls++;
    opened.server.close();
  });
  const client = await openClient();
  const id = opened.server.newId();
  for (let i = 0; i < 10; i++) client.send(packetOf(id, "x"), opened.port, host);
  await until(() => calls > 0, "a packet");
  opened.server.close();
  opened.server.send(Buffer.alloc(1), encodeAddress({ host, port: 1 }));
  opened.server.flush();
  expect(calls).toBe(1);
  expect(opened.server.counts()).toMatchObject({ received: 0, failed: 0 });
  const { ConnectionSocket } = native();
  const memory = Buffer.alloc(packetSlots * slotBytes);
  expect(() => new ConnectionSocket(-1, 0, idKey, memory, () => undefined)).toThrow("descriptor");
  expect(() => new ConnectionSocket(3, 0, Buffer.alloc(31), memory, () => undefined)).toThrow(
    "idKey: expected 32 bytes, got 31",
  );
  expect(() => new ConnectionSocket(3, 0, idKey, Buffer.alloc(9), () => undefined)).toThrow(
    "memory of 98304 bytes",
  );
});
