// The product's client and a leader by another hand, on two networks with a bad cable between them.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildNgtcp2Leader, hasNgtcp2, Ngtcp2Leader } from "../../support/interop/ngtcp2-leader.ts";
import { hasNamespaces, NetworkNamespace } from "../../support/network-namespace.ts";
import { quiche } from "../../support/quic-client.ts";
import { EndpointRun } from "../../support/tpu-endpoint.ts";
import { until } from "../../support/udp-receiver.ts";

describe.skipIf(!hasNamespaces || !hasNgtcp2 || !quiche)(
  "transactions over a bad link between two network namespaces",
  () => {
    let folder = "";
    let program = "";

    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), "shredway-"));
      program = buildNgtcp2Leader(folder);
    });

    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    const opened = async () => {
      const namespace = NetworkNamespace.open();
      const leader = await Ngtcp2Leader.open(program, { namespace });
      const client = await EndpointRun.open();
      return { namespace, leader, client };
    };

    it("comes through a link that loses packets: nothing is lost, nothing comes twice", async () => {
      const { namespace, leader, client } = await opened();
      namespace.impair();
      const wires = Array.from({ length: 400 }, (_, i) => randomBytes(i % 4 === 0 ? 4096 : 700));
      for (const wire of wires) client.send(leader.address, wire);
      await client.acknowledged();
      await until(() => leader.transactions.length >= wires.length, "all transactions");
      expect(leader.transactions.toSorted()).toEqual(
        wires.map((wire) => wire.toString("hex")).toSorted(),
      );
      expect(namespace.drops).toBeGreaterThan(10);
    });

    it("goes on when the link was down for a moment", async () => {
      const { namespace, leader, client } = await opened();
      client.send(leader.address, randomBytes(700));
      await client.acknowledged();
      await until(() => leader.transactions.length === 1, "the transaction");
      namespace.connect(false);
      for (let i = 0; i < 50; i++) client.send(leader.address, randomBytes(700));
      const inFlight = (): number => client.leader(leader.address)?.inFlight ?? 0;
      await until(() => inFlight() > 4, "some on their way");
      expect(leader.transactions.length).toBe(1);
      namespace.connect(true);
      await client.acknowledged();
      await until(() => leader.transactions.length === 51, "all transactions");
      expect(leader.identities.length).toBe(1);
    });

    it("finds the leader when the link comes up late", async () => {
      const { namespace, leader, client } = await opened();
      namespace.connect(false);
      client.send(leader.address, randomBytes(700));
      await until(() => client.leader(leader.address)?.phase === "connecting", "an attempt");
      namespace.connect(true);
      await client.acknowledged();
      await until(() => leader.transactions.length === 1, "the transaction");
    });
  },
);
