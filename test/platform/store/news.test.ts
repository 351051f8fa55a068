// Nodes on one database: notifications of changes, and their receivers.

import { describe, expect, it } from "vitest";
import { newApiKey } from "../../../src/gateway/accounts/api-keys.ts";
import type { ApiKey } from "../../../src/gateway/accounts/types.ts";
import { SqlDestinationStore } from "../../../src/platform/store/tables/destination-store.ts";
import { SqlKeyStore } from "../../../src/platform/store/tables/key-store.ts";
import { SqlManagedNonceStore } from "../../../src/platform/store/tables/nonce-store.ts";
import { SqlSubmissionStore } from "../../../src/platform/store/tables/submission-store.ts";
import { type Databases, onEachDatabase } from "./databases.ts";
import { destinationFor } from "./destinations.ts";
import { recordOf, signatureCodec } from "./files.ts";
import { NotificationRelay, type SharingDriver } from "./notification-relay.ts";

class Node {
  readonly driver: SharingDriver;
  readonly keys: SqlKeyStore;
  readonly destinations: SqlDestinationStore;
  readonly nonces: SqlManagedNonceStore;
  readonly submissions: SqlSubmissionStore;
  /** Receivers and texts, in order. */
  readonly notifications: (string | readonly string[] | null)[] = [];

  constructor(driver: SharingDriver, name: string) {
    this.driver = driver;
    this.keys = new SqlKeyStore(driver);
    this.destinations = new SqlDestinationStore(driver);
    this.nonces = new SqlManagedNonceStore(driver);
    this.submissions = new SqlSubmissionStore(driver, signatureCodec, name);
    this.keys.onForeignChange(() => this.notifications.push("keys"));
    this.destinations.onForeignChange((ids) => this.notifications.push(ids));
    this.nonces.onForeignChange(() => this.notifications.push("nonces"));
  }
}

async function twoNodes(databases: Databases) {
  const location = databases.location();
  const notificationRelay = new NotificationRelay();
  const one = new Node(notificationRelay.join(await databases.migrated(location)), "one");
  const other = new Node(notificationRelay.join(await databases.driver(location)), "other");
  return { notificationRelay, one, other };
}

let created = 0;
function keyOf(account: { readonly id: string; readonly name: string }): ApiKey {
  const wishes = {
    accountId: account.id,
    accountName: account.name,
    label: "",
    scopes: ["submit"] as const,
    requestsPerSecond: null,
    burst: null,
    allowedRanges: [],
  };
  return newApiKey(wishes, new Uint8Array(38).fill(++created), BigInt(created)).key;
}

onEachDatabase((databases) => {
  describe("changes by other nodes", () => {
    it("of keys notify the key listeners of every change", async () => {
      const { notificationRelay, one, other } = await twoNodes(databases);
      const account = await one.keys.ensureAccount("a", 1n);
      const [first, second] = [keyOf(account), keyOf(account)];
      notificationRelay.notifications.length = 0;
      await one.keys.addKey(first);
      await one.keys.replaceKey(first.id, 9n, second);
      await one.keys.revokeKey(second.id, 5n);
      await expect(one.keys.revokeKey("k_none", 5n)).rejects.toMatchObject({
        reason: "key_unknown",
      });
      const ofReplacement = ["keys", "public_keys"];
      expect(notificationRelay.notifications).toEqual([["keys"], ofReplacement, ["keys"]]);
      expect(new Set(other.notifications)).toEqual(new Set(["keys"]));
      expect(one.notifications).toEqual([]);
    });

    it("of a destination name it, and only real changes are reported", async () => {
      const { notificationRelay, one, other } = await twoNodes(databases);
      const account = await one.keys.ensureAccount("a", 1n);
      notificationRelay.notifications.length = 0;
      other.notifications.length = 0;
      const destination = destinationFor(account);
      const { id, address } = destination;
      await one.destinations.add(destination, 2);
      await one.destinations.add(destinationFor(account, { address }), 2);
      const paused = { ...destination, state: "paused" as const, pausedMs: 5 };
      expect(await one.destinations.update(paused, destination)).toBe(true);
      expect(await one.destinations.update(paused, destination)).toBe(false);
      expect(await other.destinations.find(id)).toEqual(paused);
      expect(await one.destinations.remove(id)).toBe(true);
      expect(await one.destinations.remove(id)).toBe(false);
      expect(await other.destinations.find(id)).toBeNull();
      expect(notificationRelay.notifications).toEqual(
        Array.from({ length: 3 }, () => [`destinations ${id}`]),
      );
      expect(other.notifications).toEqual([[id], [id], [id]]);
    });

    it("of nonces notify the nonce listeners", async () => {
      const { notificationRelay, one, other } = await twoNodes(databases);
      const nonce = { index: 1, keyId: "k", accountId: "a", address: "n", createdMs: 1 };
      expect(await one.nonces.add({ ...nonce, state: "making" })).toBe(true);
      expect(await one.nonces.add({ ...nonce, state: "making" })).toBe(false);
      await one.nonces.setReady(1);
      expect(notificationRelay.notifications).toEqual([["nonces"], ["nonces"]]);
      expect(other.notifications).toEqual(["nonces", "nonces"]);
    });

    it("of other kinds cause no read, and a gap causes a full read", async () => {
      const { notificationRelay, one, other } = await twoNodes(databases);
      await one.submissions.put([recordOf("s1")]);
      expect(notificationRelay.notifications).toEqual([]);
      other.driver.receive(["registrations abc", "tiers a_1 - 7", "keyset", "destinationsx y"]);
      expect(other.notifications).toEqual([]);
      other.driver.receive(["tiers a_1 - 7", "destinations d_1", "keys", "destinations d_2"]);
      expect(other.notifications).toEqual(["keys", ["d_1", "d_2"]]);
      other.notifications.length = 0;
      other.driver.receive(null);
      expect(other.notifications).toEqual(["keys", null, "nonces"]);
    });
  });
});
