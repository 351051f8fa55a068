// A process that stores submissions and keys as fast as possible and prints each acknowledged one.
// Started and killed by crash.test.ts: `crash-child.ts PLACE ROUND`.

import { createHash } from "node:crypto";
import { writeSync } from "node:fs";
import type { ApiKey } from "../../../src/gateway/accounts/types.ts";
import type { SubmissionRecord } from "../../../src/gateway/submission/types.ts";
import { openLocation, recordOf } from "./files.ts";

/** Three transactions of one bundle, with different names only. */
export function bundleOf(name: string): SubmissionRecord[] {
  return [0, 1, 2].map((bundleIndex) =>
    recordOf(`${name}.${bundleIndex}`, {
      bundleId: name,
      bundleIndex,
      method: "sendBundle",
      wire: new Uint8Array(400).fill(name.length + bundleIndex),
    }),
  );
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
        await store.submissions.put(bundleOf(name));
        notify(`bundle ${name}`);
      }
    }
  };
  await Promise.all([0, 1, 2, 3].map(lane));
}

const [, program, location, round] = process.argv;
if (program?.includes("/crash-child.") && location && round) await work(location, round);
