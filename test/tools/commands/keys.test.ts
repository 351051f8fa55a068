// `shredway keys` as users and programs call it. Over a real folder.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { KeyRing } from "../../../src/gateway/accounts/key-ring.ts";
import { Store } from "../../../src/platform/store/store.ts";
import { Shredway, shredwayHere } from "../../support/processes/shredway.ts";

let folder = "";
let data = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "shredway-keys-"));
  data = join(folder, "data");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const keys = (...args: readonly string[]) => shredwayHere("keys", ...args, "--data", data);

async function created(...args: readonly string[]): Promise<{ key: string; id: string }> {
  const { code, stdout, stderr } = await keys("create", ...args, "--json");
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

async function listed(): Promise<Record<string, unknown>[]> {
  const { stdout } = await keys("list", "--json");
  const { keys: all }: { keys: Record<string, unknown>[] } = JSON.parse(stdout);
  return all;
}

describe("shredway keys", () => {
  it("creates a key that is shown once and never stored", async () => {
    const { code, stdout, stderr } = await keys(
      "create",
      "--account",
      "trading",
      "--label",
      "bot 1",
    );
    expect(code).toBe(0);
    expect(stderr).toContain("shown only once");
    const [, text = ""] = /^key +(sw_\S+)$/m.exec(stdout) ?? [];
    expect(text.length).toBeGreaterThan(40);
    for (const name of readdirSync(data)) {
      expect(readFileSync(join(data, name)).includes(text)).toBe(false);
    }
    const list = await keys("list");
    expect(list.stdout).toMatch(/trading +sw_\w{4}… +in force +submit,read,shreds/);
    expect(list.stdout).toContain("bot 1");
    expect(list.stdout).not.toContain(text);
  });

  it("stores every option", async () => {
    const limits = ["--rate", "50", "--burst", "100", "--allow", "10.0.0.0/8,2001:DB8::/32"];
    const { key } = await created(
      "--account",
      "a",
      "--scopes",
      "shreds,read,submit,batch",
      ...limits,
    );
    expect(await listed()).toEqual([
      {
        id: expect.stringMatching(/^k_[0-9a-f]{12}$/),
        account: "a",
        label: "",
        hint: key.slice(0, 7),
        state: "in force",
        scopes: ["submit", "batch", "read", "shreds"],
        requestsPerSecond: 50,
        burst: 100,
        allowedRanges: ["10.0.0.0/8", "2001:db8::/32"],
        created: expect.stringMatching(/^20\d\d-.*Z$/),
        expires: null,
        revoked: null,
      },
    ]);
  });

  it("rotates with an overlap, and revokes", async () => {
    const old = await created("--account", "a", "--rate", "5");
    const rotation = await keys("rotate", old.id, "--overlap", "2h", "--json");
    const rotated: Record<string, unknown> = JSON.parse(rotation.stdout);
    expect(rotated).toMatchObject({ account: "a", requestsPerSecond: 5, expires: null });
    expect(rotated["key"]).not.toBe(old.key);
    const [first, second] = await listed();
    const leftMs = Date.parse(String(first?.["expires"])) - Date.parse(String(second?.["created"]));
    expect(leftMs).toBe(2 * 3600 * 1000);
    const revoked = await keys("revoke", old.id, "--json");
    expect(JSON.parse(revoked.stdout)).toEqual({ id: old.id, state: "revoked" });
    expect((await keys("revoke", old.id)).code).toBe(0);
    expect((await listed()).map(({ state }) => state)).toEqual(["revoked", "in force"]);
    const repeated = await keys("rotate", old.id);
    expect(repeated.stderr).toContain("which is revoked");
    expect(repeated.code).toBe(1);
  });

  it("reaches a running service: a new key is accepted and a revoked one is refused", async () => {
    const log = createLogger({ level: "silent" });
    const service = await Store.open({ directory: data, clock: systemClock, log });
    const ring = new KeyRing();
    let changed = () => {};
    const refresh = async (): Promise<void> => {
      ring.replace(await service.keys.keys());
      changed();
    };
    const stop = service.keys.onForeignChange(() => {
      void refresh();
    });
    const acceptsKey = async (text: string, wanted: boolean): Promise<void> => {
      while ((ring.find(text, systemClock.nowNs()) !== null) !== wanted) {
        await new Promise<void>((resolve) => {
          changed = resolve;
        });
      }
    };
    const { key, id } = await created("--account", "a");
    await acceptsKey(key, true);
    expect(ring.find(key, systemClock.nowNs())).not.toBeNull();
    await keys("revoke", id);
    await acceptsKey(key, false);
    expect(ring.find(key, systemClock.nowNs())).toBeNull();
    stop();
    await service.close();
  });

  it.each([
    [[], "expected one of create, list, rotate, revoke"],
    [["make"], 'unknown action "make"'],
    [["create"], "missing option --account"],
    [["create", "--account", ""], 'account: invalid value ""; expected a name'],
    [
      ["create", "--account", "a", "--scopes", "all"],
      'invalid value "all"; expected a comma-separated list of submit, batch, read, shreds, stream, operate',
    ],
    [
      ["create", "--account", "a", "--rate", "0"],
      '--rate: invalid value "0"; expected an integer from 1',
    ],
    [["create", "--account", "a", "--allow", "10.0.0.1/8"], "10.0.0.0/8"],
    [["create", "--account", "a", "--overlap", "1h"], "it is an option of keys rotate"],
    [["create", "--account", "a", "b"], 'unexpected argument "b"'],
    [["list", "--account", "a"], "it is an option of keys create"],
    [["rotate"], "missing id of a key"],
    [
      ["rotate", "k_1", "--overlap", "1 day"],
      '--overlap: invalid time "1 day"; expected for example',
    ],
    [["revoke", "k_1", "k_2"], 'unexpected argument "k_2"'],
    [["list", "--config", "a.yaml"], "at most one of --config, --data"],
  ])("refuses %j with exit code 2 and creates nothing", async (args, message) => {
    const { code, stdout, stderr } = await keys(...args);
    expect(stderr).toContain(message);
    expect(stderr).toContain("shredway keys --help");
    expect(stdout).toBe("");
    expect(code).toBe(2);
    expect(existsSync(data)).toBe(false);
  });

  it("fails with exit code 1 for an unknown key or a missing database", async () => {
    const nothing = await keys("list");
    expect(nothing.stderr).toContain("expected a folder with shredway.db");
    expect(nothing.code).toBe(1);
    await created("--account", "a");
    for (const args of [
      ["revoke", "k_none"],
      ["rotate", "k_none"],
    ]) {
      const { code, stderr } = await keys(...args);
      expect(stderr).toContain('"k_none"');
      expect(code).toBe(1);
    }
  });
});

describe("the database of the keys", () => {
  it.each([
    ["keys", "create", "--account", "a"],
    ["keys", "list"],
    ["destinations", "approve", "d_4f1a09c2d3e5"],
    ["signing-keys", "list"],
    ["public-keys", "list"],
    ["export"],
    ["migrate"],
  ])("must exist if neither the configuration nor the folder is named: %s", async (...words) => {
    const { code, stdout, stderr } = await Shredway.in(["env", "-C", folder], ...words).end();
    expect(stderr).toContain(
      `shredway ${words[0]}: ${data} contains no database; expected the database of a service: ` +
        "--config FILE names its configuration, --data DIRECTORY its data folder",
    );
    expect([code, stdout, existsSync(data)]).toEqual([2, "", false]);
  });

  it("is named, with a warning if no running service uses it", async () => {
    const { stdout, stderr } = await keys("create", "--account", "a b/c");
    expect(stdout).toContain(`database ${join(data, "shredway.db")}\n`);
    expect(stderr).toContain(
      "warning: no running service uses this database; the key works only in",
    );
    const store = await Store.open({
      directory: data,
      clock: systemClock,
      log: createLogger({ level: "silent" }),
      isService: true,
    });
    try {
      expect((await keys("create", "--account", "a")).stderr).not.toContain("warning");
      const { stdout: json } = await keys("create", "--account", "a", "--json");
      expect(JSON.parse(json)).toMatchObject({
        database: join(data, "shredway.db"),
        isServiceRunning: true,
      });
    } finally {
      await store.close();
    }
  });

  it.skipIf(process.getuid?.() !== 0)("names the missing permission of another user", async () => {
    await created("--account", "a");
    const nobody = ["setpriv", "--reuid", "65534", "--clear-groups"];
    const { code, stderr } = await Shredway.in(nobody, "keys", "list", "--data", data).end();
    expect(stderr).toContain("permission denied for this user (uid 65534); expected the owner");
    expect(code).toBe(1);
  });

  it("names an unknown key", async () => {
    await created("--account", "a");
    const { stderr } = await keys("revoke", "k_000000000000");
    expect(stderr).toContain('unknown key "k_000000000000"; expected the id of a key');
  });

  it("cannot be in a file", async () => {
    writeFileSync(join(folder, "data"), "");
    const { stderr } = await keys("create", "--account", "a");
    expect(stderr).toContain(`${data}: not a folder; expected a folder, or a path that does not`);
  });
});
