// Leader addresses: rarely queried, sooner when needed, and validated.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NodeAddresses, tpuAddressOf } from "../../../src/gateway/tpu/node-addresses.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

class Node {
  requests = 0;
  nodes: { identity: string; tpuQuic: string | null }[] = [];
  failure: Error | null = null;

  async clusterNodes() {
    this.requests++;
    if (this.failure) throw this.failure;
    return this.nodes;
  }
}

function open(allowPrivate = false) {
  const clock = new ManualClock();
  const node = new Node();
  const addresses = new NodeAddresses({ nodes: node, clock, allowPrivate });
  return { clock, node, addresses };
}

const a = { identity: "a", tpuQuic: "198.51.100.1:8009" };

describe("NodeAddresses", () => {
  it("queries at the first use, then every three minutes", async () => {
    const { clock, node, addresses } = open();
    node.nodes = [a];
    await clock.advance(600_000);
    expect(node.requests).toBe(0);
    expect(addresses.addressOf("a")).toBeNull();
    await clock.advance(0);
    expect(addresses.addressOf("a")).toEqual({ host: "198.51.100.1", port: 8009 });
    await clock.advance(179_999);
    expect(node.requests).toBe(1);
    node.nodes = [{ identity: "a", tpuQuic: "198.51.100.2:9000" }];
    await clock.advance(1);
    expect(node.requests).toBe(2);
    expect(addresses.addressOf("a")).toEqual({ host: "198.51.100.2", port: 9000 });
  });

  it("queries sooner for an unknown leader, but not at every use", async () => {
    const { clock, node, addresses } = open();
    node.nodes = [a];
    for (let i = 0; i < 100; i++) {
      expect(addresses.addressOf("b")).toBeNull();
      await clock.advance(100);
    }
    expect(node.requests).toBe(2);
    node.nodes = [a, { identity: "b", tpuQuic: "198.51.100.3:8009" }];
    await clock.advance(5000);
    addresses.addressOf("b");
    await clock.advance(0);
    expect(addresses.addressOf("b")).toEqual({ host: "198.51.100.3", port: 8009 });
  });

  it("queries at growing intervals for a missing leader, and rarely for one without address", async () => {
    const { clock, node, addresses } = open();
    node.nodes = [a, { identity: "c", tpuQuic: null }, { identity: "d", tpuQuic: "10.0.0.1:8009" }];
    addresses.addressOf("c");
    await clock.advance(0);
    for (let i = 0; i < 170; i++) {
      expect(addresses.addressOf("c") ?? addresses.addressOf("d")).toBeNull();
      await clock.advance(1000);
    }
    expect(node.requests).toBe(1);
    for (let i = 0; i < 160; i++) {
      addresses.addressOf("b");
      await clock.advance(1000);
    }
    // After 170 s, then 10, 20, 40 and 80 s later.
    expect(node.requests).toBe(6);
  });

  it("keeps the last addresses while the node fails, and retries after five seconds", async () => {
    const { clock, node, addresses } = open();
    node.nodes = [a];
    addresses.addressOf("a");
    await clock.advance(0);
    node.failure = new Error("planted");
    await clock.advance(180_000);
    expect(node.requests).toBe(2);
    expect(addresses.addressOf("a")).not.toBeNull();
    expect(addresses.lastFailure).toBe("planted");
    node.failure = null;
    await clock.advance(5000);
    expect(node.requests).toBe(3);
    expect(addresses.lastFailure).toBe("");
  });

  it("keeps the last addresses while the node lists no nodes, and says so", async () => {
    const { clock, node, addresses } = open();
    node.nodes = [a];
    addresses.addressOf("a");
    await clock.advance(0);
    node.nodes = [];
    await clock.advance(180_000);
    expect(addresses.addressOf("a")).not.toBeNull();
    expect(addresses.lastFailure).toContain("got an empty list");
    node.nodes = [{ ...a, tpuQuic: "198.51.100.2:8009" }];
    await clock.advance(5000);
    expect(addresses.addressOf("a")?.host).toBe("198.51.100.2");
    expect(addresses.lastFailure).toBe("");
  });

  it("keeps addresses that an incomplete response lacks, for an hour of such responses", async () => {
    const { clock, node, addresses } = open();
    const b = { identity: "b", tpuQuic: "198.51.100.2:8009" };
    node.nodes = [a, b];
    addresses.addressOf("a");
    await clock.advance(0);
    // An outage longer than an hour, then a node that has just started.
    node.failure = new Error("planted");
    await clock.advance(7_200_000);
    node.failure = null;
    node.nodes = [{ ...b, tpuQuic: "198.51.100.3:8009" }];
    await clock.advance(5000);
    expect(addresses.addressOf("a")?.host).toBe("198.51.100.1");
    expect(addresses.addressOf("b")?.host).toBe("198.51.100.3");
    // The response lacked this leader, so it is asked for again soon.
    const { requests } = node;
    await clock.advance(5000);
    addresses.addressOf("a");
    await clock.advance(0);
    expect(node.requests).toBe(requests + 1);
    // A response with it starts the hour again.
    node.nodes = [a, b];
    await clock.advance(180_000);
    node.nodes = [b];
    await clock.advance(3_600_000);
    expect(addresses.addressOf("a")?.host).toBe("198.51.100.1");
    await clock.advance(180_000);
    expect(addresses.addressOf("a")).toBeNull();
    expect(addresses.addressOf("b")?.host).toBe("198.51.100.2");
  });

  it("forgets an address at once if a response lists the node without one", async () => {
    const { clock, node, addresses } = open();
    node.nodes = [a];
    addresses.addressOf("a");
    await clock.advance(0);
    node.nodes = [{ identity: "a", tpuQuic: null }];
    await clock.advance(180_000);
    expect(addresses.addressOf("a")).toBeNull();
  });

  it("leaves no timer after close", async () => {
    const { clock, node, addresses } = open();
    addresses.addressOf("a");
    await clock.advance(0);
    addresses.close();
    expect(clock.pending).toBe(0);
    addresses.addressOf("b");
    await clock.advance(600_000);
    expect(node.requests).toBe(1);
  });
});

describe("tpuAddressOf", () => {
  it("accepts public addresses of both families, and private ones if allowed", () => {
    expect(tpuAddressOf("8.8.8.8:8009", false)).toEqual({ host: "8.8.8.8", port: 8009 });
    expect(tpuAddressOf("[2606:4700::1]:8009", false)).toEqual({
      host: "2606:4700::1",
      port: 8009,
    });
    for (const text of ["127.0.0.1:1024", "10.0.0.1:8009", "[::1]:8009", "169.254.169.254:8080"]) {
      expect(tpuAddressOf(text, false)).toBeNull();
      expect(tpuAddressOf(text, true)).not.toBeNull();
    }
    for (const text of [
      "0.0.0.0:8009",
      "8.8.8.8",
      "8.8.8.8:0",
      "8.8.8.8:1023",
      "name:8009",
      "",
      "[::]:8009",
    ]) {
      expect(tpuAddressOf(text, true)).toBeNull();
    }
  });

  it("rejects any invalid text", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const address = tpuAddressOf(text, true);
        expect(address === null || address.port > 0).toBe(true);
      }),
    );
  });
});
