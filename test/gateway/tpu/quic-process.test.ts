// The process of the QUIC connections: start on demand, batches, loss and restart.

import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { newCredentials } from "../../../src/core/quic/certificate.ts";
import { tpuProtocol } from "../../../src/core/quic/quiche.ts";
import { QuicProcess, type QuicProcessOptions } from "../../../src/gateway/tpu/quic-process.ts";
import { startQuicProcess } from "../../../src/gateway/tpu/start-quic-process.ts";
import type { TpuEvent, TpuSettings } from "../../../src/gateway/tpu/types.ts";
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
  readonly one: QuicProcess;
  readonly events: TpuEvent[];
  readonly children: ChildProcess[];
}

type OpenOptions = Partial<Omit<QuicProcessOptions, "start">> & {
  readonly start?: () => ChildProcess;
};

function open(options: OpenOptions = {}): Started {
  const events: TpuEvent[] = [];
  const children: ChildProcess[] = [];
  const { start = startQuicProcess } = options;
  const one = new QuicProcess({
    settings,
    credentials: newCredentials(),
    clock: systemClock,
    report: (event) => events.push(event),
    ...options,
    start: () => {
      const child = start();
      children.push(child);
      return child;
    },
  });
  closing.push(() => one.close());
  return { one, events, children };
}

/** A process that runs this script instead of the product's. */
function scripted(script: string): () => ChildProcess {
  const stdio = ["ignore", "ignore", "pipe", "pipe"] as const;
  return () => spawn(process.execPath, ["-e", script], { stdio: [...stdio] });
}

/** The frame of the answer "opened". */
const openedScript = `const channel = new (require("node:net").Socket)({ fd: 3 });
  const open = Buffer.from([2, 0, 0, 0, 0, 34, 34]);
  channel.write(open);
  channel.on("data", () => {});`;

async function server(): Promise<QuicServer> {
  const opened = await QuicServer.open();
  closing.push(() => opened.close());
  return opened;
}

function isRunning(pid: number): boolean {
  try {
    return /^State:\s[^ZX]/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
  } catch {
    return false;
  }
}

function descriptorsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(`${folder}/${name}`)];
    } catch {
      return [];
    }
  });
}

function socketsOf(pid: number): string[] {
  return descriptorsOf(pid).filter((target) => target.startsWith("socket:"));
}

const until = (check: () => void) => vi.waitFor(check, { timeout: 60_000, interval: 5 });
const sendRequest = (id: number, address = unusedAddress, restMs = 60_000) => ({
  id,
  address,
  bytes: Buffer.alloc(200 + id, id),
  restMs,
});

describeQuic("a process", () => {
  it("starts with the first selection or transaction, and ends on close", async () => {
    // The clock does not advance: the process has as long as it needs to end by itself.
    const { one, children } = open({ clock: new ManualClock() });
    one.selectLeaders([]);
    expect(children.length).toBe(0);
    one.selectLeaders([unusedAddress]);
    expect(children.length).toBe(1);
    await one.close();
    expect(children[0]?.exitCode).toBe(0);
    one.send(sendRequest(1));
    expect(children.length).toBe(1);
  });

  it("works without the rings of io_uring that its event loop opened", async () => {
    const leader = await server();
    const { one, events, children } = open({
      // Newer versions of Node.js use io_uring without this variable.
      start: () => startQuicProcess("./quic-process-main", [], { UV_USE_IO_URING: "1" }),
    });
    one.send(sendRequest(1, leader.address));
    await until(() => expect(events.map(({ kind }) => kind)).toEqual(["sent", "acknowledged"]));
    expect(children.length).toBe(1);
    expect(descriptorsOf(children[0]?.pid ?? 0)).not.toContain("anon_inode:[io_uring]");
    expect(one.state.ends.exited).toBe(0);
  });

  it("sends all transactions in batches and reports each result", async () => {
    const leader = await server();
    const { one, events } = open();
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
    const { one, events, children } = open();
    one.selectLeaders([leader.address]);
    one.send(sendRequest(1, leader.address));
    one.send(sendRequest(2, stuck.address));
    await until(() => expect(events.map(({ kind }) => kind)).toEqual(["sent", "acknowledged"]));
    children[0]?.kill("SIGKILL");
    await until(() => expect(events.length).toBe(3));
    expect(events[2]).toMatchObject({
      id: 2,
      kind: "dropped",
      reason: "connection_lost: process_exited",
    });
    await until(() => expect(children.length).toBe(2));
    // It gets the selected leaders again.
    await until(() => expect(one.leaders[0]?.phase).toBe("connected"));
    one.send(sendRequest(3, leader.address));
    await until(() => expect(events.at(-1)).toMatchObject({ id: 3, kind: "acknowledged" }));
  });

  it("accepts another identity", async () => {
    const leader = await server();
    const { one } = open();
    one.selectLeaders([leader.address]);
    await until(() => expect(leader.connections).toBe(1));
    one.identify(newCredentials());
    await until(() => expect(new Set(leader.identities).size).toBe(2));
  });
});

