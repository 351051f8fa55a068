import { describe, expect, it } from "vitest";
import { pubkeyOf } from "../../../../src/core/primitives.ts";
import { newApiKey } from "../../../../src/gateway/accounts/api-keys.ts";
import type { RegisteredPublicKey } from "../../../../src/gateway/accounts/public-key-types.ts";
import type { ApiKey } from "../../../../src/gateway/accounts/types.ts";
import type { Store } from "../../../../src/platform/store/store.ts";
import { onEachDatabase } from "../databases.ts";
import { until } from "../files.ts";

let created = 0;

async function keyOf(store: Store, accountName: string): Promise<ApiKey> {
  const account = await store.keys.ensureAccount(accountName, 1n);
  const { key } = newApiKey(
    {
      accountId: account.id,
      accountName,
      label: "",
      scopes: ["submit"],
      requestsPerSecond: null,
      burst: null,
      allowedRanges: [],
    },
    new Uint8Array(38).fill(++created),
    1n,
  );
  await store.keys.addKey(key);
  return key;
}

function registered(key: ApiKey, changes: Partial<RegisteredPublicKey> = {}): RegisteredPublicKey {
  const { id: keyId, accountId, accountName } = key;
  const registeredMs = ++created;
  const publicKey = pubkeyOf(new Uint8Array(32).fill(registeredMs));
  return { publicKey, purpose: "tpu", accountId, accountName, keyId, registeredMs, ...changes };
}

