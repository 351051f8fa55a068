import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { isInUse, prepareDataFolder } from "../../../src/platform/store/data-folder.ts";
import { Store } from "../../../src/platform/store/store.ts";
import { Shredway, shredwayHere } from "../../support/processes/shredway.ts";
import { smallBtrfs } from "../../support/small-disk.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const { path: btrfs, isMounted: hasBtrfs } = smallBtrfs();

/** Whether the folder is in use while a service has its database open, and afterwards. */
async function useOf(directory: string): Promise<(boolean | null)[]> {
  const log = createLogger({ level: "silent" });
  const store = await Store.open({ directory, clock: systemClock, log, isService: true });
  const during = isInUse(directory);
  await store.close();
  return [during, isInUse(directory)];
}

it("knows whether a service uses the folder", async () => {
  expect(await useOf(temporaryFolder())).toEqual([true, false]);
});

it.skipIf(!hasBtrfs)("knows it on Btrfs, too, which has several numbers for a device", async () => {
  expect(await useOf(join(btrfs, "data"))).toEqual([true, false]);
});

it("says what is expected if the data folder is a file", () => {
  const file = join(temporaryFolder(), "data");
  writeFileSync(file, "");
  for (const path of [file, join(file, "below")]) {
    expect(() => prepareDataFolder(path)).toThrow(
      `${path}: not a folder; expected a folder, or a path that does not exist yet`,
    );
  }
});

it("names the user and the repair if the data folder is not writable", () => {
  expect(() => prepareDataFolder("/sys/shredway")).toThrow(
    /^\/sys\/shredway: permission denied for this user \(uid \d+\); expected the owner of the folder: run/,
  );
});

const mountReadOnly = [
  "unshare",
  "--mount",
  "--map-root-user",
  "sh",
  "-c",
  'mount -t tmpfs -o ro none "$0" && exec "$@"',
] as const;
const canMount =
  spawnSync(mountReadOnly[0], [...mountReadOnly.slice(1), "/mnt", "true"]).status === 0;

it.skipIf(!canMount)("says that the file system is read-only, and names the repair", async () => {
  const folder = temporaryFolder();
  const data = join(folder, "data");
  const words = ["keys", "create", "--account", "trading", "--data", data];
  const { code, stderr } = await Shredway.in([...mountReadOnly, folder], ...words).end();
  expect(stderr).toContain(
    `${data}: the file system is read-only; expected one that the service can write: mount it ` +
      "read-write, or choose another data.directory (EROFS: ",
  );
  expect(code).toBe(1);
});

it.skipIf(process.getuid?.() !== 0)(
  "gives the files that root creates to the folder's owner",
  () => {
    const folder = temporaryFolder();
    const owner = { uid: 65_534, gid: 65_533 };
    chownSync(folder, owner.uid, owner.gid);
    const { databasePath, lockPath } = prepareDataFolder(folder);
    for (const path of [databasePath, lockPath]) expect(statSync(path)).toMatchObject(owner);
  },
);

it("creates no lock file through a link, which root would follow to any place", () => {
  const folder = temporaryFolder();
  const target = join(temporaryFolder(), "target");
  symlinkSync(target, join(folder, "service.lock"));
  expect(() => prepareDataFolder(folder)).toThrow("service.lock");
  expect(existsSync(target)).toBe(false);
});

const boundReadOnly = [
  ...mountReadOnly.slice(0, -1),
  'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"',
];

it.skipIf(!canMount)("says that the file system of an existing database is read-only", async () => {
  const data = join(temporaryFolder(), "data");
  expect((await shredwayHere("migrate", "--data", data)).code).toBe(0);
  const words = ["keys", "create", "--account", "trading", "--data", data];
  const { code, stderr } = await Shredway.in([...boundReadOnly, data], ...words).end();
  expect(stderr).toContain(
    `: the file system of ${data} is read-only; expected one that this process can write: mount it ` +
      "read-write, or choose another data.directory",
  );
  expect(code).toBe(1);
});

describe.skipIf(process.getuid?.() !== 0)("for another user", () => {
  const nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
  let data = "";

  beforeEach(async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    data = join(folder, "data");
    await shredwayHere("migrate", "--data", data);
  });

  it.each(["shredway.db", "service.lock", "shredway.db-wal"])(
    "names the file that root left, and the repair: %s",
    async (name) => {
      for (const each of [".", ...readdirSync(data)]) chownSync(join(data, each), 65_534, 65_534);
      const file = join(data, name);
      writeFileSync(file, "", { flag: "a", mode: 0o600 });
      chownSync(file, 0, 0);
      const config = join(data, "shredway.yaml");
      writeFileSync(
        config,
        `http: { listen: "127.0.0.1:0", webSocketListen: [] }
data: { directory: . }
relay: { listen: "127.0.0.1:0", authentication: off, shredVersion: 1, transmit: socket }
tips: { addresses: [96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5] }
routes: [{ name: a, kind: swqos, url: "http://127.0.0.1:9" }]
`,
      );
      const { code, stderr } = await Shredway.in(nobody, "start", "--config", config).end();
      expect(stderr).toContain(
        `: ${file} belongs to uid 0 (mode 0600), and this process has uid 65534; expected one that it can read ` +
          "and write: run it as the user of the service, or give everything in the folder to that user (chown -R)",
      );
      expect(code).toBe(1);
    },
  );

  it.each([["export"], ["migrate", "--check"], ["keys", "list"]])(
    "says that a folder is closed, and not that it has no database: %s",
    async (...words) => {
      const { code, stderr } = await Shredway.in(nobody, ...words, "--data", data).end();
      expect(stderr).toContain(
        `${data}: permission denied for this user (uid 65534); expected the owner of the folder`,
      );
      expect(code).toBe(1);
    },
  );
});
