// A node that registers tips as fast as possible, some at the same time as other nodes. It prints each
// acknowledged registration and each term that it begins or ends. Started and killed by
// tier-leadership-crash.test.ts: `tier-leadership-child.ts URL NODE`.

import { writeSync } from "node:fs";
import { base58 } from "@scure/base";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { PostgresDriver } from "../../../src/platform/store/postgres/driver.ts";
import { SqlRegistrationStore } from "../../../src/platform/store/tables/registration-store.ts";
import { SqlTierStore } from "../../../src/platform/store/tables/tier-store.ts";
import { PendingRegistrations } from "../../../src/shreds/registrations/pending-registrations.ts";
import { TipRegistrar } from "../../../src/shreds/registrations/registrar.ts";
import { AccountTiers } from "../../../src/shreds/tiers/account-tiers.ts";
import { TierLeadership } from "../../../src/shreds/tiers/tier-leadership.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";
import { accountIds, crashRules, lamportsOf } from "./leader-tiers-child.ts";

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
  readonly tierStore: SqlTierStore;
  readonly tiers: AccountTiers;
  readonly leadership: TierLeadership;
  readonly registrar: TipRegistrar;
  close(): Promise<void>;
}

/** Opened, not started. */
export async function openNode(url: string, clock: Clock = systemClock): Promise<OpenNode> {
  const driver = await PostgresDriver.open({ url, clock: systemClock, log });
  const registrations = new SqlRegistrationStore(driver, codec);
  const tierStore = new SqlTierStore(driver);
  const pending = new PendingRegistrations({
    clock,
    log,
    store: registrations,
    sources: null,
    limits: { pendingMax: 100_000, pendingPerAccountMax: 100_000 },
  });
  const tiers = new AccountTiers({ rules: crashRules, store: tierStore, clock, log });
  const leadership = new TierLeadership({
    store: tierStore,
    locks: driver,
    tiers,
    registrations: pending,
    clock,
    log,
    random: Math.random,
  });
  const registrar = new TipRegistrar({
    log,
    reader: {
      inspect: (wire) => {
        const number = Buffer.from(wire).readUInt32LE();
        return { ...fakeFacts(number), tipLamports: lamportsOf(number) };
      },
      decode: () => null,
    },
    verifier: { verify: () => Promise.resolve(true) },
    store: registrations,
    tiers,
    pending,
    present: () => ({ slot: null, slotNs: null }),
    addresses: () => new Set(),
  });
  const close = async (): Promise<void> => {
    await leadership.close();
    await pending.close();
    await driver.close();
  };
  return { driver, registrations, tierStore, tiers, leadership, registrar, close };
}

function entryOf(number: number) {
  const wire = Buffer.alloc(8);
  wire.writeUInt32LE(number);
  return { transaction: wire.toString("base64"), slot: 1n };
}

async function work(url: string, node: number): Promise<void> {
  const { leadership, registrar } = await openNode(url);
  await leadership.start();
  let wasLeader = false;
  systemClock.every(5, () => {
    if (leadership.isLeader === wasLeader) return;
    wasLeader = leadership.isLeader;
    writeSync(1, `${wasLeader ? "leads" : "follows"} ${Date.now()}\n`);
  });
  writeSync(1, "started\n");
  let number = node * nodeNumbers;
  const lane = async (accountId: string, place: number): Promise<void> => {
    for (;;) {
      // Every node registers these signatures in these milliseconds.
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
if (program?.includes("/tier-leadership-child.") && url && node) await work(url, Number(node));
