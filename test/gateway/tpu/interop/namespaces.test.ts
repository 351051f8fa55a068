// The product's client and an independent leader on two networks with a faulty link.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closing } from "../../../support/closing.ts";
import { hasNamespaces, NetworkNamespace } from "../../../support/network/network-namespace.ts";
import { until } from "../../../support/network/udp-receiver.ts";
import {
  buildNgtcp2Leader,
  buildTimeoutMs,
  Ngtcp2Leader,
  ngtcp2Problem,
} from "../../../support/quic/interop/ngtcp2-leader.ts";
import { quiche } from "../../../support/quic/quic-client.ts";
import { EndpointRun } from "../../../support/quic/tpu-endpoint.ts";

const roundsMax = 20;
const problem = ngtcp2Problem ?? (hasNamespaces ? "" : "expected network namespaces, got none");

describe.skipIf(problem !== "" || !quiche)(
  `transactions over a bad link between two network namespaces ${problem}`.trim(),
  () => {
    let folder = "";
    let program = "";

    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), "shredway-"));
      program = buildNgtcp2Leader(folder);
    }, buildTimeoutMs);

    afterAll(() => rmSync(folder, { recursive: true, force: true }));

    const opened = async () => {
      const namespace = closing(NetworkNamespace.open());
      const leader = await Ngtcp2Leader.open(program, { namespace });
      const client = await EndpointRun.open();
      return { namespace, leader, client };
    };

    it("delivers everything exactly once over a link with packet loss", async () => {
      const { namespace, leader, client } = await opened();
      namespace.impair();
      const wires: Buffer[] = [];
      // A slow machine loses nothing by congestion.
      for (let round = 0; round < roundsMax && namespace.drops === 0; round++) {
        const more = Array.from({ length: 400 }, (_, i) => randomBytes(i % 4 === 0 ? 4096 : 700));
        for (const wire of more) client.send(leader.address, wire);
        wires.push(...more);
        await client.acknowledged();
      }
      expect(namespace.drops).toBeGreaterThan(0);
      await until(() => leader.transactions.length >= wires.length, "all transactions");
      expect(leader.transactions.toSorted()).toEqual(
        wires.map((wire) => wire.toString("hex")).toSorted(),
      );
    });

    it("continues after a short link failure", async () => {
      const { namespace, leader, client } = await opened();
      client.send(leader.address, randomBytes(700));
      await client.acknowledged();
      await until(() => leader.transactions.length === 1, "the transaction");
      namespace.connect(false);
      const wires = Array.from({ length: 50 }, () => randomBytes(700));
      const wireById = new Map(wires.map((wire) => [client.send(leader.address, wire), wire]));
      const sent = (): number =>
        [...wireById.keys()].filter((id) => client.kindsOf(id).startsWith("sent")).length;
      await until(() => sent() > 4, "some on their way");
      expect(leader.transactions.length).toBe(1);
      namespace.connect(true);
      // A leader that is silent for some seconds is given up; the connection is then a new one.
      await client.delivered(leader.address, wireById);
      const hex = wires.map((wire) => wire.toString("hex"));
      const isThere = (): boolean => hex.every((wire) => leader.transactions.includes(wire));
      await until(isThere, "all transactions");
    });

    it("reach the leader when the link comes up late", async () => {
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
