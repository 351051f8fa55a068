// A process that registers tips as fast as possible, with windows so short that tiers change
// continuously. It prints each acknowledged registration. Started and killed by
// leader-tiers-crash.test.ts: `leader-tiers-child.ts PLACE ROUND`.

import { writeSync } from "node:fs";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import type { Store } from "../../../src/platform/store/store.ts";
import { TipRegistrar } from "../../../src/shreds/registrations/registrar.ts";
import { LeaderTiers } from "../../../src/shreds/tiers/leader-tiers.ts";
import type { TierRules } from "../../../src/shreds/tiers/types.ts";
import { openLocation } from "../../platform/store/files.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";

export const crashRules: TierRules = {
  tiers: [
    { name: "tier-1", thresholdLamports: 3_000n },
    { name: "tier-2", thresholdLamports: 12_000n },
  ],
  windowMs: 700,
  graceMs: 300,
};

export const accountIds = ["a_0", "a_1", "a_2", "a_3", "a_4", "a_5"];
const entriesPerRequest = 5;
const roundNumbers = 1_000_000;

export function lamportsOf(number: number): bigint {
  return BigInt(1 + (number % 199));
}

/** Opened, not started. */
export async function openAccounting(
  place: string,
  clock: Clock = systemClock,
): Promise<{ store: Store; accounting: LeaderTiers }> {
  const log = createLogger({ level: "error" });
  const store = await openLocation(place);
  const epoch = await store.tiers.takeOver();
  const accounting = new LeaderTiers({ rules: crashRules, store: store.tiers, clock, log, epoch });
  return { store, accounting };
}

async function work(place: string, round: number): Promise<void> {
  const { store, accounting } = await openAccounting(place);
  await accounting.start();
  const registrar = new TipRegistrar({
    log: createLogger({ level: "error" }),
    reader: {
      inspect: (wire) => {
        const number = Buffer.from(wire).readUInt32LE();
        const created = fakeFacts(number);
        return { ...created, tipLamports: lamportsOf(number) };
      },
      decode: () => null,
    },
    verifier: { verify: () => Promise.resolve(true) },
    store: store.registrations,
    tiers: accounting,
    pending: {
      accounting,
      reserve: () => true,
      release: () => {},
      add: () => {},
      claimed: () => {},
    },
    present: () => ({ slot: null, slotNs: null }),
    addresses: () => new Set(),
  });
  let number = round * roundNumbers;
  const lane = async (accountId: string): Promise<void> => {
    for (;;) {
      const first = number;
      number += entriesPerRequest;
      const entries = Array.from({ length: entriesPerRequest }, (_, i) => {
        const wire = Buffer.alloc(8);
        wire.writeUInt32LE(first + i);
        return { transaction: wire.toString("base64"), slot: 1n };
      });
      const results = await registrar.register(accountId, entries, false);
      const lines = results.map((result, i) =>
        result.accepted
          ? `${accountId} ${first + i} ${result.signature}\n`
          : `refused ${result.reason} ${result.message}\n`,
      );
      writeSync(1, lines.join(""));
      await systemClock.sleep(2 + (first % 7));
    }
  };
  await Promise.all(accountIds.map(lane));
}

const [, program, place, round] = process.argv;
if (program?.includes("/leader-tiers-child.") && place && round) {
  await work(place, Number(round));
}
