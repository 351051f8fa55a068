// A process that stores submissions and keys as fast as possible and prints each acknowledged one.
// Started and killed by crash.test.ts: `crash-child.ts PLACE ROUND`.

import { createHash } from "node:crypto";
import { writeSync } from "node:fs";
import type { ApiKey } from "../../../src/gateway/accounts/types.ts";
import type { BundleRecord, SubmissionRecord } from "../../../src/gateway/submission/types.ts";
import { bundleRecordOf, openLocation, recordsOfBundle } from "./files.ts";

/** Three transactions, with different names only. A name with "+": a bundle with the last two and another one. */
export function bundleOf(name: string): BundleRecord {
  const first = name.endsWith("+") ? 1 : 0;
  const base = name.slice(0, name.length - first);
  return bundleRecordOf([0, 1, 2].map((i) => `${base}.${first + i}`));
}

export function recordsOf(bundle: BundleRecord): SubmissionRecord[] {
  return recordsOfBundle(bundle).map((record) => ({
    ...record,
    wire: new Uint8Array(400).fill(record.signature.length + Number(record.signature.at(-1))),
  }));
}

export function keyOf(name: string, accountId: string): ApiKey {
  return {
    id: name,
    accountId,
    accountName: "crash",
    hash: new Uint8Array(createHash("sha256").update(name).digest()),
    hint: "sw_test",
    label: "",
    scopes: ["submit"],
    requestsPerSecond: null,
    burst: 7,
    allowedRanges: [],
    createdNs: 5n,
    expiresNs: null,
    revokedNs: null,
  };
}

async function work(location: string, round: string): Promise<void> {
  const store = await openLocation(location);
  const account = await store.keys.ensureAccount("crash", 1n);
  const notify = (name: string): void => void writeSync(1, `${name}\n`);
  const lane = async (number: number): Promise<void> => {
    for (let i = 0; ; i++) {
      const name = `${round}-${number}-${i}`;
      if (number === 0) {
        await store.keys.addKey(keyOf(name, account.id));
        notify(`key ${name}`);
      } else {
        for (const each of [name, `${name}+`]) {
          const bundle = bundleOf(each);
          await store.submissions.put(recordsOf(bundle), [bundle]);
          notify(`bundle ${each}`);
        }
      }
    }
  };
  await Promise.all([0, 1, 2, 3].map(lane));
}

const [, program, location, round] = process.argv;
if (program?.includes("/crash-child.") && location && round) await work(location, round);
