// The TPU route: target leaders and addresses, reports, and identity.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import type { RouteConfig } from "../../../src/core/configuration/configuration.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import {
  type TpuRoute,
  type TpuRouteDependencies,
  tpuOpener,
} from "../../../src/gateway/routes/tpu-route.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { routeConfig, TestOutbound } from "../../support/gateway/partner.ts";
import {
  describeQuic,
  QuicServer,
  type QuicServerOptions,
} from "../../support/quic/quic-server.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";

const facts = fakeFacts(1);

/** Leaders a, b, c, … with windows of four slots, from slot 0. */
class Cluster {
  now: bigint | null = 0n;
  readonly addresses = new Map<string, { host: string; port: number }>();
  partners: ReadonlySet<string> = new Set();

  slot(): bigint | null {
    return this.now;
  }

  leaderAt(slot: bigint): string | null {
    return "abcdefgh"[Number(slot / 4n)] ?? null;
  }

  addressOf(identity: string) {
    return this.addresses.get(identity) ?? null;
  }

  async lead(identity: string, options: QuicServerOptions = {}): Promise<QuicServer> {
    const server = await QuicServer.open(options);
    closing({ close: () => server.close() });
    this.addresses.set(identity, server.address);
    return server;
  }
}

function readSeed(path: string): Uint8Array {
  const numbers: readonly number[] = JSON.parse(readFileSync(path, "utf8"));
  return Uint8Array.from(numbers.slice(0, 32));
}

function open(
  cluster: Cluster,
  config: Partial<RouteConfig> = {},
  parts: Partial<TpuRouteDependencies> = {},
): TpuRoute {
  const make = tpuOpener({
    clock: systemClock,
    leaders: cluster,
    addresses: cluster,
    partners: () => cluster.partners,
    readSeed,
    copyMsMax: 60_000,
    ...parts,
  });
  const route = make(routeConfig({ kind: "tpu", timeoutMs: 30_000, ...config }));
  closing({ close: () => route.close() });
  return route;
}

const until = (check: () => void) => vi.waitFor(check, { timeout: 60_000, interval: 5 });

function countersAddUp(route: TpuRoute): void {
  const { offered, turnedAway, acknowledged, refused, failed, dropped, queued, inFlight } =
    route.snapshot();
  expect(turnedAway + acknowledged + refused + failed + dropped).toBe(
    offered - BigInt(queued + inFlight),
  );
}

