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
import { systemClock } from "../../src/core/clock.ts";
import { newCredentials } from "../../src/core/quic/certificate.ts";
import { DueTimer } from "../../src/core/quic/due-timer.ts";
import {
  buildQuicheConfig,
  loadQuiche,
  packetBytesMax,
  type Quiche,
  type QuicheAddress,
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
const host = "127.0.0.1";
const nsPerMs = 1_000_000n;
const idBytes = 8;
const longHeaderBit = 0x80;
const chunk = Buffer.alloc(8192);
/** Bytes of the name of a transaction: 24 characters of base64, which http_scenario.cc uses too. */
const nameBytes = 18;
let receivedCount = 0;
/** Times of arrival (monotonic) of transactions, which are named by their beginning. */
const arrivals = new Map<string, bigint>();

interface Peer {
  readonly quic: QuicheConnection;
  readonly remote: QuicheAddress;
  readonly timer: DueTimer;
  readonly keys: readonly string[];
}

class Leader {
  readonly #socket: Socket;
  readonly #local: QuicheAddress;
  readonly #peers = new Map<string, Peer>();
  /** Received packets that are not answered yet. */
  readonly #changed = new Set<Peer>();

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#local = { host, port: socket.address().port };
    socket.on("message", (packet, { address, port: remotePort }) =>
      this.#receive(packet, { host: address, port: remotePort }),
    );
  }

  get port(): number {
    return this.#local.port;
  }

  #receive(packet: Buffer, from: QuicheAddress): void {
    if (!quiche) return;
    const { dcid } = quiche.Header.fromSlice(packet, idBytes);
    const known = this.#peers.get(keyOf(dcid));
    // A late packet of an ended connection begins no other one.
    if (!known && ((packet[0] ?? 0) & longHeaderBit) === 0) return;
    const peer = known ?? this.#accept(quiche, dcid, from);
    takePacket(peer.quic, packet, { from, to: this.#local });
    this.#changed.add(peer);
    // Packets that arrive together are answered together.
    if (this.#changed.size === 1) setImmediate(() => this.#answer());
  }

  #accept({ Connection }: Quiche, dcid: Uint8Array, remote: QuicheAddress): Peer {
    const scid = randomBytes(idBytes);
    const quic = Connection.accept(scid, null, this.#local, remote, config);
    const timer = new DueTimer(systemClock, () => {
      if (quic.timeout() === 0) quic.onTimeout();
      this.#serve(peer);
    });
    const peer: Peer = { quic, remote, timer, keys: [dcid, scid].map(keyOf) };
    for (const key of peer.keys) this.#peers.set(key, peer);
    return peer;
  }

  #answer(): void {
    for (const peer of this.#changed) this.#serve(peer);
    this.#changed.clear();
  }

  #serve(peer: Peer): void {
    const { quic, remote, timer, keys } = peer;
    takeTransactions(quic);
    for (const { packet } of packetsOf(quic)) {
      this.#socket.send(packet, remote.port, remote.host);
    }
    const restMs = quic.timeout();
    if (quic.isClosed()) {
      timer.cancel();
      for (const key of keys) this.#peers.delete(key);
    } else if (restMs !== null) {
      timer.set(systemClock.monotonicNs() + BigInt(Math.ceil(restMs)) * nsPerMs);
    }
  }
}

function keyOf(id: Uint8Array): string {
  return Buffer.from(id).toString("latin1");
}

function takeTransactions(quic: QuicheConnection): void {
  const nowNs = process.hrtime.bigint();
  for (const streamId of quic.readable()) {
    for (let isOver = false; !isOver; ) {
      const read = quic.streamRecv(streamId, chunk);
      isOver = read === null || read[1];
      if (!read?.[1]) continue;
      receivedCount++;
      if (read[0] > nameBytes) arrivals.set(chunk.toString("base64", 0, nameBytes), nowNs);
    }
  }
}

async function open(): Promise<number> {
  const socket = createSocket({
    type: "udp4",
    recvBufferSize: 4 << 20,
    lookup: (hostname, _options, callback) => callback(null, hostname, 4),
  });
  await new Promise<void>((resolve) => socket.bind(0, host, resolve));
  return new Leader(socket).port;
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
