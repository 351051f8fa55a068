// The thread of the TPU route: start on demand, batches, loss and restart.

import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { newCredentials } from "../../../src/gateway/tpu/certificate.ts";
import { tpuProtocol } from "../../../src/gateway/tpu/quiche.ts";
import { startTpuWorker, TpuThread } from "../../../src/gateway/tpu/tpu-thread.ts";
import type { ThreadOptions, TpuEvent, TpuSettings } from "../../../src/gateway/tpu/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { describeQuic, QuicServer } from "../../support/quic/quic-server.ts";

const settings: TpuSettings = {
  applicationProtocol: tpuProtocol,
  connectionsMax: 4,
  queueMax: 1000,
  timeoutMs: 30_000,
  bind: { ipv4: "127.0.0.1", ipv6: "::1" },
  seed: 1,
};
const unusedAddress = { host: "127.0.0.1", port: 9 };
const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

interface Started {
  readonly thread: TpuThread;
  readonly events: TpuEvent[];
  readonly workers: Worker[];
}

function thread(
  start: (options: ThreadOptions) => Worker = startTpuWorker,
  clock: typeof systemClock | ManualClock = systemClock,
): Started {
  const events: TpuEvent[] = [];
  const workers: Worker[] = [];
  const started = new TpuThread({
    settings,
    credentials: newCredentials(),
    clock,
    report: (event) => events.push(event),
    start: (options) => {
      const worker = start(options);
      workers.push(worker);
      return worker;
    },
  });
  closing.push(() => started.close());
  return { thread: started, events, workers };
}

async function server(): Promise<QuicServer> {
  const opened = await QuicServer.open();
  closing.push(() => opened.close());
  return opened;
}

const until = (check: () => void) => vi.waitFor(check, { timeout: 60_000, interval: 5 });
const sendRequest = (id: number, address = unusedAddress, restMs = 60_000) => ({
  id,
  address,
  bytes: Buffer.alloc(200 + id, id),
  restMs,
});

describeQuic("a thread", () => {
  it("starts with the first selection or transaction, and ends on close", async () => {
    // The clock does not advance: the thread has as long as it needs to end by itself.
    const { thread: one, workers } = thread(startTpuWorker, new ManualClock());
    one.selectLeaders([]);
    expect(workers.length).toBe(0);
    one.selectLeaders([unusedAddress]);
    expect(workers.length).toBe(1);
    let exitCode: number | undefined;
    workers[0]?.on("exit", (code) => {
      exitCode = code;
    });
    await one.close();
    expect(exitCode).toBe(0);
    one.send(sendRequest(1));
    expect(workers.length).toBe(1);
  });

  it("sends all transactions in batches and reports each result", async () => {
    const leader = await server();
    const { thread: one, events } = thread();
    for (let id = 0; id < 50; id++) one.send(sendRequest(id, leader.address));
    await until(() => expect(events.length).toBe(100));
    const lengths = leader.transactions.map(({ length }) => length).toSorted((a, b) => a - b);
    expect(lengths).toEqual(Array.from({ length: 50 }, (_, id) => 200 + id));
    for (const bytes of leader.transactions) {
      expect(bytes.equals(Buffer.alloc(bytes.length, bytes.length - 200))).toBe(true);
    }
    for (let id = 0; id < 50; id++) {
      const kinds = events.filter((event) => event.id === id).map(({ kind }) => kind);
      expect(kinds).toEqual(["sent", "acknowledged"]);
    }
    await until(() => expect(one.leaders[0]?.acknowledged).toBe(50));
    expect(one.leaders[0]).toMatchObject({ phase: "connected", connections: 1 });
  });

  it("is restarted after a loss, and its transactions are reported", async () => {
    const [leader, stuck] = [await server(), await server()];
    stuck.isSilent = true;
    const { thread: one, events, workers } = thread();
    one.selectLeaders([leader.address]);
    one.send(sendRequest(1, leader.address));
    one.send(sendRequest(2, stuck.address));
    await until(() => expect(events.map(({ kind }) => kind)).toEqual(["sent", "acknowledged"]));
    await workers[0]?.terminate();
    await until(() => expect(events.length).toBe(3));
    expect(events[2]).toMatchObject({ id: 2, kind: "dropped", reason: "thread_lost" });
    await until(() => expect(workers.length).toBe(2));
    // It gets the selected leaders again.
    await until(() => expect(one.leaders[0]?.phase).toBe("connected"));
    one.send(sendRequest(3, leader.address));
    await until(() => expect(events.at(-1)).toMatchObject({ id: 3, kind: "acknowledged" }));
  });

  it("accepts another identity", async () => {
    const leader = await server();
    const { thread: one } = thread();
    one.selectLeaders([leader.address]);
    await until(() => expect(leader.connections).toBe(1));
    one.identify(newCredentials());
    await until(() => expect(new Set(leader.identities).size).toBe(2));
  });
});

/** A thread that cannot be terminated, like one stuck in native code. */
class UnstoppableWorker extends Worker {
  requests = 0;