describeQuic("a route to leaders", () => {
  it("accepts single transactions of up to 4,096 bytes", () => {
    const route = open(new Cluster(), { name: "direct", mevSafe: true, minimumTipLamports: 5 });
    expect(route.capabilities).toEqual({
      name: "direct",
      kind: "tpu",
      modes: ["transaction"],
      transactionBytesMax: 4096,
      mevSafe: true,
      minimumTipLamports: 5n,
      leaders: null,
    });
    expect(route.offer(new TestOutbound([facts], { mode: "bundle" }))).toBe(false);
    expect(route.offer(new TestOutbound([facts, facts]))).toBe(false);
    expect(route.snapshot()).toMatchObject({ offered: 2n, turnedAway: 2n });
  });

  it("sends to the current leader and reports the result", async () => {
    const cluster = new Cluster();
    const [a, b] = [await cluster.lead("a"), await cluster.lead("b")];
    const route = open(cluster);
    const outbound = new TestOutbound([facts]);
    expect(route.offer(outbound)).toBe(true);
    expect(outbound.events).toEqual([]);
    await outbound.ended;
    expect(outbound.kinds).toBe("sent acknowledged");
    const [sent] = outbound.events;
    expect(sent).toMatchObject({ kind: "sent", bytes: facts.wire.length });
    expect(a.transactions).toEqual([Buffer.from(facts.wire)]);
    expect(b.transactions).toEqual([]);
    expect(route.snapshot()).toMatchObject({ health: "up", sent: 1n, acknowledged: 1n, queued: 0 });
    expect(route.snapshot().sendP50Us).not.toBeNull();
    countersAddUp(route);
    await until(() =>
      expect(route.leaders().find(({ identity }) => identity === "a")?.sent).toBe(1),
    );
  });

  it("also sends to the next leaders at the end of a window, and reports once", async () => {
    const cluster = new Cluster();
    const [a, b, c] = [await cluster.lead("a"), await cluster.lead("b"), await cluster.lead("c")];
    cluster.now = 2n;
    const route = open(cluster, { fanout: 2 });
    const outbound = new TestOutbound([facts]);
    expect(route.offer(outbound)).toBe(true);
    await until(() => expect([a, b].map((leader) => leader.transactions.length)).toEqual([1, 1]));
    await outbound.ended;
    expect(outbound.kinds).toBe("sent acknowledged");
    expect(c.transactions).toEqual([]);
    countersAddUp(route);
  });

  it("sends a protected transaction to no leader of the deny list", async () => {
    const cluster = new Cluster();
    const [a, b, c, d] = [
      await cluster.lead("a"),
      await cluster.lead("b"),
      await cluster.lead("c"),
      await cluster.lead("d"),
    ];
    cluster.now = 3n;
    const route = open(cluster, { fanout: 4 });
    const deniedLeaders = new Set(["c"]);
    const outbound = new TestOutbound([facts], { deniedLeaders });
    expect(route.offer(outbound)).toBe(true);
    await until(() =>
      expect([a, b, d].map((leader) => leader.transactions.length)).toEqual([1, 1, 1]),
    );
    expect((await outbound.ended).kind).toBe("acknowledged");
    expect(c.transactions).toEqual([]);
    // The leader changed after the plan: nobody is left.
    cluster.now = 8n;
    expect(route.offer(new TestOutbound([facts], { deniedLeaders }))).toBe(false);
    expect(route.isUp).toBe(true);
    countersAddUp(route);
  });

  it("sends to one leader what another refuses", async () => {
    const cluster = new Cluster();
    const [a, b] = [await cluster.lead("a"), await cluster.lead("b")];
    a.refusal = { code: 2, isApp: true };
    cluster.now = 3n;
    const route = open(cluster);
    const outbounds = Array.from({ length: 5 }, () => new TestOutbound([facts]));
    for (const outbound of outbounds) expect(route.offer(outbound)).toBe(true);
    await Promise.all(outbounds.map(({ ended }) => ended));
    expect(outbounds.map(({ kinds }) => kinds)).toEqual(outbounds.map(() => "sent acknowledged"));
    expect(b.transactions.length).toBe(5);
    countersAddUp(route);
  });

  it("reports a transaction that every leader refused, with the leader's reason", async () => {
    const cluster = new Cluster();
    const a = await cluster.lead("a");
    a.refusal = { code: 2, isApp: true };
    const route = open(cluster, { connectAheadSlots: 0 });
    await until(() => expect(route.leaders()[0]?.closes["disallowed"]).toBeGreaterThan(0));
    const deadlineNs = systemClock.nowNs() + 1_000_000n;
    const outbounds = Array.from({ length: 5 }, () => new TestOutbound([facts], { deadlineNs }));
    for (const outbound of outbounds) expect(route.offer(outbound)).toBe(true);
    await Promise.all(outbounds.map(({ ended }) => ended));
    for (const { events, kinds } of outbounds) {
      // Between two pauses a connection exists briefly.
      expect(["dropped", "sent failed"]).toContain(kinds);
      const end = events.at(-1);
      expect(end && "reason" in end ? end.reason : "").toMatch(/disallowed|deadline_passed/);
    }
    expect(route.snapshot()).toMatchObject({ acknowledged: 0n, queued: 0, inFlight: 0 });
    countersAddUp(route);
  });

  it("connects before the leader's slots and follows a changed address", async () => {
    const cluster = new Cluster();
    await cluster.lead("a");
    const b = await cluster.lead("b");
    const c = await cluster.lead("c");
    open(cluster, { connectAheadSlots: 4 });
    await until(() => expect(b.connections).toBe(1));
    expect(c.initials).toBe(0);
    const elsewhere = await cluster.lead("b");
    await until(() => expect(elsewhere.connections).toBe(1));
    await until(() => expect(b.connections).toBe(0));
    cluster.now = 4n;
    await until(() => expect(c.connections).toBe(1));
  });

  it("is connected with the leaders of the next two windows before they begin", async () => {
    const cluster = new Cluster();
    const leaders = new Map<string, QuicServer>();
    for (const identity of "abcdefg") leaders.set(identity, await cluster.lead(identity));
    const clock = new ManualClock();
    open(cluster, { connectAheadSlots: 16, connections: 4 }, { clock });
    for (let window = 0; window < 5; window++) {
      cluster.now = BigInt(window) * 4n;
      // Two selections.
      await clock.advance(140);
      const near = [...leaders.keys()].slice(window, window + 3);
      await until(() => {
        for (const identity of near) expect(leaders.get(identity)?.connections).toBe(1);
      });
    }
    // Nobody had to be connected with twice.
    for (const { initials } of leaders.values()) expect(initials).toBeLessThanOrEqual(1);
  });

  it("is down while no leader or address is known, and says why", async () => {
    const cluster = new Cluster();
    const route = open(cluster);
    expect(route.isUp).toBe(false);
    expect(route.offer(new TestOutbound([facts]))).toBe(false);
    expect(route.snapshot()).toMatchObject({ health: "down", turnedAway: 1n });
    expect(route.snapshot().lastFailure).toMatch(/no QUIC address is known for the leaders a$/);
    cluster.now = null;
    expect(route.snapshot().lastFailure).toMatch(/the current leader is unknown/);
    await cluster.lead("a");
    cluster.now = 0n;
    expect(route.isUp).toBe(true);
    expect(route.snapshot().lastFailure).toBe("");
  });

  it("uses the plan's leader if the slot is unknown", async () => {
    const cluster = new Cluster();
    const c = await cluster.lead("c");
    cluster.now = null;
    const route = open(cluster);
    const outbound = new TestOutbound([facts], { leader: "c" });
    expect(route.offer(outbound)).toBe(true);
    expect((await outbound.ended).kind).toBe("acknowledged");
    expect(c.transactions.length).toBe(1);
  });

  it("uses configured addresses", async () => {
    const cluster = new Cluster();
    const a = await cluster.lead("a");
    cluster.addresses.set("a", { host: "192.0.2.1", port: 1 });
    const route = open(cluster, { quicAddresses: { a: `127.0.0.1:${a.port}` } });
    const outbound = new TestOutbound([facts]);
    expect(route.offer(outbound)).toBe(true);
    expect((await outbound.ended).kind).toBe("acknowledged");
  });

  it("accepts no more than its queue size", async () => {
    const cluster = new Cluster();
    const a = await cluster.lead("a");
    a.isSilent = true;
    const route = open(cluster, { queueMax: 10 });
    const outbounds = Array.from({ length: 20 }, () => new TestOutbound([facts]));
    const accepted = outbounds.filter((outbound) => route.offer(outbound));
    expect(accepted.length).toBe(10);
    await route.close();
    expect(accepted.map(({ kinds }) => kinds)).toEqual(accepted.map(() => "dropped"));
    countersAddUp(route);
    expect(route.offer(new TestOutbound([facts]))).toBe(false);
    expect(route.isUp).toBe(false);
  });

  it("drops copies for a dead leader soon, so that others have space", async () => {
    const cluster = new Cluster();
    const [a, b] = [await cluster.lead("a"), await cluster.lead("b")];
    a.isSilent = true;
    const route = open(cluster, { queueMax: 2 }, { copyMsMax: 50 });
    const dead = [new TestOutbound([facts]), new TestOutbound([facts])];
    for (const outbound of dead) expect(route.offer(outbound)).toBe(true);
    cluster.now = 4n;
    expect(route.offer(new TestOutbound([facts]))).toBe(false);
    await Promise.all(dead.map(({ ended }) => ended));
    expect(dead.map(({ kinds }) => kinds)).toEqual(["dropped", "dropped"]);
    await until(() => expect(b.connections).toBe(1));
    expect(route.offer(new TestOutbound([facts]))).toBe(true);
    countersAddUp(route);
  });
});

