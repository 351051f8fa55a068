// Another sender over QUIC in the benchmark: its contract, and the quantile of the event loop's delay.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { buildQuicProxy, peerProgram, startPeer } from "../../bench/load/peer-process.ts";
import { processTreeUs } from "../../bench/load/process-cpu.ts";
import { bucketQuantile } from "../../bench/sections/loop-section.ts";
import { buildTimeoutMs, ngtcp2Problem } from "../support/quic/interop/ngtcp2-leader.ts";
import { quiche } from "../support/quic/quic-client.ts";
import { QuicServer } from "../support/quic/quic-server.ts";

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "shredway-"));
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

describe("SHREDWAY_PEER_SENDER", () => {
  it("is optional", () => {
    vi.stubEnv("SHREDWAY_PEER_SENDER", "");
    expect(peerProgram()).toBeNull();
  });

  it("must be an executable file", () => {
    const path = join(folder, "sender");
    writeFileSync(path, "", { mode: 0o600 });
    vi.stubEnv("SHREDWAY_PEER_SENDER", path);
    expect(() => peerProgram()).toThrow(`expected the path of an executable file, got "${path}"`);
    vi.stubEnv("SHREDWAY_PEER_SENDER", process.execPath);
    expect(peerProgram()).toBe(process.execPath);
  });

  it("that ends at once is reported", async () => {
    const started = startPeer("/bin/false", { leaderPort: 9, folder });
    await expect(started).rejects.toThrow(/^\/bin\/false: expected a listener at .*ended with 1$/);
  });
});

describe.skipIf(ngtcp2Problem !== null || !quiche)("the native proxy", () => {
  it("sends each transaction to the leader", { timeout: buildTimeoutMs }, async () => {
    const leader = await QuicServer.open({});
    onTestFinished(() => leader.close());
    const program = buildQuicProxy(folder) ?? "";
    const { child, port } = await startPeer(program, { leaderPort: leader.port, folder });
    onTestFinished(() => void child.kill("SIGKILL"));
    const wires = [0, 1, 2].map((i) => Buffer.alloc(1000, i + 1));
    for (const [id, wire] of wires.entries()) {
      const params = [wire.toString("base64"), { encoding: "base64" }];
      const response = await fetch(`http://127.0.0.1:${port}/`, {
        method: "POST",
        body: JSON.stringify({ jsonrpc: "2.0", id, method: "sendTransaction", params }),
      });
      expect(await response.json()).toHaveProperty("result");
    }
    await vi.waitFor(() => expect(leader.transactions.length).toBe(3), { timeout: 60_000 });
    expect(leader.transactions).toEqual(wires);
    expect(processTreeUs(process.pid)).toBeGreaterThanOrEqual(processTreeUs(child.pid ?? 0));
  });
});

describe("the quantile of buckets", () => {
  const before = new Map([
    [0.001, 10],
    [0.005, 20],
    [Infinity, 20],
  ]);

  it("counts only what was added, and interpolates in its bucket", () => {
    const after = new Map([
      [0.001, 60],
      [0.005, 120],
      [Infinity, 120],
    ]);
    expect(bucketQuantile(before, after, 0.5)).toBeCloseTo(0.001);
    expect(bucketQuantile(before, after, 0.75)).toBeCloseTo(0.003);
  });

  it("is at least the largest bound if it is above all bounds, and unknown without values", () => {
    const after = new Map([
      [0.001, 10],
      [0.005, 20],
      [Infinity, 21],
    ]);
    expect(bucketQuantile(before, after, 0.99)).toBe(0.005);
    expect(bucketQuantile(before, before, 0.99)).toBeNaN();
  });
});