describe("a process that hangs", () => {
  it("counts as ended after eight pings, and is replaced at once", async () => {
    const clock = new ManualClock();
    const { one, events, children } = open({ clock, start: scripted(openedScript) });
    one.selectLeaders([unusedAddress]);
    one.send(sendRequest(1));
    await until(() => expect(one.state.memoryBytes).toBeNull());
    const [first] = children;
    await new Promise((resolve) => first?.stdio[3]?.once("data", resolve));
    await clock.advance(8 * 250);
    expect(first?.signalCode).toBeNull();
    await clock.advance(250);
    await until(() => expect(children.length).toBe(2));
    expect(first?.signalCode).toBe("SIGKILL");
    const reason = "connection_lost: process_unresponsive";
    expect(events).toMatchObject([{ id: 1, kind: "dropped", reason }]);
    expect(one.lastFailure).toContain("did not respond");
    expect(one.isUp).toBe(true);
    expect(one.state.ends).toMatchObject({ unresponsive: 1, exited: 0 });
    const closed = one.close();
    await clock.advance(2000);
    await closed;
  });

  it("does not delay closing", async () => {
    const clock = new ManualClock();
    const { one, events, children } = open({ clock, start: scripted(openedScript) });
    one.selectLeaders([unusedAddress]);
    one.send(sendRequest(1));
    await new Promise((resolve) => children[0]?.stdio[3]?.once("data", resolve));
    const closed = one.close();
    await clock.advance(1000);
    await closed;
    expect(children[0]?.signalCode).toBe("SIGKILL");
    expect(events).toMatchObject([{ id: 1, kind: "dropped", reason: "route_closed" }]);
    expect(clock.pending).toBe(0);
  });
});

describeQuic("a process that is stopped by a signal", () => {
  it("is replaced, and the next one is connected with the same leaders", async () => {
    const leader = await server();
    const { one, events, children } = open();
    one.selectLeaders([leader.address]);
    await until(() => expect(one.leaders[0]?.phase).toBe("connected"));
    children[0]?.kill("SIGSTOP");
    one.send(sendRequest(1, leader.address));
    await until(() => expect(events.length).toBe(1));
    const reason = "connection_lost: process_unresponsive";
    expect(events).toMatchObject([{ id: 1, kind: "dropped", reason }]);
    await until(() => expect(one.leaders[0]?.phase).toBe("connected"));
    one.send(sendRequest(2, leader.address));
    await until(() => expect(events.at(-1)).toMatchObject({ id: 2, kind: "acknowledged" }));
  });
});

describe("a process that grows", () => {
  it("is killed at the limit and replaced", async () => {
    const pong = "channel.on('data', () => channel.write(Buffer.from([0, 0, 0, 0, 1])));";
    // Before it opens its sockets, because a process that fills memory answers no ping: some systems take seconds.
    const script = `globalThis.kept = Buffer.alloc(200e6, 1); ${openedScript} ${pong}`;
    const limit = 150e6;
    const { one, children } = open({ start: scripted(script), residentBytesMax: limit });
    one.selectLeaders([unusedAddress]);
    await until(() => expect(children.length).toBeGreaterThan(1));
    expect(children[0]?.signalCode).toBe("SIGKILL");
    expect(one.lastFailure).toMatch(/it used \d+ bytes of memory, limit 150000000/);
    expect(one.state.ends.memory_limit).toBeGreaterThan(0);
  });
});

