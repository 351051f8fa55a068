import { describe, expect, it } from "vitest";
import type { Account } from "../../../../src/gateway/accounts/types.ts";
import type { Store } from "../../../../src/platform/store/store.ts";
import type { AccountDestination } from "../../../../src/shreds/destinations/destination-types.ts";
import { onEachDatabase } from "../databases.ts";
import { destinationFor } from "../destinations.ts";
import { until } from "../files.ts";

onEachDatabase((databases) => {
  describe("destinations", () => {
    async function two(): Promise<{ store: Store; one: Account; other: Account }> {
      const store = await databases.store();
      const one = await store.keys.ensureAccount("one", 1n);
      return { store, one, other: await store.keys.ensureAccount("other", 2n) };
    }

    it("are returned as stored, oldest first", async () => {
      const { store, one, other } = await two();
      const all = [
        destinationFor(one),
        destinationFor(other, {
          address: "[2001:db8::1]:9001",
          state: "active",
          provedMs: 1_767_225_600_123,
          provedBy: "datagram",
          proofEndsMs: 1_767_312_000_123,
          recovered: true,
        }),
        destinationFor(one, {
          state: "paused",
          provedMs: 5,
          provedBy: "operator",
          pausedMs: 6,
          pauseReason: "icmp_unreachable",
        }),
      ];
      for (const each of all.toReversed()) {
        expect(await store.destinations.add(each, 2)).toBe("added");
      }
      expect(await store.destinations.all()).toEqual(all);
    });

    it("are limited per account, and unique per address", async () => {
      const { store, one, other } = await two();
      const { destinations } = store;
      const first = destinationFor(one);
      expect(await destinations.add(first, 1)).toBe("added");
      expect(await destinations.add(destinationFor(one), 1)).toBe("too_many");
      const same = destinationFor(other, { address: first.address });
      expect(await destinations.add(same, 1)).toBe("address_taken");
      expect(await destinations.add({ ...same, accountId: one.id }, 9)).toBe("address_taken");
      expect(await destinations.all()).toEqual([first]);
      expect(await destinations.remove(first.id)).toBe(true);
      expect(await destinations.remove(first.id)).toBe(false);
      expect(await destinations.add(same, 1)).toBe("added");
    });

    it("require an existing account", async () => {
      const { store } = await two();
      const unowned = destinationFor({ id: "a_none", name: "", createdNs: 1n });
      await expect(store.destinations.add(unowned, 2)).rejects.toMatchObject({
        reason: "store_failed",
        message: expect.stringContaining("a_none"),
      });
      expect(await store.destinations.all()).toEqual([]);
    });

    it("change only if they match the state that the caller read", async () => {
      const { store, one } = await two();
      const { destinations } = store;
      const before = destinationFor(one);
      const otherDestination = destinationFor(one);
      await destinations.add(before, 2);
      await destinations.add(otherDestination, 2);
      const paused: AccountDestination = {
        ...before,
        state: "paused",
        pausedMs: 7,
        pauseReason: "operator",
      };
      const proved: AccountDestination = {
        ...before,
        state: "active",
        provedMs: 8,
        provedBy: "call",
        proofEndsMs: 9,
      };
      expect(await destinations.update(paused, before)).toBe(true);
      expect(await destinations.update(proved, before)).toBe(false); // the operator was first
      expect(await destinations.all()).toEqual([paused, otherDestination]);
      for (const stale of [
        { ...paused, pausedMs: 6 },
        { ...paused, pausedMs: null },
        { ...paused, pauseReason: null },
        { ...paused, provedMs: 1 },
        { ...paused, proofEndsMs: 1 },
        { ...paused, provedBy: "call" as const },
      ]) {
        expect(await destinations.update(proved, stale)).toBe(false);
      }
      expect(await destinations.update(proved, paused)).toBe(true);
      expect(await destinations.update(before, proved)).toBe(true);
      await destinations.remove(before.id);
      expect(await destinations.update(proved, before)).toBe(false);
      expect(await destinations.all()).toEqual([otherDestination]);
    });

    it("added by two processes at once stay unique and within the limit", async () => {
      const directory = databases.location();
      const stores = await Promise.all([databases.store(directory), databases.store(directory)]);
      const [first, second] = stores;
      const one = await first.keys.ensureAccount("one", 1n);
      const other = await first.keys.ensureAccount("other", 1n);
      for (let turn = 0; turn < 10; turn++) {
        const address = `198.51.100.1:${20_000 + turn}`;
        const answers = await Promise.all([
          first.destinations.add(destinationFor(one, { address }), 64),
          second.destinations.add(destinationFor(other, { address }), 64),
        ]);
        expect(answers.toSorted()).toEqual(["added", "address_taken"]);
      }
      const third = await first.keys.ensureAccount("third", 1n);
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          (i % 2 ? first : second).destinations.add(destinationFor(third), 2),
        ),
      );
      expect(answers.filter((answer) => answer === "added").length).toBe(2);
      expect(answers.filter((answer) => answer === "too_many").length).toBe(18);
    });

    it("of another process are reported", async () => {
      const directory = databases.location();
      const service = await databases.store(directory);
      const one = await service.keys.ensureAccount("one", 1n);
      let published = 0;
      service.destinations.onForeignChange(() => published++);
      const command = await databases.store(directory);
      const destination = destinationFor(one);
      await command.destinations.add(destination, 2);
      await until(() => published > 0);
      expect(await service.destinations.all()).toEqual([destination]);
    });

    it("with manual edits are rejected by name", async () => {
      const directory = databases.location();
      const store = await databases.store(directory);
      const one = await store.keys.ensureAccount("one", 1n);
      await store.destinations.add(destinationFor(one), 2);
      const tool = await databases.driver(directory);
      const words = "UPDATE destinations SET state = 'proven'";
      await tool.transaction([{ sql: words, params: [] }], "durable");
      await expect(store.destinations.all()).rejects.toMatchObject({
        reason: "store_failed",
        message: expect.stringContaining('"proven"'),
      });
    });
  });
});
