// Streams whose clients come and go thousands of times, vanish, or send hostile requests.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { MessageWriter } from "../../../src/core/grpc/protobuf.ts";
import { frameMessage } from "../../../src/core/grpc/status.ts";
import { encodeRequest, streamPaths } from "../../../src/tools/stream/stream-messages.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { childProgramWords } from "../../support/processes/child-program.ts";
import { type RunningStreams, runningStreams } from "../../support/streams/stream-clients.ts";
import { batchOf, slotOf, transactionOf } from "../../support/streams/stream-relay.ts";
import { connectTo, inForce, streamSockets } from "../../support/streams/stream-sockets.ts";

const program = fileURLToPath(new URL("../../support/streams/stream-child.ts", import.meta.url));
const noFilter = { vote: undefined, include: [], exclude: [], required: [] };
const ping = new MessageWriter().message(2, new MessageWriter().uint(1, 1).finish()).finish();

/** Nothing of a stream is left in the service and in the relay. */
async function isEmpty(running: RunningStreams): Promise<void> {
  await inForce(running, 0);
  await until(() => running.service.status().connections === 0, "the end of all connections");
  const { filters } = running.service.status();
  expect(filters).toEqual({ filters: 0, accounts: 0, isCurrent: true });
  expect(running.service.hub.filterCounts().size).toBe(0);
}

/** The test destroys it. */
function openSession(address: string): ClientHttp2Session {
  const session = connect(`http://${address}`);
  session.on("error", () => undefined);
  return session;
}

function openCall(
  session: ClientHttp2Session,
  path: string = streamPaths.deshred,
): ClientHttp2Stream {
  const call = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    "x-token": "alice",
  });
  call.on("error", () => undefined);
  return call;
}

