// Managed nonces of two nodes that share a real database and a chain.

import { expect, it } from "vitest";
import { createLogger } from "../../../src/core/log.ts";
import { NonceService } from "../../../src/gateway/nonces/nonce-service.ts";
import { SqlManagedNonceStore } from "../../../src/platform/store/tables/nonce-store.ts";
import { onEachDatabase } from "../../platform/store/databases.ts";
import { untilTrue } from "../../platform/store/files.ts";
import { NotificationRelay } from "../../platform/store/notification-relay.ts";
import { closing } from "../../support/closing.ts";
import { bob } from "../../support/transactions/chain.ts";
import {
  ChainNode,
  encode,
  keysOf,
  NonceHarness,
  ownerOf,
  realCheck,
  Steps,
  unsignedTransfer,
} from "./nonce-harness.ts";

onEachDatabase((databases) => {
  async function twoNodes(harness: NonceHarness, name: string) {
    const place = databases.location();
    const exchange = new NotificationRelay();
    const drivers = [await databases.migrated(place), await databases.driver(place)];
    const open = async (driver: (typeof drivers)[number]) => {
      const store = new SqlManagedNonceStore(exchange.join(driver));
      const node = new ChainNode(harness.run, new Steps());
      const log = createLogger({ level: "silent" });
      const { clock, limits } = harness;
      const parts = { clock, log, node, store, keys: keysOf(name), check: realCheck, encode };
      return { store, node, service: closing(await NonceService.open(parts, limits)) };
    };
    return Promise.all(drivers.map(open));
  }

  it("have one account for a key that calls both at the same time", async () => {
    const harness = await NonceHarness.open();
    const nodes = await twoNodes(harness, "both nodes");
    const owners = [ownerOf("one"), ownerOf("two"), ownerOf("three")];
    const requests = owners.flatMap((owner) =>
      nodes.map(({ service }) => harness.managed(service, owner)),
    );
    const infos = await Promise.all(requests);
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
    const harness = await NonceHarness.open();
    const [left, right] = await twoNodes(harness, "spent there");
    if (!left || !right) throw new Error("expected two nodes");
    const owner = ownerOf("one");
    const info = await harness.managed(left.service, owner);
    await untilTrue(async () => right.service.ownerOf(info.nonceAccount) !== null);
    expect(right.node.sent.size).toBe(0);
    expect(await harness.until(right.service.of(info.nonceAccount))).toEqual(info);
    // The same key can get the signature from either node.
    const before = harness.lamports(bob.publicKey.toBase58());
    const wire = await harness.until(
      right.service.coSign(info.nonceAccount, unsignedTransfer(info)),
    );
    await left.node.sendTransaction(wire);
    await harness.pass(15_000);
    expect(harness.lamports(bob.publicKey.toBase58())).toBe(before + 1_000_000n);
    const after = await harness.until(right.service.of(info.nonceAccount));
    expect(after.nonce).toBe(harness.nonce(info.nonceAccount)?.value);
    expect(after.nonce).not.toBe(info.nonce);
  });
});
