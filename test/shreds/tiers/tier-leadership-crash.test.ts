// Real nodes on a real PostgreSQL. The leader is killed while it settles, another node takes over, every
// acknowledged tip counts once, and the tiers follow from the tips.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { migrate } from "../../../src/platform/store/migrations.ts";
import type { CountedTip } from "../../../src/shreds/tiers/types.ts";
import { until, untilTrue } from "../../platform/store/files.ts";
import { PostgresServer, postgresPrograms } from "../../support/postgres/postgres.ts";
import { childProgramWords } from "../../support/processes/child-program.ts";
import { accountIds, crashRules, lamportsOf } from "./leader-tiers-child.ts";
import { openNode } from "./tier-leadership-child.ts";

const program = fileURLToPath(new URL("./tier-leadership-child.ts", import.meta.url));
const words = await childProgramWords(program);
/** SHREDWAY_CRASH_ROUNDS=300 for a long run. */
const rounds = Number(process.env["SHREDWAY_CRASH_ROUNDS"] ?? 4);

/** A node in a separate process. */
class Child {
  readonly lines: string[] = [];
  isLeader = false;
  isStarted = false;
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #rest = "";

  constructor(url: string, node: number) {
    this.#process = spawn(process.execPath, [...words, url, String(node)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#ended = once(this.#process, "close");
    this.#process.stdout?.on("data", (chunk: Buffer) => {
      const lines = (this.#rest + chunk.toString()).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) this.#read(line);
    });
  }

  #read(line: string): void {
    if (line === "started") this.isStarted = true;
    if (line.startsWith("leads")) this.isLeader = true;
    if (line.startsWith("follows")) this.isLeader = false;
    if (line.startsWith("a_")) this.lines.push(line);
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#ended;
    this.isLeader = false;
  }
}

describe.skipIf(postgresPrograms === null)("nodes on PostgreSQL", () => {
  let server: PostgresServer | undefined;
  const children = new Set<Child>();
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(async () => {
    for (const child of children) await child.kill();
    await server?.remove();
  });

  it(`count each tip once while leaders are killed, in ${rounds} rounds`, {
    timeout: 600_000,
  }, async () => {
    const url = server?.url("nodes") ?? "";
    await server?.ensureDatabase(url);
    const first = await openNode(url);
    await migrate(first.driver, "bytea");
    await first.close();
    let started = 0;
    const known = new Map<string, string>();
    const start = (): Child => {
      const child = new Child(url, ++started);
      children.add(child);
      return child;
    };
    const collect = (child: Child): void => {
      for (const line of child.lines) {
        const [accountId = "", number = "", signature = ""] = line.split(" ");
        expect(known.has(signature)).toBe(false); // no other client got the same acknowledgement
        known.set(signature, `${accountId} ${number}`);
      }
    };
    start();
    start();
    const leaderOf = (): Child | undefined => [...children].find(({ isLeader }) => isLeader);
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      await until(() => [...children].every(({ isStarted }) => isStarted));
      await until(() => leaderOf() !== undefined);
      await systemClock.sleep(Math.random() * 500);
      const leader = leaderOf();
      if (!leader) continue;
      if (round % 3 === 2) await pass(leader, server);
      const killedNs = systemClock.monotonicNs();
      await leader.kill();
      children.delete(leader);
      collect(leader);
      await until(() => leaderOf() !== undefined);
      times.push(Number((systemClock.monotonicNs() - killedNs) / 1_000_000n));
      start();
    }
    if (process.env["SHREDWAY_CRASH_ROUNDS"]) console.log("taken over after ms:", times);
    for (const child of children) {
      await child.kill();
      collect(child);
    }
    children.clear();
    await compare(url, known);
  });

  /** Freezes until another node has taken over, then continues its interrupted operation. */
  async function pass(leader: Child, postgres: PostgresServer | undefined): Promise<void> {
    leader.signal("SIGSTOP");
    // Its connections end without notice, which releases its locks. The other nodes reconnect.
    await postgres?.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'nodes'",
    );
    await until(() => [...children].some((child) => child !== leader && child.isLeader));
    leader.signal("SIGCONT");
    await until(() => !leader.isLeader);
  }
});

async function compare(url: string, known: ReadonlyMap<string, string>): Promise<void> {
  const node = await openNode(url);
  await node.leadership.start();
  await until(() => node.leadership.isLeader);
  await untilTrue(async () => (await node.registrations.pending(null, 1)).length === 0);
  const tips: CountedTip[] = [];
  for (;;) {
    const page = await node.tierStore.countedAfter(tips.at(-1)?.order ?? 0n, 5000);
    if (page.length === 0) break;
    tips.push(...page);
  }
  expect(new Set(tips.map(({ order }) => order)).size).toBe(tips.length);
  const owners = await node.registrations.owners([...known.keys()]);
  let least = 0n;
  for (const [signature, text] of known) {
    const [accountId = "", number = ""] = text.split(" ");
    expect(owners.get(signature)).toBe(accountId);
    least += lamportsOf(Number(number));
  }
  expect(tips.reduce((sum, { lamports }) => sum + lamports, 0n) >= least).toBe(true);
  expect(known.size).toBeGreaterThan(100);
  // After the windows, the sums are empty and the audit trails complete.
  const { windowMs, graceMs, tiers } = crashRules;
  await systemClock.sleep(windowMs + graceMs * (tiers.length + 1));
  let upgrades = 0;
  for (const accountId of accountIds) {
    expect(node.tiers.view(accountId)).toMatchObject({ tier: null, sumLamports: 0n });
    const trail = (await node.tiers.history(accountId, null, 1_000_000)).toReversed();
    let tier: string | null = null;
    for (const [i, event] of trail.entries()) {
      expect(event).toMatchObject({ number: BigInt(i + 1), from: tier });
      tier = event.to;
      if (event.kind === "upgraded") upgrades++;
    }
    expect(tier).toBeNull();
  }
  expect(upgrades).toBeGreaterThan(0);
  await node.close();
}