describeQuic("the identity", () => {
  it("is read from the file, follows its changes, and otherwise stays valid", async () => {
    const path = join(temporaryFolder(), "identity.json");
    const write = (fill: number) =>
      writeFileSync(path, JSON.stringify(Array.from({ length: 64 }, () => fill)));
    write(1);
    const cluster = new Cluster();
    const a = await cluster.lead("a");
    const route = open(cluster, { identityFile: path });
    await until(() => expect(a.identities.length).toBe(1));
    write(2);
    await until(() => expect(new Set(a.identities).size).toBe(2));
    writeFileSync(path, "[");
    const outbound = new TestOutbound([facts]);
    expect(route.offer(outbound)).toBe(true);
    expect((await outbound.ended).kind).toBe("acknowledged");
    write(3);
    await until(() => expect(new Set(a.identities).size).toBe(3));
  });

  it("that is unreadable prevents the route", () => {
    expect(() => open(new Cluster(), { identityFile: "/nowhere/identity.json" })).toThrow(/ENOENT/);
  });
});

describeQuic("a route to alternative partners", () => {
  it("sends only to the plan's leader, on the port for the transaction's protection", async () => {
    const cluster = new Cluster();
    const [plain, safe] = [await cluster.lead("x"), await cluster.lead("y")];
    cluster.addresses.set("b", { host: "127.0.0.1", port: 1 });
    cluster.partners = new Set(["b"]);
    cluster.now = 2n;
    const route = open(cluster, {
      kind: "alt-partner",
      quicPorts: { plain: plain.port, protected: safe.port },
    });
    expect(route.capabilities).toMatchObject({ kind: "alt-partner", leaders: null });
    await until(() => expect([plain.connections, safe.connections]).toEqual([1, 1]));
    for (const revertProtection of [false, true]) {
      const outbound = new TestOutbound([facts], { leader: "b", revertProtection });
      expect(route.offer(outbound)).toBe(true);
      expect((await outbound.ended).kind).toBe("acknowledged");
    }
    expect([plain.transactions.length, safe.transactions.length]).toEqual([1, 1]);
    expect(route.offer(new TestOutbound([facts]))).toBe(false);
    expect(route.offer(new TestOutbound([facts], { leader: "unknown" }))).toBe(false);
  });

  it("does not connect with leaders that are not partners", async () => {
    const cluster = new Cluster();
    const b = await cluster.lead("b");
    cluster.addresses.set("a", { host: "127.0.0.2", port: 1 });
    cluster.partners = new Set(["b"]);
    const route = open(cluster, {
      kind: "alt-partner",
      quicPorts: { plain: b.port, protected: b.port },
    });
    await until(() => expect(b.connections).toBe(1));
    await until(() => expect(route.leaders().length).toBeGreaterThan(0));
    expect(route.leaders().map(({ address }) => address)).toEqual([`127.0.0.1:${b.port}`]);
  });
});

