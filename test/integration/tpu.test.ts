// The TPU route over the leaders of a sandbox, end to end: threads, sockets, QUIC, chain.

import { describe, expect, it } from "vitest";
import { parseEndpoint } from "../../src/core/addresses/addresses.ts";
import { systemClock } from "../../src/core/clock.ts";
import { credentialsOf } from "../../src/core/quic/certificate.ts";
import { NodeAddresses } from "../../src/gateway/tpu/node-addresses.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { RpcEndpoint } from "../../src/sandbox/rpc/endpoint.ts";
import type { CloseReason } from "../../src/sandbox/tpu/limits.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { closing } from "../support/closing.ts";
import { LossyLink } from "../support/network/lossy-link.ts";
import { until } from "../support/network/udp-receiver.ts";
import { QuicClient, quiche } from "../support/quic/quic-client.ts";
import { restart } from "../support/quic/tpu-restart.ts";
import { addressesIn, gateway, TpuRun } from "../support/quic/tpu-run.ts";
import { isFullRun } from "../support/vitest/test-scope.ts";

const retryMs = 60_000;
const good = "sent acknowledged";

/** Offers transactions one after the other until one lands, as a client that retries would. */
async function expectLanding(run: TpuRun): Promise<void> {
  const end = performance.now() + retryMs;
  while (performance.now() < end) {
    if (run.offer(5000)) {
      await run.ended();
      if (run.outbound.at(-1)?.kinds === good) return;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`expected a transaction that comes through, got none in ${retryMs} ms`);
}

describe.skipIf(!quiche)("transactions to the leaders of a sandbox over QUIC", () => {
  it("land in the slots of the leader that received them", async () => {
    const run = await TpuRun.open();
    run.toWindow();
    expect(await run.send()).toBe(good);
    const { slot } = run;
    await until(() => run.tpu.counts.executed === 1, "the leader's taking it");
    run.chain.slots(1);
    expect(run.landed).toBe(1);
    expect(run.chain.chain.block(slot)?.transactions.length).toBe(1);
  });

  it("follow the leaders, and reach the next one if they may be late for the current one", async () => {
    const run = await TpuRun.open();
    run.toWindow();
    const first = run.slot;
    let copies = 0;
    for (let i = 0; i < 24; i++) {
      const { slot } = run;
      expect(await run.send()).toBe(good);
      const isShared = slot % 4n >= 2n && run.leader() !== run.leader((slot / 4n + 1n) * 4n);
      copies += isShared ? 2 : 1;
      const { counts, leaders } = run.tpu;
      const arrived = (): number =>
        [...leaders.values()].reduce((sum, leader) => sum + leader.counts.transactions, 0);
      await until(() => arrived() === copies, `${copies} copies`);
      expect(counts).toMatchObject({ late: 0, forwarded: 0 });
      run.chain.slots(1);
    }
    expect(run.landed).toBe(24);
    expect(copies).toBeGreaterThan(24);
    for (let i = 0n; i < 24n; i++) {
      expect(run.chain.chain.block(first + i)?.transactions.length).toBe(1);
    }
  });

  it("land over many leaders: none is stuck or lost", async () => {
    const run = await TpuRun.open({
      isStaked: true,
      chain: { validators: 40, slotMs: 60 },
      route: { queueMax: 4000 },
    });
    const total = isFullRun ? 1000 : 250;
    const perSlot = 10;
    run.drive();
    let slot = run.slot;
    while (run.outbound.length < total) {
      await until(() => run.slot > slot, "another slot");
      slot = run.slot;
      for (let i = 0; i < perSlot; i++) run.offer();
    }
    await run.ended();
    await run.executed(total);
    expect(run.landed).toBe(total);
    expect(run.outcomes).toEqual({ [good]: total });
    const { counts, leaders } = run.tpu;
    expect(counts).toMatchObject({ late: 0, overflowed: 0, refused: 0 });
    const used = [...leaders.values()].filter((leader) => leader.counts.transactions > 0);
    expect(used.length).toBeGreaterThan(total / 110);
    expect(run.route.snapshot()).toMatchObject({ queued: 0, inFlight: 0 });
  });

  it("get exactly one end each while the QUIC process is killed again and again", async () => {
    const run = await TpuRun.open({
      isStaked: true,
      chain: { validators: 40, slotMs: 60 },
      route: { queueMax: 4000 },
    });
    run.drive();
    const kills = isFullRun ? 12 : 4;
    const perTurn = 25;
    for (let killed = 0; killed < kills; killed++) {
      // One that comes through, so that the process is at work.
      await expectLanding(run);
      const { pid } = run.route.process;
      for (let turn = 0; turn < 8; turn++) {
        for (let i = 0; i < perTurn; i++) run.offer();
        await new Promise((resolve) => setImmediate(resolve));
        if (turn === 4 && pid !== null) process.kill(pid, "SIGKILL");
      }
      await until(() => run.route.process.pid !== pid, "the end of the process");
      const ends = Object.values(run.route.process.ends).reduce((sum, count) => sum + count, 0);
      expect(ends).toBe(killed + 1);
    }
    await run.ended();
    await expectLanding(run);
    for (const outbound of run.outbound) {
      const finals = outbound.events.filter(({ kind }) => kind !== "sent");
      expect(finals.length).toBe(1);
    }
    const lost = Object.keys(run.outcomes).filter((outcome) => outcome !== good);
    expect(lost.length).toBeGreaterThan(0);
    const expected = /^(sent failed|dropped): connection_lost: process_exited$/;
    expect(lost.filter((outcome) => !expected.test(outcome))).toEqual([]);
    expect(run.route.snapshot()).toMatchObject({ health: "up", queued: 0, inFlight: 0 });
  });

  it("reach a leader that grants little to unstaked connections", async () => {
    const run = await TpuRun.open({ tpu: { limits: { streamsMax: 16 } } });
    run.toWindow();
    for (let i = 0; i < 300; i++) expect(run.offer()).toBe(true);
    await run.ended();
    expect(run.outcomes).toEqual({ [good]: 300 });
    await until(() => run.leader().counts.transactions === 300, "300 transactions");
    run.chain.slots(1);
    expect(run.landed).toBe(300);
  });

  it("pass a link that loses a fifth of all packets", async () => {
    const links = new Map<string, LossyLink>();
    const run = await TpuRun.open({
      isStaked: true,
      addresses: () => ({
        addressOf: (identity) => links.get(identity)?.address ?? null,
      }),
    });
    for (const [identity, { address }] of run.tpu.leaders) {
      const { port } = parseEndpoint(address);
      links.set(
        identity,
        closing(await LossyLink.open(port, { loss: 0.2, delayMs: 2 }, links.size)),
      );
    }
    run.toWindow();
    for (let i = 0; i < 300; i++) expect(run.offer()).toBe(true);
    await run.ended();
    expect(run.outcomes).toEqual({ [good]: 300 });
    await until(() => run.leader().counts.transactions === 300, "300 transactions");
    run.chain.slots(1);
    expect(run.landed).toBe(300);
    expect([...links.values()].reduce((sum, { lost }) => sum + lost, 0)).toBeGreaterThan(10);
  });
});

describe.skipIf(!quiche)("failing leaders of the TPU route", () => {
  it.each<CloseReason | "certificate">([
    "dropped",
    "disallowed",
    "exceed_max_stream_count",
    "too_many",
    "certificate",
  ])("outlives a refusal: %s", async (reason) => {
    const run = await TpuRun.open();
    run.toWindow();
    const leader = run.leader();
    leader.faults.refuse = reason;
    run.offer(1000);
    await run.ended();
    const [firstOutbound] = run.outbound;
    expect(firstOutbound?.kinds).toMatch(/^(dropped|sent failed)$/);
    const name = reason === "certificate" ? "tls_decode_error" : reason;
    const closes = (): number =>
      run.route.leaders().find(({ address }) => address === leader.address)?.closes[name] ?? 0;
    await until(() => closes() > 0, `an end named ${name}`);
    leader.faults.refuse = null;
    await expectLanding(run);
  });

  it("wait for a connection while other clients use all of them", async () => {
    const limits = { connectionsPerPeer: 1, idleMs: 60_000 };
    let isTaken = false;
    const run = await TpuRun.open({
      isStaked: true,
      tpu: { limits },
      // Until then the route would connect first, because it connects ahead.
      addresses: ({ tpu }) => ({
        addressOf: (identity) => (isTaken ? addressesIn(tpu).addressOf(identity) : null),
      }),
    });
    run.toWindow();
    const leader = run.leader();
    const impostor = await QuicClient.open(leader.address, {
      credentials: credentialsOf(gateway.seed),
      idleTimeoutMs: 60_000,
    });
    await until(() => leader.connections === 1, "the squatter");
    isTaken = true;
    expect(run.offer()).toBe(true);
    await until(() => leader.counts.closed.too_many > 0, "a refusal");
    expect(leader.counts.transactions).toBe(0);
    await impostor.close();
    await expectLanding(run);
  });

  it("are used again after a restart", async () => {
    const run = await TpuRun.open();
    run.toWindow();
    const leader = run.leader();
    expect(await run.send()).toBe(good);
    await restart(leader);
    // Transactions in flight are reported as failed; the next connection is a new one.
    await expectLanding(run);
  });

  it("are found at a new address by another query to the node", async () => {
    const clock = ManualClock.running();
    const run = await TpuRun.open({
      clock,
      addresses: ({ chain, tpu }) => {
        const opening = RpcEndpoint.open(chain.chain, systemClock, {
          listen: "127.0.0.1:0",
          tpuQuicAddress: (identity) => tpu.addressOf(identity),
        });
        const nodes = {
          clusterNodes: async () => {
            const { address } = await opening;
            return new RpcClient(`http://${address}`).clusterNodes();
          },
        };
        closing({ close: async () => (await opening).close() });
        return closing(new NodeAddresses({ nodes, clock, allowPrivate: true }));
      },
    });
    run.toWindow();
    await until(() => run.route.isUp, "addresses");
    expect(await run.send()).toBe(good);
    const leader = run.leader();
    const { address } = leader;
    await leader.move();
    expect(leader.address).not.toBe(address);
    clock.move(600_000); // the next query is due
    await expectLanding(run);
    expect(leader.counts.transactions).toBeGreaterThan(1);
  });

  it("are reported when silent, and the next one is used", async () => {
    const run = await TpuRun.open();
    run.toWindow();
    // Before it could answer, because it runs on this thread.
    run.leader().faults.silent = true;
    expect(run.offer(500)).toBe(true);
    await run.ended();
    expect(run.outbound[0]?.kinds).toBe("dropped");
    run.chain.slots(4);
    expect(await run.send()).toBe(good);
  });
});