onEachDatabase((databases) => {
  describe("public keys", () => {
    async function two(): Promise<{ store: Store; one: ApiKey; other: ApiKey }> {
      const store = await databases.store();
      return { store, one: await keyOf(store, "one"), other: await keyOf(store, "other") };
    }

    it("with the purpose of a newer version do not keep the others from being read", async () => {
      const directory = databases.location();
      const store = await databases.store(directory);
      const key = await keyOf(store, "one");
      const all = [registered(key), registered(key)] as const;
      const operator = { keyId: null, nowMs: 50 };
      for (const each of all) await store.publicKeys.add(each, operator, 2);
      const driver = await databases.driver(directory);
      const params = [all[0].publicKey];
      const sql = "UPDATE public_keys SET purpose = 'newer' WHERE public_key = $1";
      await driver.transaction([{ sql, params }], "durable");
      const { publicKeys, unusable } = await store.publicKeys.read();
      expect(publicKeys).toEqual([all[1]]);
      expect(unusable).toEqual([
        {
          publicKey: all[0].publicKey,
          accountId: key.accountId,
          accountName: "one",
          problem: expect.stringContaining('got "newer"'),
        },
      ]);
      expect(await store.publicKeys.remove(key.accountId, all[0].publicKey, operator)).toBe(true);
      expect(await store.publicKeys.all()).toEqual([all[1]]);
      expect((await store.publicKeys.events()).map(({ purpose }) => purpose)).toContain("newer");
    });

    it("are returned as stored, oldest first, with their audit trail", async () => {
      const { store, one, other } = await two();
      const all = [registered(one), registered(other, { purpose: "shredstream" }), registered(one)];
      const operator = { keyId: null, nowMs: 50 };
      for (const each of all.toReversed()) {
        expect(await store.publicKeys.add(each, operator, 2)).toBe("added");
      }
      expect(await store.publicKeys.all()).toEqual(all);
      const [first = registered(one)] = all;
      const byKey = { keyId: one.id, nowMs: 60 };
      expect(await store.publicKeys.remove(one.accountId, first.publicKey, byKey)).toBe(true);
      expect(await store.publicKeys.all()).toEqual(all.slice(1));
      const events = await store.publicKeys.events();
      expect(events.filter(({ accountId }) => accountId === one.accountId)).toEqual([
        expect.objectContaining({ number: 1, kind: "registered", keyId: null, atMs: 50 }),
        expect.objectContaining({ number: 2, kind: "registered", keyId: null, atMs: 50 }),
        {
          accountId: one.accountId,
          number: 3,
          atMs: 60,
          kind: "removed",
          publicKey: first.publicKey,
          purpose: "tpu",
          keyId: one.id,
        },
      ]);
    });

    it("belong to one account, and are limited per account", async () => {
      const { store, one, other } = await two();
      const { publicKeys } = store;
      const actor = { keyId: one.id, nowMs: 1 };
      const first = registered(one);
      expect(await publicKeys.add(first, actor, 1)).toBe("added");
      expect(await publicKeys.add(registered(one), actor, 1)).toBe("too_many");
      const same = registered(other, { publicKey: first.publicKey });
      expect(await publicKeys.add(same, actor, 9)).toBe("taken");
      expect(await publicKeys.add({ ...same, purpose: "shredstream" }, actor, 9)).toBe("taken");
      expect(await publicKeys.remove(other.accountId, first.publicKey, actor)).toBe(false);
      expect(await publicKeys.all()).toEqual([first]);
      expect((await publicKeys.events()).length).toBe(1);
      expect(await publicKeys.remove(one.accountId, first.publicKey, actor)).toBe(true);
      expect(await publicKeys.add(same, actor, 9)).toBe("added");
      const unowned = registered({ ...one, accountId: "a_none" });
      await expect(publicKeys.add(unowned, actor, 9)).rejects.toMatchObject({
        reason: "store_failed",
        message: expect.stringContaining("a_none"),
      });
    });

    it("keep the limit and one owner when many processes register at once", async () => {
      const directory = databases.location();
      const store = await databases.store(directory);
      const stores = [store, await databases.store(directory)];
      const keys = [await keyOf(store, "one"), await keyOf(store, "other")];
      const shared = registered(keys[0] ?? (await keyOf(store, "one"))).publicKey;
      const adds = Array.from({ length: 12 }, async (_, i) => {
        const key = keys[i % 2];
        if (!key) throw new Error("expected a key");
        const wanted = registered(key, i < 4 ? { publicKey: shared } : {});
        return stores[(i >> 1) % 2]?.publicKeys.add(wanted, { keyId: key.id, nowMs: 1 }, 3);
      });
      const answers = await Promise.all(adds);
      const all = await store.publicKeys.all();
      expect(all.filter(({ publicKey }) => publicKey === shared).length).toBe(1);
      expect(all.length).toBe(6);
      expect(answers.filter((each) => each === "added").length).toBe(6);
      const numbers = (await store.publicKeys.events()).map((each) => each.number);
      expect(numbers.toSorted((a, b) => a - b)).toEqual([1, 1, 2, 2, 3, 3]);
    });

    it("follow the rotation of their API key", async () => {
      const { store, one, other } = await two();
      const actor = { keyId: one.id, nowMs: 1 };
      const [mine, another] = [registered(one), registered(other)];
      await store.publicKeys.add(mine, actor, 9);
      await store.publicKeys.add(another, actor, 9);
      const { key } = newApiKey(one, new Uint8Array(38).fill(++created), 2n);
      await store.keys.replaceKey(one.id, 1000n, key);
      expect(await store.publicKeys.all()).toEqual([{ ...mine, keyId: key.id }, another]);
    });

    it("keep the newest thousand lines of an account's audit trail", async () => {
      const { store, one, other } = await two();
      const actor = { keyId: one.id, nowMs: 1 };
      await store.publicKeys.add(registered(other), actor, 9);
      const key = registered(one);
      for (let i = 0; i < 502; i++) {
        await store.publicKeys.add(key, actor, 9);
        await store.publicKeys.remove(one.accountId, key.publicKey, actor);
      }
      const events = await store.publicKeys.events();
      const own = events.filter(({ accountId }) => accountId === one.accountId);
      expect([own.length, own[0]?.number, own.at(-1)?.number]).toEqual([1000, 5, 1004]);
      expect(events.length).toBe(1001);
    });

    it("of another process are reported, also after a rotation", async () => {
      const directory = databases.location();
      const service = await databases.store(directory);
      const command = await databases.store(directory);
      const key = await keyOf(command, "one");
      let published = 0;
      const stop = service.publicKeys.onForeignChange(() => published++);
      await command.publicKeys.add(registered(key), { keyId: null, nowMs: 1 }, 9);
      await until(() => published > 0);
      published = 0;
      const next = newApiKey(key, new Uint8Array(38).fill(++created), 2n).key;
      await command.keys.replaceKey(key.id, 1000n, next);
      await until(() => published > 0);
      stop();
      expect(await service.publicKeys.all()).toMatchObject([{ keyId: next.id }]);
    });
  });
});
