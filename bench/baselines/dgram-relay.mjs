// Plain Node relay: a simple implementation as a baseline for the real one.
//
// Receives on one port, drops duplicates (key: slot, index, type), and sends the rest to every
// destination. No authentication. Started by the bench as its "dgram" driver:
// node bench/baselines/dgram-relay.mjs PORT ADDRESS:PORT…

import { createSocket } from "node:dgram";

const [listenPort, ...destinations] = process.argv.slice(2);
const targets = destinations.map((text) => {
  const at = text.lastIndexOf(":");
  return { address: text.slice(0, at), port: Number(text.slice(at + 1)) };
});

const keysMax = 100_000;
let recent = new Set();
let older = new Set();

const socket = createSocket({ type: "udp4", recvBufferSize: 32 << 20, sendBufferSize: 16 << 20 });
socket.on("message", (packet) => {
  const key = packet.latin1Slice(64, 79);
  if (recent.has(key) || older.has(key)) return;
  recent.add(key);
  if (recent.size >= keysMax) {
    older = recent;
    recent = new Set();
  }
  for (const { address, port } of targets) socket.send(packet, port, address);
});
// A socket bound to 127.0.0.1 cannot send to other networks.
const isLocal = destinations.every((text) => text.startsWith("127."));
socket.bind(Number(listenPort), isLocal ? "127.0.0.1" : "0.0.0.0");
