import { spawnSync } from "node:child_process";
import { chownSync, existsSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { prepareDataFolder } from "../../../src/platform/store/data-folder.ts";
import { Shredway } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

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
