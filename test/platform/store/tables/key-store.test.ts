import { chmodSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../../src/core/clock.ts";
import { newApiKey } from "../../../../src/gateway/accounts/api-keys.ts";
import type { Account, ApiKey } from "../../../../src/gateway/accounts/types.ts";
import { Store } from "../../../../src/platform/store/store.ts";
import { onEachDatabase } from "../databases.ts";
import { Files, silent, until } from "../files.ts";

let created = 0;
function keyFor(account: Account, changes: Partial<ApiKey> = {}): ApiKey {
  const wishes = {
    accountId: account.id,
    accountName: account.name,
    label: "a label, with commas",
    scopes: ["submit", "read"] as const,
    requestsPerSecond: 50,
    burst: null,
    allowedRanges: ["10.0.0.0/8", "2001:db8::/32"],
  };
  const random = new Uint8Array(38).fill(++created);
  return { ...newApiKey(wishes, random, BigInt(created)).key, ...changes };
}

onEachDatabase((databases) => {
  describe("accounts", () => {
    it("are created once per name, even by concurrent calls", async () => {
      const directory = databases.location();
      const stores = await Promise.all([databases.store(directory), databases.store(directory)]);
      const lookups = stores.flatMap(({ keys }) => [
        keys.ensureAccount("a", 5n),
        keys.ensureAccount("a", 6n),
      ]);
      const accounts = await Promise.all(lookups);
      expect(new Set(accounts.map(({ id }) => id)).size).toBe(1);
      await stores[0]?.keys.ensureAccount("b", 7n);
      const names = (await stores[1]?.keys.accounts())?.map(({ name }) => name);
      expect(names).toEqual(["a", "b"]);
    });
  });

  describe("keys", () => {
    it("are returned as added, oldest first", async () => {
      const { keys } = await databases.store();
      const account = await keys.ensureAccount("a", 1n);
      const other = await keys.ensureAccount("b", 1n);
      const all = [
        keyFor(account),
        keyFor(other, { allowedRanges: [], scopes: [], requestsPerSecond: null, burst: 9 }),
        keyFor(account, { expiresNs: 2n ** 62n, revokedNs: 3n }),
      ];
      for (const key of all.toReversed()) await keys.addKey(key);
      expect(await keys.keys()).toEqual(all);
      const [first = keyFor(account)] = all;
      await expect(keys.addKey(first)).rejects.toMatchObject({ reason: "store_failed" });
      const unowned = keyFor({ id: "a_none", name: "none", createdNs: 1n });
      await expect(keys.addKey(unowned)).rejects.toMatchObject({ reason: "store_failed" });
      expect((await keys.keys()).length).toBe(3);
    });

    it("are replaced with an overlap that is never extended, both changes or neither", async () => {
      const { keys } = await databases.store();
      const account = await keys.ensureAccount("a", 1n);
      const [old, second, third] = [keyFor(account), keyFor(account), keyFor(account)];
      await keys.addKey(old);
      await keys.replaceKey(old.id, 1000n, second);
      await keys.replaceKey(old.id, 2000n, third);
      expect((await keys.keys()).map(({ expiresNs }) => expiresNs)).toEqual([1000n, null, null]);
      await keys.replaceKey(old.id, 500n, keyFor(account));
      expect((await keys.keys())[0]?.expiresNs).toBe(500n);
      const before = await keys.keys();
      await expect(keys.replaceKey("k_none", 5n, keyFor(account))).rejects.toMatchObject({
        reason: "key_unknown",
      });
      // The new key already exists, so the old one keeps its expiry.
      await expect(keys.replaceKey(second.id, 5n, third)).rejects.toMatchObject({
        reason: "store_failed",
      });
      expect(await keys.keys()).toEqual(before);
    });

    it("are replaced by one of several rotations at once, if each requires to be the only one", async () => {
      const { keys } = await databases.store();
      const account = await keys.ensureAccount("a", 1n);
      const old = keyFor(account);
      await keys.addKey(old);
      const rotations = [1000n, 2000n, 3000n].map((expiresNs) =>
        keys.replaceKey(old.id, expiresNs, keyFor(account), { onlyOnce: true }),
      );
      const ends = await Promise.allSettled(rotations);
      expect(ends.filter(({ status }) => status === "fulfilled").length).toBe(1);
      expect(ends.filter(({ status }) => status === "rejected")).toEqual([
        expect.objectContaining({ reason: expect.objectContaining({ reason: "key_unknown" }) }),
        expect.objectContaining({ reason: expect.objectContaining({ reason: "key_unknown" }) }),
      ]);
      expect((await keys.keys()).length).toBe(2);
    });

    it("are revoked permanently", async () => {
      const { keys } = await databases.store();
      const account = await keys.ensureAccount("a", 1n);
      const key = keyFor(account);
      await keys.addKey(key);
      await keys.revokeKey(key.id, 10n);
      await keys.revokeKey(key.id, 20n);
      expect((await keys.keys())[0]?.revokedNs).toBe(10n);
      await expect(keys.revokeKey("k_none", 10n)).rejects.toMatchObject({ reason: "key_unknown" });
      await expect(keys.replaceKey(key.id, 5n, keyFor(account))).rejects.toMatchObject({
        reason: "key_unknown",
      });
      expect((await keys.keys()).length).toBe(1);
    });

    it("of an edited row, or of a newer version, do not keep the others from being read", async () => {
      const directory = databases.location();
      const { keys } = await databases.store(directory);
      const account = await keys.ensureAccount("a", 1n);
      const [edited, foreign, good, revoked] = Array.from({ length: 4 }, () => keyFor(account));
      if (!edited || !foreign || !good || !revoked) throw new Error("expected four keys");
      for (const key of [edited, foreign, good, revoked]) await keys.addKey(key);
      await keys.revokeKey(revoked.id, 10n);
      const driver = await databases.driver(directory);
      const set = (assignment: string, id: string) => ({
        sql: `UPDATE api_keys SET ${assignment} WHERE id = $1`,
        params: [id],
      });
      const changes = [
        set("allowed_ranges = '10.0.0.0/99'", edited.id),
        set("scopes = 'submit,newer'", foreign.id),
        set("scopes = 'newer'", revoked.id),
      ];
      await driver.transaction(changes, "durable");
      const read = await keys.read();
      expect(read.keys).toEqual([good]);
      expect(read.unusable.map(({ id, isRevoked }) => [id, isRevoked])).toEqual([
        [edited.id, false],
        [foreign.id, false],
        [revoked.id, true],
      ]);
      const problems = read.unusable.map(({ problem }) => problem);
      expect(problems[0]).toContain("10.0.0.0/99");
      expect(problems[1]).toContain("expected one of the scopes submit, ");
      expect(problems[1]).toContain('got "newer"');
      await keys.revokeKey(foreign.id, 20n);
      expect((await keys.read()).unusable[1]?.isRevoked).toBe(true);
    });

    it("of another process are reported", async () => {
      const directory = databases.location();
      const service = await databases.store(directory);
      const account = await service.keys.ensureAccount("a", 1n);
      let published = 0;
      const stop = service.keys.onForeignChange(() => published++);
      const command = await databases.store(directory);
      const key = keyFor(account);
      await command.keys.addKey(key);
      await until(() => published > 0);
      stop();
      expect(await service.keys.keys()).toEqual([key]);
    });
  });
});

const files = new Files();
afterEach(() => files.clean());

describe("the data folder", () => {
  const open = (directory: string, mustExist: boolean) =>
    Store.open({ directory, clock: systemClock, log: silent, mustExist });

  it("is private to its owner", async () => {
    const directory = join(files.folder(), "deep", "data");
    const store = await files.store(directory);
    await store.keys.ensureAccount("a", 1n);
    const modeOf = (path: string) => statSync(path).mode & 0o777;
    expect(modeOf(directory)).toBe(0o700);
    for (const name of ["shredway.db", "shredway.db-wal", "shredway.db-shm"]) {
      expect(modeOf(join(directory, name))).toBe(0o600);
    }
    expect(store.warnings).toEqual([]);
  });

  it("is logged if others can access it", async () => {
    const directory = files.folder();
    await (await files.store(directory)).close();
    chmodSync(directory, 0o755);
    expect((await files.store(directory)).warnings).toEqual([]); // they cannot access the file itself
    chmodSync(join(directory, "shredway.db"), 0o644);
    expect((await files.store(directory)).warnings.join()).toMatch(/0755.*0644.*can read.*chmod/);
    chmodSync(directory, 0o777);
    expect((await files.store(directory)).warnings.join()).toMatch(/can change/);
  });

  it("is not created if it must exist", async () => {
    const directory = join(files.folder(), "none");
    await expect(open(directory, true)).rejects.toMatchObject({
      reason: "store_failed",
      message: expect.stringContaining("expected a folder with shredway.db"),
    });
    expect(existsSync(directory)).toBe(false);
    await expect(open("/dev/null/data", false)).rejects.toMatchObject({ reason: "store_failed" });
  });
});
