// A service's store that takes bundles as fast as possible and prints each acknowledged one. Started and
// killed by crash.test.ts: `bundle-child.ts FOLDER ROUND`.

import { writeSync } from "node:fs";
import { systemClock } from "../../../../src/core/clock.ts";
import { Store } from "../../../../src/platform/store/store.ts";
import { bundleOf, recordsOf } from "../crash-child.ts";
import { silent } from "../files.ts";

async function work(directory: string, round: string): Promise<void> {
  const store = await Store.open({
    directory,
    clock: systemClock,
    log: silent,
    isService: true,
    durableSubmissions: false,
  });
  for (let i = 0; ; i++) {
    const name = `${round}-${i}`;
    const bundle = bundleOf(name);
    const records = recordsOf(bundle);
    const isNew = await store.submissions.add(records, [bundle]);
    if (!isNew) throw new Error(`${name} exists already`);
    writeSync(1, `${name}\n`);
    if (i % 5 === 0) {
      const newer = bundleOf(`${name}+`);
      await store.submissions.put(recordsOf(newer), [newer]);
      writeSync(1, `${name}+\n`);
    }
    if (i % 3 === 0) {
      const ended = {
        state: "landed",
        endedNs: 5n,
        slot: 7n,
        reason: "landed",
        wire: null,
      } as const;
      void store.submissions.put(records.map((record) => ({ ...record, ...ended })));
    }
    if (i % 8 === 0) await systemClock.sleep(1); // timers and commits need turns of the event loop
  }
}

const [, program, directory, round] = process.argv;
if (program?.includes("/bundle-child.") && directory && round) await work(directory, round);
