// A flood of QUIC packets from forged addresses (initial-flood.cc), compiled with the installed compiler.
//
// The packets leave from many addresses of 127.0.0.0/8, which needs no privilege.

import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { buildQuicheConfig, loadQuiche, packetBytesMax } from "../../../src/core/quic/quiche.ts";

const source = fileURLToPath(new URL("initial-flood.cc", import.meta.url));

export interface FloodTotals {
  readonly sent: number;
  readonly sentBytes: number;
  readonly answers: number;
  readonly answerBytes: number;
}

/** First packets of clients that never answer. Requires quiche. */
export function firstPackets(count: number): Buffer[] {
  const quiche = loadQuiche();
  if (!quiche) throw new Error("expected quiche, but it is not installed");
  const { Connection } = quiche;
  const config = buildQuicheConfig(quiche, {
    credentials: newEcdsaCredentials("good"),
    applicationProtocol: "shredway-tpu",
    idleTimeoutMs: 10_000,
    packetBytesMax,
    connectionBytesMax: 1 << 20,
    streamBytesMax: 0,
    streamsMax: 0,
  });
  const at = { host: "127.0.0.1", port: 1 };
  return Array.from({ length: count }, () => {
    const quic = Connection.connect(null, randomBytes(20), at, at, config);
    const packet = Buffer.alloc(packetBytesMax);
    return packet.subarray(0, quic.send(packet)?.[0] ?? 0);
  });
}

/** Packets with a short header, as of connections that do not exist. */
export function strayPackets(count: number): Buffer[] {
  return Array.from({ length: count }, () => {
    const packet = randomBytes(packetBytesMax);
    packet[0] = 0x40;
    return packet;
  });
}

/** Compiles the program into a folder and returns its path. */
export function buildInitialFlood(folder: string): string {
  const program = join(folder, "initial-flood");
  execFileSync("c++", ["-std=c++20", "-O2", "-o", program, source]);
  return program;
}

interface FloodOptions {
  readonly program: string;
  /** On 127.0.0.1. */
  readonly port: number;
  readonly count: number;
  /** 0: without a pause. */
  readonly packetsPerSecond: number;
  readonly packets: readonly Buffer[];
}

/** Settles when all packets are sent and the last answers have arrived. */
export async function floodInitials(options: FloodOptions): Promise<FloodTotals> {
  const { program, port, count, packetsPerSecond, packets } = options;
  const child = spawn(program, [port, count, packetsPerSecond].map(String), {
    stdio: ["pipe", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
  });
  child.stdin.end(packets.map((packet) => packet.toString("hex")).join("\n"));
  const [code]: unknown[] = await once(child, "close");
  if (code !== 0) throw new Error(`initial-flood: expected exit code 0, got ${String(code)}`);
  const [sent = 0, sentBytes = 0, answers = 0, answerBytes = 0] = (printed.match(/\d+/g) ?? []).map(
    Number,
  );
  return { sent, sentBytes, answers, answerBytes };
}
