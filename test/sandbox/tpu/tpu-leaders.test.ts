// The leaders of a sandbox over QUIC: acceptance by slot and stake, and getClusterNodes.

import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { credentialsOf } from "../../../src/core/quic/certificate.ts";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { RpcEndpoint } from "../../../src/sandbox/rpc/endpoint.ts";
import { SandboxTpu, type SandboxTpuOptions } from "../../../src/sandbox/tpu/tpu-leaders.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { needQuiche, QuicClient, quiche } from "../../support/quic/quic-client.ts";
import { alice, bob, ChainRun } from "../../support/transactions/chain.ts";

const gateway = SandboxKeyPair.named(1, "gateway");
const staked = { stakes: new Map([[gateway.address, 10n ** 15n]]) };

class Cluster {
  readonly run: ChainRun;
  readonly tpu: SandboxTpu;

  static async open(options: SandboxTpuOptions = {}): Promise<Cluster> {
    const run = await ChainRun.open({ validators: 30 });
    run.slots(2);
    const tpu = await SandboxTpu.open(
      run.chain,
      { quiche: needQuiche(), clock: systemClock },
      // Long, because the machine may be busy.
      { ...options, limits: { handshakeMs: 30_000, streamMs: 30_000, ...options.limits } },
    );
    return new Cluster(run, closing(tpu));
  }

  private constructor(run: ChainRun, tpu: SandboxTpu) {
    this.run = run;
    this.tpu = tpu;
  }

  leaderAt(slot: bigint): string {
    return this.run.chain.leaderOf(slot) ?? "";
  }

  /** A leader whose next slot is at least `from` slots away. */
  nextLeader(from: bigint): { readonly identity: string; readonly slot: bigint } {
    const now = this.run.chain.currentSlot;
    const before = new Set<string>();
    for (let slot = now; slot < now + 1000n; slot++) {
      const identity = this.leaderAt(slot);
      if (slot >= now + from && !before.has(identity)) return { identity, slot };
      before.add(identity);
    }
    throw new Error(`expected a leader whose next slot is at least ${from} slots away, got none`);
  }

  connect(identity: string): Promise<QuicClient> {
    const credentials = credentialsOf(gateway.seed);
    return QuicClient.open(this.tpu.addressOf(identity) ?? "", { credentials });
  }

  async send(identity: string, wire: Uint8Array): Promise<void> {
    const { counts } = this.tpu.leaders.get(identity) ?? {};
    const before = counts?.transactions ?? 0;
    (await this.connect(identity)).send(wire);
    await until(() => (counts?.transactions ?? 0) > before, "a transaction");
  }
}

describe.skipIf(!quiche)("leaders of a sandbox over QUIC", () => {
  it("has its own port for each validator", async () => {
    const { tpu, run } = await Cluster.open();
    const addresses = run.chain.validators().map(({ identity }) => tpu.addressOf(identity));
    expect(new Set(addresses).size).toBe(30);
    expect(tpu.addressOf(gateway.address)).toBe(null);
  });

  it("executes transactions in the leader's own slots", async () => {
    const cluster = await Cluster.open();
    const { run, tpu } = cluster;
    const before = run.balance(bob);
    await cluster.send(cluster.leaderAt(run.chain.currentSlot), run.transfer(alice, bob, 5n));
    expect(tpu.counts).toMatchObject({ executed: 1, held: 0 });
    run.slots(1);
    expect(run.balance(bob)).toBe(before + 5n);
  });

  it("holds early transactions until its leader's slots", async () => {
    const cluster = await Cluster.open();
    const { run, tpu } = cluster;
    const { identity, slot } = cluster.nextLeader(4n);
    const before = run.balance(bob);
    await cluster.send(identity, run.transfer(alice, bob, 5n));
    expect(tpu.counts).toMatchObject({ executed: 0, held: 1 });
    run.slots(Number(slot - run.chain.currentSlot) - 1);
    expect(tpu.counts.executed).toBe(0);
    run.slots(2);
    expect(tpu.counts).toMatchObject({ executed: 1, late: 0 });
    expect(run.balance(bob)).toBe(before + 5n);
    expect(run.chain.block(slot)?.transactions.length).toBe(1);
  });

  it("holds them also if the first of these slots is skipped", async () => {
    const cluster = await Cluster.open();
    const { run, tpu } = cluster;
    const { identity, slot } = cluster.nextLeader(4n);
    await cluster.send(identity, run.transfer(alice, bob, 5n));
    run.slots(Number(slot - run.chain.currentSlot) - 1);
    run.chain.faults.skipNext(1);
    run.slots(3);
    expect(tpu.counts.executed).toBe(1);
    expect(run.chain.block(slot)).toBe(null);
    expect(run.chain.block(slot + 1n)?.transactions.length).toBe(1);
  });

  it("drops transactions that its leader cannot execute soon, and forwards those of staked peers", async () => {
    const cluster = await Cluster.open();
    const { identity } = cluster.nextLeader(60n);
    await cluster.send(identity, cluster.run.transfer(alice, bob, 5n));
    expect(cluster.tpu.counts).toMatchObject({ late: 1, forwarded: 0 });
    const other = await Cluster.open(staked);
    const before = other.run.balance(bob);
    await other.send(identity, other.run.transfer(alice, bob, 5n));
    expect(other.tpu.counts).toMatchObject({ late: 0, forwarded: 1 });
    other.run.slots(1);
    expect(other.run.balance(bob)).toBe(before + 5n);
  });

  it("counts transactions that the chain rejects, and continues", async () => {
    const cluster = await Cluster.open(staked);
    const { run, tpu } = cluster;
    const leader = cluster.leaderAt(run.chain.currentSlot);
    const forged = run.transfer(alice, bob, 5n);
    forged[10] = (forged[10] ?? 0) ^ 1;
    await cluster.send(leader, forged);
    await cluster.send(leader, randomBytes(300));
    expect(tpu.counts.refused).toBe(2);
    const before = run.balance(bob);
    await cluster.send(leader, run.transfer(alice, bob, 5n));
    run.slots(1);
    expect(run.balance(bob)).toBe(before + 5n);
  });

  it("is listed by getClusterNodes with its current address", async () => {
    const { run, tpu } = await Cluster.open();
    const endpoint = closing(
      await RpcEndpoint.open(run.chain, systemClock, {
        listen: "127.0.0.1:0",
        tpuQuicAddress: (identity) => tpu.addressOf(identity),
      }),
    );
    const client = new RpcClient(`http://${endpoint.address}`);
    const clusterNodes = async (): Promise<unknown[]> => {
      const nodes: unknown = await client.call("getClusterNodes", []);
      if (!Array.isArray(nodes)) throw new Error("expected a list");
      return nodes.map((node: { tpuQuic: unknown }) => node.tpuQuic);
    };
    const addresses = () => run.chain.validators().map(({ identity }) => tpu.addressOf(identity));
    expect(await clusterNodes()).toEqual(addresses());
    const [first] = tpu.leaders.values();
    await first?.move();
    expect(await clusterNodes()).toEqual(addresses());
    const bare = closing(await RpcEndpoint.open(run.chain, systemClock, { listen: "127.0.0.1:0" }));
    const nodes = await new RpcClient(`http://${bare.address}`).call("getClusterNodes", []);
    expect(nodes).toMatchObject(addresses().map(() => ({ tpuQuic: null })));
  });
});