describe("a process that sends an invalid message", () => {
  it.each([
    ["an unknown kind", "[0, 0, 0, 0, 99]"],
    ["a frame without end", "[255, 255, 255, 255, 3]"],
    ["a cut event", "[4, 0, 0, 0, 3, 0, 0, 0, 0]"],
    ["a state of leaders without fields", "[4, 0, 0, 0, 4, 91, 123, 125, 93]"],
    ["a text that is not JSON", "[1, 0, 0, 0, 2, 123]"],
  ])("is killed and replaced: %s", async (_what, bytes) => {
    const { one, children } = open({
      start: scripted(`${openedScript} channel.write(Buffer.from(${bytes}));`),
    });
    one.selectLeaders([unusedAddress]);
    await until(() => expect(children.length).toBeGreaterThan(1));
    expect(children[0]?.signalCode).toBe("SIGKILL");
    expect(one.state.ends.invalid_message).toBeGreaterThan(0);
  });
});

describeQuic("the product's process", () => {
  it("ends when its parent is killed", async () => {
    // The parent holds the other end of the socket, as the gateway does.
    const script = `import { startQuicProcess } from "./src/gateway/tpu/start-quic-process.ts";
      import { encodeRequest } from "./src/gateway/tpu/messages.ts";
      import { newCredentials } from "./src/core/quic/certificate.ts";
      const child = startQuicProcess();
      const settings = ${JSON.stringify(settings)};
      child.stdio[3].write(encodeRequest({ kind: "open", settings, credentials: newCredentials() }));
      child.stdio[3].once("data", () => console.log(child.pid));`;
    const words = ["--import", "tsx", "--input-type=module", "-e", script];
    const parent = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
    const text = await new Promise<string>((resolve) =>
      parent.stdout?.once("data", (chunk) => resolve(String(chunk))),
    );
    const pid = Number(text);
    expect(isRunning(pid)).toBe(true);
    parent.kill("SIGKILL");
    await until(() => expect(isRunning(pid)).toBe(false));
  });

  it("has no secrets, descriptors or rights beside its own", async () => {
    process.env["SHREDWAY_TEST_SECRET"] = "hunter2";
    const { one, children } = open();
    one.selectLeaders([unusedAddress]);
    await until(() => expect(one.leaders.length).toBe(1));
    delete process.env["SHREDWAY_TEST_SECRET"];
    const pid = children[0]?.pid ?? 0;
    expect(readFileSync(`/proc/${pid}/environ`, "latin1")).not.toContain("hunter2");
    expect(readFileSync(`/proc/${pid}/cmdline`, "latin1")).not.toContain("PRIVATE KEY");
    const ours = new Set(socketsOf(process.pid));
    expect(socketsOf(pid).filter((socket) => ours.has(socket))).toEqual([]);
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    expect(status).toMatch(/^NoNewPrivs:\s1$/m);
    expect(status).toMatch(/^CapEff:\s0+$/m);
    expect(status).toMatch(/^Seccomp:\s2$/m);
    expect(readFileSync(`/proc/${pid}/oom_score_adj`, "latin1").trim()).toBe("1000");
    await until(() => expect(one.state.memoryBytes ?? 0).toBeGreaterThan(1e6));
  });
});

describe("a process that was never needed", () => {
  it("is not started by close, and queued transactions are reported once", async () => {
    const { one, events, children } = open();
    one.send(sendRequest(1));
    await one.close();
    one.send(sendRequest(2));
    await Promise.resolve();
    expect(children.length).toBe(0);
    expect(events.map(({ id, kind }) => [id, kind])).toEqual([
      [1, "dropped"],
      [2, "dropped"],
    ]);
  });
});

