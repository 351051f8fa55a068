// Leaders for the bench of the TPU route in their own process: they accept every stream
// immediately.
//
// Arguments, after those of service-arguments.ts: LEADERS
//
// Prints the port of each; then, after every line on its standard input, the number of complete
// transactions since the last one. The line "arrivals FILE" also writes when each of them arrived: a line
// "BASE64 NS" each, with the beginning of the transaction. Ends with its standard input.

import { randomBytes } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { newCredentials } from "../../src/core/quic/certificate.ts";
import {
  buildQuicheConfig,
  loadQuiche,
  packetBytesMax,
  type QuicheConnection,
  tpuProtocol,
} from "../../src/core/quic/quiche.ts";
import { packetsOf, takePacket } from "../../src/core/quic/quiche-calls.ts";

const quiche = loadQuiche();
if (!quiche) throw new Error("expected the optional package @matrixai/quic, got none");
const config = buildQuicheConfig(quiche, {
  credentials: newCredentials(),
  asksCertificate: true,
  applicationProtocol: tpuProtocol,
  idleTimeoutMs: 10_000,
  packetBytesMax,
  connectionBytesMax: 10_000_000,
  streamBytesMax: 4096,
  streamsMax: 2048,
});
const idBytes = 8;
const chunk = Buffer.alloc(8192);
/** Bytes of the name of a transaction: 24 characters of base64, which http_scenario.cc uses too. */
const nameBytes = 18;
let receivedCount = 0;
/** Times of arrival (monotonic) of transactions, which are named by their beginning. */
const arrivals = new Map<string, bigint>();

interface Peer {
  readonly quiche: QuicheConnection;
  readonly host: string;
  readonly port: number;
}

function serve({ quiche: connection, host, port }: Peer, socket: Socket): void {
  const nowNs = process.hrtime.bigint();
  for (const streamId of connection.readable()) {
    for (let isOver = false; !isOver; ) {
      const read = connection.streamRecv(streamId, chunk);
      isOver = read === null || read[1];
      if (!read?.[1]) continue;
      receivedCount++;
      if (read[0] > nameBytes) arrivals.set(chunk.toString("base64", 0, nameBytes), nowNs);
    }
  }
  for (const { packet } of packetsOf(connection)) socket.send(packet, port, host);
}

async function open(): Promise<number> {
  const socket = createSocket({
    type: "udp4",
    recvBufferSize: 4 << 20,
    lookup: (hostname, _options, callback) => callback(null, hostname, 4),
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const local = { host: "127.0.0.1", port: socket.address().port };
  const peers = new Map<string, Peer>();
  const changed = new Set<Peer>();
  const serveChanged = (): void => {
    for (const peer of changed) serve(peer, socket);
    changed.clear();
  };
  socket.on("message", (packet, { address: host, port }) => {
    const key = Buffer.from(quiche?.Header.fromSlice(packet, idBytes).dcid ?? []).toString("hex");
    let peer = peers.get(key);
    if (!peer && quiche) {
      const scid = randomBytes(idBytes);
      const accepted = quiche.Connection.accept(scid, null, local, { host, port }, config);
      peer = { quiche: accepted, host, port };
      peers.set(key, peer);
      peers.set(scid.toString("hex"), peer);
    }
    if (!peer) return;
    takePacket(peer.quiche, packet, { from: { host, port }, to: local });
    changed.add(peer);
    // Packets that arrive together are answered together.
    if (changed.size === 1) setImmediate(serveChanged);
  });
  setInterval(() => {
    for (const peer of peers.values()) {
      if (peer.quiche.timeout() === 0) peer.quiche.onTimeout();
      serve(peer, socket);
    }
  }, 5);
  return local.port;
}

const ports = await Promise.all(Array.from({ length: Number(process.argv[2]) }, open));
console.log(JSON.stringify({ kind: "ready", ports: ports.join(" ") }));
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const [command, path] = line.split(" ");
  if (command === "arrivals" && path !== undefined) {
    writeFileSync(path, [...arrivals].map(([name, ns]) => `${name} ${ns}\n`).join(""));
  }
  arrivals.clear();
  console.log(JSON.stringify({ kind: "taken", taken: receivedCount }));
  receivedCount = 0;
});
lines.on("close", () => process.exit(0));