describe("openRoute", () => {
  const refusal = (run: () => unknown): ShredwayError => {
    try {
      run();
    } catch (error) {
      if (error instanceof ShredwayError) return error;
    }
    throw new Error("expected a ShredwayError, got none");
  };

  it.each([
    { kind: "tpu" as const },
    { kind: "alt-partner" as const, quicPorts: { plain: 1, protected: 2 } },
  ])("refuses $kind without QUIC, with installation instructions", (config) => {
    const error = refusal(() =>
      openRoute(routeConfig(config), { clock: systemClock, openTpu: null }),
    );
    expect(error.reason).toBe("config_invalid");
    expect(error.message).toMatch(
      /route partner: QUIC is not available.*npm install --include=optional/,
    );
  });

  it("uses openTpu for routes over QUIC", () => {
    const names: string[] = [];
    const openTpu = (config: RouteConfig) => {
      names.push(config.name);
      throw new Error("planted");
    };
    const parts = { clock: systemClock, openTpu };
    expect(() => openRoute(routeConfig({ kind: "tpu", name: "t" }), parts)).toThrow("planted");
    const http = openRoute(routeConfig({ kind: "swqos", url: "http://127.0.0.1:1" }), parts);
    closing({ close: () => http.close() });
    expect(names).toEqual(["t"]);
  });
});