describe("a process that cannot start", () => {
  it("is reported once per transaction", async () => {
    const { one, events } = open({
      clock: new ManualClock(),
      start: () => {
        throw new Error("planted");
      },
    });
    one.send(sendRequest(1));
    one.send(sendRequest(2));
    await until(() => expect(events.length).toBe(2));
    expect(events.map(({ id }) => id)).toEqual([1, 2]);
  });

  it("because its program is missing is reported", async () => {
    const stdio = ["ignore", "ignore", "pipe", "pipe"] as const;
    const { one, events } = open({
      clock: new ManualClock(),
      start: () => spawn("/nowhere/node", [], { stdio: [...stdio] }),
    });
    one.send(sendRequest(1));
    await until(() => expect(events).toMatchObject([{ id: 1, kind: "dropped" }]));
    expect(one.lastFailure).toMatch(/ENOENT/);
    expect(one.state.ends.not_started).toBeGreaterThan(0);
  });

  it("is retried at once, and then at growing intervals, even if it opens its sockets", async () => {
    const clock = new ManualClock();
    const start = scripted(`${openedScript} channel.end(() => process.exit(3));`);
    const { one, children } = open({ clock, start });
    one.selectLeaders([unusedAddress]);
    await until(() => expect(children.length).toBe(2));
    for (const pauseMs of [100, 200, 400]) {
      await until(() => expect(one.isUp).toBe(false));
      const { length } = children;
      await clock.advance(pauseMs - 1);
      expect(children.length).toBe(length);
      await clock.advance(1);
      expect(children.length).toBe(length + 1);
    }
  });

  it("drops offered transactions while it pauses, and reports its last words", async () => {
    const clock = new ManualClock();
    const start = scripted("throw new Error('planted')");
    const { one, events } = open({ clock, start });
    one.selectLeaders([unusedAddress]);
    one.send(sendRequest(1));
    await until(() => expect(one.isUp).toBe(false));
    const reason = "connection_lost: process_exited";
    expect(events).toMatchObject([{ id: 1, kind: "dropped", reason }]);
    expect(one.lastFailure).toContain("planted");
    one.send(sendRequest(2));
    await until(() => expect(events.length).toBe(2));
    expect(events[1]).toMatchObject({ id: 2, kind: "dropped", reason: "process_down" });
  });

  it("drops what it cannot send in time, if a process does not open its sockets", async () => {
    const clock = new ManualClock();
    const start = scripted("setInterval(() => {}, 1000)");
    const { one, events, children } = open({ clock, start });
    one.selectLeaders([unusedAddress]);
    one.send(sendRequest(1, unusedAddress, 1000));
    one.send(sendRequest(2, unusedAddress, 2000));
    await Promise.resolve();
    await clock.advance(999);
    expect(events).toEqual([]);
    await clock.advance(251);
    expect(events).toMatchObject([{ id: 1, kind: "dropped", reason: "process_down" }]);
    await clock.advance(1000);
    expect(events[1]).toMatchObject({ id: 2, kind: "dropped", reason: "process_down" });
    children[0]?.kill("SIGKILL"); // it does not end by itself
  });

  it("sends what is still in time to a process that starts slowly", async () => {
    const leader = await server();
    const clock = new ManualClock();
    const { one, events, children } = open({ clock });
    one.send(sendRequest(1, leader.address, 5000));
    one.send(sendRequest(2, leader.address, 60_000));
    await Promise.resolve();
    children[0]?.kill("SIGSTOP");
    await clock.advance(9000);
    expect(events).toMatchObject([{ id: 1, kind: "dropped", reason: "process_down" }]);
    children[0]?.kill("SIGCONT");
    await until(() => expect(events.at(-1)).toMatchObject({ id: 2, kind: "acknowledged" }));
    expect(leader.transactions.map(({ length }) => length)).toEqual([202]);
  });

  it("because of an invalid key reports that", async () => {
    const { one } = open({ credentials: { keyPem: "none", certificatePem: "none" } });
    one.selectLeaders([unusedAddress]);
    await until(() => expect(one.isUp).toBe(false));
    expect(one.lastFailure).toMatch(/the QUIC process ended: /);
    expect(one.state.ends.not_started).toBeGreaterThan(0);
  });
});
