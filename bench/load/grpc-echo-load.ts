// Round trips to a bare echo server of @grpc/grpc-js (bench/baselines/grpc-echo.mjs), on as many streams as
// the bench of streams has subscribers.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Client, type ClientDuplexStream, credentials } from "@grpc/grpc-js";
import { systemClock } from "../../src/core/clock.ts";
import { numberOf } from "../report/lines.ts";
import { LineReader } from "./http-load.ts";

const program = fileURLToPath(new URL("../baselines/grpc-echo.mjs", import.meta.url));
const messageBytes = 500;
/** Each message goes on the next stream. */
const messagesPerTurn = 8;
const turnMs = 2;

type EchoStream = ClientDuplexStream<Buffer, Buffer>;

const same = (bytes: Buffer): Buffer => bytes;

/** Round trips in ns, of at least one message. */
export async function echoRoundTrips(streamCount: number, seconds: number): Promise<number[]> {
  const child = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "inherit"] });
  const clients: Client[] = [];
  try {
    const port = numberOf(await new LineReader(child).next(), "port");
    const timesNs: number[] = [];
    const streams: EchoStream[] = [];
    for (let i = 0; i < streamCount; i++) {
      const options = { "grpc.use_local_subchannel_pool": 1 };
      const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), options);
      const stream = client.makeBidiStreamRequest("/bench.Echo/Echo", same, same);
      stream.on("error", () => undefined);
      stream.on("data", (message: Buffer) => {
        timesNs.push(Number(systemClock.monotonicNs() - message.readBigUInt64LE(0)));
      });
      clients.push(client);
      streams.push(stream);
    }
    await exchange(streams, seconds);
    return timesNs;
  } finally {
    for (const client of clients) client.close();
    child.kill("SIGKILL");
  }
}

async function exchange(streams: readonly EchoStream[], seconds: number): Promise<void> {
  const endNs = systemClock.monotonicNs() + BigInt(seconds * 1e9);
  for (let sent = 0; systemClock.monotonicNs() < endNs; ) {
    for (let i = 0; i < messagesPerTurn; i++) {
      const message = Buffer.alloc(messageBytes);
      message.writeBigUInt64LE(systemClock.monotonicNs(), 0);
      streams[sent++ % streams.length]?.write(message);
    }
    await systemClock.sleep(turnMs);
  }
  // The last responses.
  await systemClock.sleep(100);
}
