// A node that registers tips as fast as it can, some of them at the same time as its neighbours, and
// prints each registration that is acknowledged and each term that it begins or ends.
// Started and killed by seat-crash.test.ts: `seat-child.ts URL NODE`.

import { writeSync } from "node:fs";
import { base58 } from "@scure/base";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { PostgresDriver } from "../../../src/platform/store/postgres/driver.ts";
import { SqlRegistrationStore } from "../../../src/platform/store/tables/registration-store.ts";
import { SqlTierStore } from "../../../src/platform/store/tables/tier-store.ts";
import { CountedOnAcceptance } from "../../../src/shreds/registrations/counted-on-acceptance.ts";
import { PendingCapacity } from "../../../src/shreds/registrations/pending-capacity.ts";
import { PendingRegistrations } from "../../../src/shreds/registrations/pending-registrations.ts";
import { Registrar } from "../../../src/shreds/registrations/registrar.ts";
import { TierLeadership } from "../../../src/shreds/tiers/tier-leadership.ts";
import { madeUpFacts } from "../../support/transactions/facts.ts";
import { accountIds, crashRules, lamportsOf } from "./crash-child.ts";

const log = createLogger({ level: "silent" });
const codec = {
  encode: (bytes: Uint8Array) => base58.encode(bytes),
  decode: (text: string) => base58.decode(text),
};
const sharedFrom = 100_000_000;
const nodeNumbers = 1_000_000;

export interface OpenNode {
  readonly driver: PostgresDriver;
  readonly registrations: SqlRegistrationStore;
  readonly tiers: SqlTierStore;
  readonly seat: TierLeadership;
  readonly registrar: Registrar;
  close(): Promise<void>;
}

/** Opened, not started. */
export async function openNode(url: string, clock: Clock = systemClock): Promise<OpenNode> {
  const driver = await PostgresDriver.open({ url, clock: systemClock, log });
  const registrations = new SqlRegistrationStore(driver, codec);
  const tiers = new SqlTierStore(driver);
  const places = new PendingCapacity({ pendingMax: 100_000, pendingPerAccountMax: 100_000 });
  const shared = { clock, log, store: registrations, places };
  const desk = new PendingRegistrations({
    ...shared,
    countsAtOnce: true,
    open: (book) => new CountedOnAcceptance({ ...shared, tiers: book }),
  });
  const seat = new TierLeadership({
    rules: crashRules,
    store: tiers,
    locks: driver,
    counting: desk,
    clock,
    log,
    random: Math.random,
  });
  const registrar = new Registrar({
    log,
    reader: {
      inspect: (wire) => {
        const number = Buffer.from(wire).readUInt32LE();
        return { ...madeUpFacts(number), tipLamports: lamportsOf(number) };
      },
      decode: () => null,
    },
    verifier: { verify: () => Promise.resolve(true) },
    store: registrations,
    tiers: seat,
    places: desk,
    present: () => ({ slot: null, slotNs: null }),
    addresses: () => new Set(),
  });
  const close = async (): Promise<void> => {
    await seat.close();
    await desk.close();
    await driver.close();
  };
  return { driver, registrations, tiers, seat, registrar, close };
}

function entryOf(number: number) {
  const wire = Buffer.alloc(8);
  wire.writeUInt32LE(number);
  return { transaction: wire.toString("base64"), slot: 1n };
}

async function work(url: string, node: number): Promise<void> {
  const { seat, registrar } = await openNode(url);
  await seat.start();
  let wasKeeper = false;
  systemClock.every(5, () => {
    if (seat.isKeeper === wasKeeper) return;
    wasKeeper = seat.isKeeper;
    writeSync(1, `${wasKeeper ? "keeps" : "follows"} ${Date.now()}\n`);
  });
  writeSync(1, "started\n");
  let number = node * nodeNumbers;
  const lane = async (accountId: string, place: number): Promise<void> => {
    for (;;) {
      // What every node registers in these milliseconds.
      const together = sharedFrom + (Math.floor(Date.now() / 20) % 10_000_000) * 10 + place;
      const numbers = [number++, number++, together, number++];
      const results = await registrar.register(accountId, numbers.map(entryOf), false);
      const lines = results.map((result, i) =>
        result.accepted
          ? `${accountId} ${numbers[i]} ${result.signature}\n`
          : `refused ${result.reason}\n`,
      );
      writeSync(1, lines.join(""));
      await systemClock.sleep(3 + (number % 7));
    }
  };
  await Promise.all(accountIds.map(lane));
}

const [, program, url, node] = process.argv;
if (program?.endsWith("seat-child.ts") && url && node) await work(url, Number(node));
