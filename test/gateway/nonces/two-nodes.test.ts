// Managed nonces of two nodes that share a real database and a chain.

import { expect, it } from "vitest";
import { createLogger } from "../../../src/core/log.ts";
import { NonceService } from "../../../src/gateway/nonces/nonce-service.ts";
import { SqlManagedNonceStore } from "../../../src/platform/store/tables/nonce-store.ts";
import { onEachDatabase } from "../../platform/store/databases.ts";
import { Exchange } from "../../platform/store/exchange.ts";
import { untilAsked } from "../../platform/store/files.ts";
import { closing } from "../../support/closing.ts";
import { bob } from "../../support/transactions/chain.ts";
import {
  ChainNode,
  encode,
  honestCheck,
  keysOf,
  ownerOf,
  Stage,
  Steps,
  unsignedTransfer,
} from "./nonce-stage.ts";

onEachDatabase((databases) => {
  async function twoNodes(stage: Stage, name: string) {
    const place = databases.place();
    const exchange = new Exchange();
    const drivers = [await databases.migrated(place), await databases.driver(place)];
    const open = async (driver: (typeof drivers)[number]) => {
      const store = new SqlManagedNonceStore(exchange.join(driver));
      const node = new ChainNode(stage.run, new Steps());
      const log = createLogger({ level: "silent" });
      const { clock, limits } = stage;
      const parts = { clock, log, node, store, keys: keysOf(name), check: honestCheck, encode };
      return { store, node, service: closing(await NonceService.open(parts, limits)) };
    };
    return Promise.all(drivers.map(open));
  }

  it("have one account for a key that calls both at the same time", async () => {
    const stage = await Stage.open();
    const nodes = await twoNodes(stage, "both nodes");
    const owners = [ownerOf("one"), ownerOf("two"), ownerOf("three")];
    const asked = owners.flatMap((owner) =>
      nodes.map(({ service }) => stage.managed(service, owner)),
    );
    const infos = await Promise.all(asked);
    const accounts = infos.map(({ nonceAccount }) => nonceAccount);
    for (const at of [0, 2, 4]) expect(accounts[at]).toBe(accounts[at + 1]);
    expect(new Set(accounts).size).toBe(3);
    for (const { service, store } of nodes) {
      expect((await store.all()).map(({ state }) => state)).toEqual(["ready", "ready", "ready"]);
      for (const [i, owner] of owners.entries()) {
        expect(service.ownerOf(accounts[2 * i] ?? "")).toEqual(owner);
      }
    }
  });

  it("know the other node's account and that its value was spent there", async () => {
    const stage = await Stage.open();
    const [left, right] = await twoNodes(stage, "spent there");
    if (!left || !right) throw new Error("expected two nodes");
    const owner = ownerOf("one");
    const info = await stage.managed(left.service, owner);
    await untilAsked(async () => right.service.ownerOf(info.nonceAccount) !== null);
    expect(right.node.sent.size).toBe(0);
    expect(await stage.until(right.service.of(info.nonceAccount))).toEqual(info);
    // The same key can get the signature from either node.
    const before = stage.lamports(bob.publicKey.toBase58());
    const wire = await stage.until(right.service.coSign(info.nonceAccount, unsignedTransfer(info)));
    await left.node.sendTransaction(wire);
    await stage.pass(15_000);
    expect(stage.lamports(bob.publicKey.toBase58())).toBe(before + 1_000_000n);
    const after = await stage.until(right.service.of(info.nonceAccount));
    expect(after.nonce).toBe(stage.nonce(info.nonceAccount)?.value);
    expect(after.nonce).not.toBe(info.nonce);
  });
});