  override terminate(): Promise<number> {
    this.requests++;
    closing.push(() => super.terminate());
    return new Promise(() => undefined);
  }
}

function unresponsiveWorker(): UnstoppableWorker {
  const code = `const { parentPort } = require("node:worker_threads");
    parentPort.on("message", () => {});
    parentPort.postMessage({ kind: "opened" });`;
  return new UnstoppableWorker(code, { eval: true });
}

/** Its first message was received. */
async function nextReply(worker: Worker | undefined): Promise<void> {
  await new Promise((resolve) => worker?.once("message", resolve));
}

describe("a thread that is stuck", () => {
  it("counts as ended after five pings, and is replaced", async () => {
    const clock = new ManualClock();
    const workers: UnstoppableWorker[] = [];
    const { thread: one, events } = thread(() => {
      const worker = unresponsiveWorker();
      workers.push(worker);
      return worker;
    }, clock);
    one.selectLeaders([unusedAddress]);
    one.send(sendRequest(1));
    await nextReply(workers[0]);
    await clock.advance(5999);
    expect(one.isUp && workers[0]?.requests === 0).toBe(true);
    await clock.advance(1000);
    expect(events).toMatchObject([{ id: 1, kind: "dropped", reason: "thread_lost" }]);
    expect(one.lastFailure).toContain("stuck");
    expect(workers.map(({ requests }) => requests)).toEqual([1, 0]);
    expect(one.isUp).toBe(true);
    const closed = one.close();
    await clock.advance(2000);
    await closed;
  });

  it("does not delay closing", async () => {
    const clock = new ManualClock();
    const { thread: one, events, workers } = thread(unresponsiveWorker, clock);
    one.selectLeaders([unusedAddress]);
    one.send(sendRequest(1));
    await nextReply(workers[0]);
    const closed = one.close();
    await clock.advance(2000);
    await closed;
    expect(events).toMatchObject([{ id: 1, kind: "dropped", reason: "route_closed" }]);
    expect(clock.pending).toBe(0);
  });
});

describe("a thread that was never needed", () => {
  it("is not started by close, and queued transactions are reported once", async () => {
    const { thread: one, events, workers } = thread();
    one.send(sendRequest(1));
    await one.close();
    one.send(sendRequest(2));
    await Promise.resolve();
    expect(workers.length).toBe(0);
    expect(events.map(({ id, kind }) => [id, kind])).toEqual([
      [1, "dropped"],
      [2, "dropped"],
    ]);
  });
});

describe("a thread that cannot start", () => {
  it("is reported once per transaction", async () => {
    const { thread: one, events } = thread(() => {
      throw new Error("planted");
    }, new ManualClock());
    one.send(sendRequest(1));
    one.send(sendRequest(2));
    await until(() => expect(events.length).toBe(2));
    expect(events.map(({ id }) => id)).toEqual([1, 2]);
  });

  it("is retried at growing intervals, even if it opens its sockets each time", async () => {
    const clock = new ManualClock();
    const code = `require("node:worker_threads").parentPort.postMessage({ kind: "opened" });`;
    const { thread: one, workers } = thread(() => new Worker(code, { eval: true }), clock);
    one.selectLeaders([unusedAddress]);
    for (const pauseMs of [100, 200, 400]) {
      await until(() => expect(one.isUp).toBe(false));
      const { length } = workers;
      await clock.advance(pauseMs - 1);
      expect(workers.length).toBe(length);
      await clock.advance(1);
      expect(workers.length).toBe(length + 1);
    }
  });

  it("drops offered transactions, and is retried at growing intervals", async () => {
    const clock = new ManualClock();
    const {
      thread: one,
      events,
      workers,
    } = thread(() => new Worker("throw new Error('planted')", { eval: true, stderr: true }), clock);
    one.selectLeaders([unusedAddress]);
    one.send(sendRequest(1));
    await until(() => expect(one.isUp).toBe(false));
    expect(events).toMatchObject([{ id: 1, kind: "dropped", reason: "thread_lost" }]);
    expect(one.lastFailure).toContain("planted");
    one.send(sendRequest(2));
    await until(() => expect(events.length).toBe(2));
    expect(events[1]).toMatchObject({ id: 2, kind: "dropped", reason: "thread_down" });
    for (let failures = 2; failures < 5; failures++) {
      const pauseMs = 100 * 2 ** (failures - 2);
      await clock.advance(pauseMs - 1);
      expect(workers.length).toBe(failures - 1);
      await clock.advance(1);
      expect(workers.length).toBe(failures);
      await until(() => expect(one.isUp).toBe(false));
    }
  });

  it("because of an invalid key reports that", async () => {
    const started = new TpuThread({
      settings,
      credentials: { keyPem: "none", certificatePem: "none" },
      clock: systemClock,
      report: () => undefined,
    });
    closing.push(() => started.close());
    started.selectLeaders([unusedAddress]);
    await until(() => expect(started.isUp).toBe(false));
    expect(started.lastFailure).toMatch(/the connection thread ended: /);
  });
});
