// Readiness of a service whose disk is full.

import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openService } from "../../src/app/open-service.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";
import { createLogger } from "../../src/core/log.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { closing } from "../support/closing.ts";
import { createdKey } from "../support/gateway/created-key.ts";
import { smallDisk } from "../support/small-disk.ts";

const { path: disk, isMounted } = smallDisk(4);

const config = () =>
  completeConfig({
    relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: "off" },
    http: { listen: "127.0.0.1:0", webSocketListen: [] },
    data: { directory: join(disk, "data") },
    tips: { addresses: [pubkeyOf(new Uint8Array(32).fill(5))] },
    operations: { listen: "127.0.0.1:0" },
  });

/** Checks the database often. */
const clock: Clock = {
  ...systemClock,
  every: (periodMs, action) => systemClock.every(Math.min(periodMs, 50), action),
};

it.skipIf(!isMounted)(
  "is unready until the disk has space again, though nobody writes",
  async () => {
    const log = createLogger({ level: "silent" });
    const service = closing(
      await openService({ config: config(), readConfig: config, prefault: false, log, clock }),
    );
    await service.start();
    const { gateway, operations } = service;
    if (!gateway || !operations) throw new Error("expected a gateway and operations");
    const ready = async () =>
      (await fetch(`http://${operations.addresses[0]}/health/ready`)).status;
    await createdKey(gateway);
    expect(await ready()).toBe(200);

    const filler = join(disk, "filler");
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(filler, new Uint8Array(bavail * bsize));
    // The files of the database may have space for a few changes.
    await expect
      .poll(() => createdKey(gateway, { label: "a".repeat(60) }).catch(String))
      .toMatch(/disk/);
    await expect.poll(ready).toBe(503);
    await systemClock.sleep(500);
    expect(await ready()).toBe(503);
    expect(service.degraded()).toMatchObject([
      { name: "database", detail: "the last write failed: submissions and changes are refused" },
    ]);
    await expect(createdKey(gateway)).rejects.toMatchObject({ reason: "store_failed" });

    rmSync(filler);
    await expect.poll(ready).toBe(200);
    await createdKey(gateway);
  },
);
