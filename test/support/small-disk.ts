// A small file system in memory, for disks that fill up. Mounting one takes root.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

interface SmallDisk {
  readonly path: string;
  /** Otherwise its tests are skipped. */
  readonly isMounted: boolean;
}

/** Call it before the hooks that clean up what is on the disk: hooks run in reverse order. */
export function smallDisk(megabytes: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), "shredway-disk-"));
  const words = ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path];
  const isMounted = spawnSync("mount", words).status === 0;
  afterAll(() => {
    if (isMounted) spawnSync("umount", [path]);
    rmSync(path, { recursive: true, force: true });
  });
  return { path, isMounted };
}
