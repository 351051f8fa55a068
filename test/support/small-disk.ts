// A small file system in memory, for disks that fill up, or with Btrfs in a file. Mounting one takes root.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

interface SmallDisk {
  readonly path: string;
  /** Otherwise its tests are skipped. */
  readonly isMounted: boolean;
}

function mounted(path: string, words: readonly string[]): SmallDisk {
  const isMounted = spawnSync("mount", [...words, path]).status === 0;
  afterAll(() => {
    // A failed test may have left a file open.
    if (isMounted) spawnSync("umount", ["--lazy", path]);
    rmSync(path, { recursive: true, force: true });
  });
  return { path, isMounted };
}

/** Call it before the hooks that clean up what is on the disk: hooks run in reverse order. */
export function smallDisk(megabytes: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), "shredway-disk-"));
  return mounted(path, ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs"]);
}

/** The same with Btrfs, if its programs are installed. */
export function smallBtrfs(): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), "shredway-disk-"));
  const image = `${path}.image`;
  writeFileSync(image, "");
  truncateSync(image, 128 * 1024 * 1024); // almost the least that Btrfs accepts
  afterAll(() => rmSync(image, { force: true }));
  spawnSync("mkfs.btrfs", ["--quiet", image]);
  return mounted(path, ["-t", "btrfs", "-o", "loop", image]);
}
