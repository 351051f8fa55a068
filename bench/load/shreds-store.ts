// A store with a day of many tips, for the bench of a restart.

import { randomFillSync } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { systemClock } from "../../src/core/clock.ts";
import { createLogger } from "../../src/core/log.ts";
import { databaseFileName } from "../../src/platform/store/data-folder.ts";
import { Store } from "../../src/platform/store/store.ts";

const dayMs = 24 * 3_600_000;
const lamports = 10_000_000n;
const thresholds = [
  [500_000_000n, "tier-2"],
  [200_000_000n, "tier-1"],
] as const;

/** Registrations spread evenly over the last 24 hours and over the accounts, all of them counted. */
export async function fillStore(
  directory: string,
  { accounts, registrations }: { accounts: number; registrations: number },
): Promise<void> {
  const log = createLogger({ level: "warn" });
  await (await Store.open({ directory, clock: systemClock, log })).close();
  const database = new DatabaseSync(join(directory, databaseFileName));
  database.exec("PRAGMA synchronous = OFF"); // no durability needed
  database.exec("PRAGMA cache_size = -262144");
  const nowMs = Number(systemClock.nowNs() / 1_000_000n);
  const insert = database.prepare(
    `INSERT INTO registrations (signature, account_id, lamports, slot, registered_ms, lifetime, state,
      settled_ms, counted_lamports, counted_order) VALUES (?, ?, ?, 1, ?, ?, 'counted', ?, ?, ?)`,
  );
  const lifetime = Buffer.alloc(32, 9);
  const signature = Buffer.alloc(64);
  const counts = new Uint32Array(accounts);
  database.exec("BEGIN");
  for (let i = 0; i < registrations; i++) {
    const account = i % accounts;
    counts[account] = (counts[account] ?? 0) + 1;
    const atMs = Math.floor(nowMs - dayMs + 60_000 + (i * (dayMs - 120_000)) / registrations);
    randomFillSync(signature);
    const order = BigInt(i + 1);
    insert.run(signature, `a_${account}`, lamports, atMs, lifetime, atMs, lamports, order);
  }
  const state = database.prepare(
    `INSERT INTO tier_states (account_id, tier, grace_since_ms, sum_lamports, event_count)
        VALUES (?, ?, NULL, ?, 0)`,
  );
  for (const [account, count] of counts.entries()) {
    const sum = BigInt(count) * lamports;
    const tier = thresholds.find(([least]) => sum >= least)?.[1] ?? null;
    state.run(`a_${account}`, tier, sum);
  }
  database
    .prepare("INSERT INTO tier_clock (id, evaluated_ms, counted_order) VALUES (1, ?, ?)")
    .run(nowMs, registrations);
  database.exec("COMMIT");
  database.close();
}
