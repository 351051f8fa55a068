// Temporary data folders, open drivers and generated records for the store's tests.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { base58 } from "@scure/base";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger, type Logger } from "../../../src/core/log.ts";
import { bundleIdOf } from "../../../src/gateway/submission/tracked-transaction.ts";
import type { BundleRecord, SubmissionRecord } from "../../../src/gateway/submission/types.ts";
import {
  SqliteDriver,
  type SqliteDriverOptions,
} from "../../../src/platform/store/sqlite/driver.ts";
import { Store } from "../../../src/platform/store/store.ts";

export const silent: Logger = createLogger({ level: "silent" });

/** Signatures that are not base58, as those of most records here, are null. */
export const signatureCodec = {
  decode: (text: string) => (/^[1-9A-HJ-NP-Za-km-z]+$/.test(text) ? base58.decode(text) : null),
  encode: (bytes: Uint8Array) => base58.encode(bytes),
};

/** The store at a place: a folder, or the URL of a PostgreSQL. */
export function openLocation(location: string, isService = false): Promise<Store> {
  const where = location.startsWith("postgres:")
    ? { directory: "/nowhere", postgres: location }
    : { directory: location };
  return Store.open({ ...where, clock: systemClock, log: silent, isService });
}

/** Folders and open stores of one test file; `clean` in afterEach. */
export class Files {
  #folders: string[] = [];
  #open: { close(): Promise<void> }[] = [];

  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), "shredway-store-"));
    this.#folders.push(folder);
    return folder;
  }

  async driver(
    options: Partial<SqliteDriverOptions> & { path?: string } = {},
  ): Promise<SqliteDriver> {
    const path = options.path ?? join(this.folder(), "a.db");
    const driver = await SqliteDriver.open({ clock: systemClock, log: silent, ...options, path });
    return this.closing(driver);
  }

  async store(directory = this.folder()): Promise<Store> {
    return this.closing(await openLocation(directory));
  }

  closing<T extends { close(): Promise<void> }>(part: T): T {
    this.#open.push(part);
    return part;
  }

  async clean(): Promise<void> {
    for (const part of this.#open) await part.close();
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true });
    this.#open = [];
    this.#folders = [];
  }
}

export function recordOf(
  signature: string,
  changes: Partial<SubmissionRecord> = {},
): SubmissionRecord {
  return {
    signature,
    accountId: "a_1",
    method: "sendTransaction",
    bundleId: null,
    bundleIndex: 0,
    options: { swqosOnly: false, mevProtect: false, revertProtection: false, resendsMax: null },
    receivedNs: 1_767_225_600_000_000_001n,
    state: "open",
    endedNs: null,
    slot: null,
    reason: null,
    err: null,
    events: [{ kind: "received", atNs: 1_767_225_600_000_000_001n, method: "sendTransaction" }],
    wire: Uint8Array.of(1, 2, 3),
    ...changes,
  };
}

export function bundleRecordOf(
  signatures: readonly string[],
  acceptedNs = 1_767_225_600_000_000_001n,
): BundleRecord {
  return { accountId: "a_1", bundleId: bundleIdOf(signatures), acceptedNs, signatures };
}

/** New submissions of a bundle. */
export function recordsOfBundle({ bundleId, signatures }: BundleRecord): SubmissionRecord[] {
  return signatures.map((signature, bundleIndex) =>
    recordOf(signature, { method: "sendBundle", bundleId, bundleIndex }),
  );
}

/** Settles when `look` returns a value; limited by the test's own time-out. */
export async function until(look: () => boolean): Promise<void> {
  while (!look()) await systemClock.sleep(5);
}

/** The same for asynchronous checks. */
export async function untilTrue(look: () => Promise<boolean>): Promise<void> {
  while (!(await look())) await systemClock.sleep(5);
}