describe("10,000 streams, one hundred at a time,", () => {
  it("leave no memory, descriptor, filter or subscriber behind", async () => {
    const running = await runningStreams("subscriptionsMax: 100, subscriptionsPerAccountMax: 100");
    const requests = Buffer.concat([
      frameMessage(encodeRequest("deshred", noFilter)),
      frameMessage(ping),
    ]);
    setFlagsFromString("--expose-gc");
    const collectGarbage: () => void = runInNewContext("gc");
    const descriptors = () => readdirSync("/proc/self/fd").length;
    const oneRound = async (): Promise<void> => {
      const session = openSession(running.service.address);
      const calls = Array.from({ length: 100 }, () => openCall(session));
      await Promise.all(
        calls.map(async (call) => {
          const answered = once(call, "data");
          call.write(requests);
          await answered;
          call.close();
        }),
      );
      session.destroy();
      await until(() => running.service.status().connections === 0, "the end of the connection");
      running.clock.move(10_000); // an account may open ten streams a second
    };
    const memory = (): number => {
      collectGarbage();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    for (let round = 0; round < 10; round++) await oneRound();
    await isEmpty(running);
    const before = { descriptors: descriptors(), memory: memory() };
    for (let round = 0; round < 90; round++) await oneRound();
    await isEmpty(running);
    expect(running.service.status().ends.get("client")).toBe(10_000);
    expect(descriptors()).toBeLessThanOrEqual(before.descriptors + 2);
    // A tenth of what one stream needs: its queue, its call and its filter. Node frees native
    // memory of a closed connection some turns of the event loop after the collection.
    const grown = (): number => (memory() - before.memory) / 9000;
    await until(() => grown() < 1024, "the end of all memory of the streams");
  });
});

async function openChild(running: RunningStreams): Promise<ChildProcess> {
  const words = [...(await childProgramWords(program)), running.service.address];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  closing({ close: () => void child.kill("SIGKILL") });
  await once(child.stdout, "data");
  await inForce(running, 1);
  return child;
}

describe("a client", () => {
  it("that stops without a FIN is ended by the ping, with the reason", async () => {
    const running = await runningStreams();
    const child = await openChild(running);
    child.kill("SIGSTOP");
    // The kernel of the client still confirms what arrives. The second interval finds no answer.
    await until(() => {
      running.clock.move(20_000);
      return running.service.status().ends.get("silent") === 1;
    }, "the end of the silent stream");
    expect(running.service.snapshot().ended).toMatchObject([
      { reason: "silent", text: "silent: no answer to a ping within 20 s" },
    ]);
    await isEmpty(running);
  });

  it("that is killed leaves nothing behind", async () => {
    const running = await runningStreams();
    const child = await openChild(running);
    child.kill("SIGKILL");
    await until(() => running.service.status().ends.get("client") === 1, "the end of its stream");
    await isEmpty(running);
  });
});

it("ends a WebSocket with `lost` and the number of messages when the relay lost some", async () => {
  const run = await streamSockets("filtersMax: 1000, subscriptionsPerAccountMax: 10");
  const socket = await connectTo(run);
  await socket.subscribe("shredTransactionSubscribe", [{}]);
  // Each message has the ids of 4,000 filters, so that few transactions fill the relay's ring.
  const names = Array.from({ length: 1000 }, (_, i) => `n${i}`);
  const request = names.reduce(
    (writer, name) => writer.message(1, new MessageWriter().string(1, name).finish()),
    new MessageWriter(),
  );
  const session = closing(openSession(run.service.address));
  for (let i = 0; i < 4; i++) openCall(session).write(frameMessage(request.finish()));
  await inForce(run, 5);
  const batch = batchOf(Array.from({ length: 1000 }, () => transactionOf()));
  const wait = new Int32Array(new SharedArrayBuffer(4));
  const { streams } = run.relay;
  for (let slot = 110n; slot < 116n; slot++) run.send(slotOf(slot, [batch]));
  // This thread reads nothing meanwhile.
  for (let turn = 0; streams.lost === 0 && turn < 6000; turn++) Atomics.wait(wait, 0, 0, 10);
  expect(streams.lost).toBeGreaterThan(0);
  await until(() => socket.end !== undefined, "the end of the WebSocket");
  expect(socket.end).toEqual({
    code: 1013,
    reason: expect.stringMatching(
      /^lost: the relay was too busy and lost \d+ messages of this stream; subscribe again$/,
    ),
  });
  expect(run.service.status().ends.get("lost")).toBeGreaterThan(0);
});

describe("a hostile request", () => {
  /** Status and message that the client received, which the list of ended streams shows, too. */
  const endOf = async (body: Uint8Array, path: string = streamPaths.deshred) => {
    const running = await runningStreams();
    const session = openSession(running.service.address);
    const call = openCall(session, path);
    const trailers = once(call, "trailers");
    call.on("data", () => undefined);
    call.write(body);
    const [headers] = await trailers;
    session.destroy();
    await isEmpty(running);
    const message = decodeURIComponent(String(headers["grpc-message"]));
    const [ended] = running.service.snapshot().ended;
    expect(ended).toMatchObject({ reason: "refused", text: message });
    const { ends } = running.service.status();
    expect([ends.get("refused"), ends.get("client")]).toEqual([1, 0]);
    return [Number(headers["grpc-status"]), message];
  };
  const eachPath = describe.each([
    streamPaths.deshred,
    streamPaths.entries,
    streamPaths.transactions,
  ]);

  eachPath("of %s", (path) => {
    it("is refused by its announced length", async () => {
      expect(await endOf(Buffer.from([0, 0xff, 0xff, 0xff, 0xff]), path)).toEqual([
        status.RESOURCE_EXHAUSTED,
        "expected messages of at most 4194304 bytes, got 4294967295",
      ]);
    });

    it("is refused if it is compressed in an unknown way", async () => {
      expect(await endOf(Buffer.from([1, 0, 0, 0, 0]), path)).toEqual([
        status.INTERNAL,
        "expected an uncompressed message, because the call has no grpc-encoding",
      ]);
    });

    it("is refused if it ends inside a field", async () => {
      expect(await endOf(frameMessage(Uint8Array.of(0x0a, 0x7f, 1)), path)).toEqual([
        status.INVALID_ARGUMENT,
        "malformed request: message ends inside a field",
      ]);
    });
  });

  it("is refused with too many fields", async () => {
    const fields = frameMessage(Buffer.alloc(2 * 60_001, Uint8Array.of(0x50, 1)));
    expect(await endOf(fields)).toEqual([
      status.INVALID_ARGUMENT,
      "malformed request: more than 60000 fields",
    ]);
  });

  it("may be nested deeply and have unknown fields, which are not read", async () => {
    const running = await runningStreams();
    let nested = new Uint8Array();
    for (let depth = 0; depth < 1000; depth++) {
      nested = Uint8Array.from(new MessageWriter().message(1, nested).finish());
    }
    const unknown = new MessageWriter().message(99, nested).uint(98, 5).finish();
    const call = openCall(closing(openSession(running.service.address)));
    const answered = once(call, "data");
    call.write(Buffer.concat([frameMessage(unknown), frameMessage(ping)]));
    await answered;
    await inForce(running, 1);
    expect(running.service.status().filters.filters).toBe(0);
  });
});
