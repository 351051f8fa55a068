// Node directory: the settings of all nodes on one database, and their differences.
//
// Opened by compose-gateway.ts if the database is shared. Each node writes its settings at its start and at
// every reload, and reads those of the others. A node that runs holds the lock of its name. A grave
// difference refuses a start or a reload; every other one is a warning. A shred-tip address is offered
// when every running node has it, and a paid tip counts if any node ever had its address.

import type { Clock, Timer } from "../core/clock.ts";
import { messageOf, ShredwayError } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { nodeLockOf } from "../core/node-lock-name.ts";
import type { SqlDriver } from "../platform/store/driver.ts";
import type { NodeStore } from "../platform/store/tables/node-store.ts";
import { clockProblem, measureClockOffset, steadyOffset } from "./clock-offset.ts";
import {
  differencesOf,
  type NodeSettings,
  readNodeSettings,
  textOfDifference,
  writeNodeSettings,
} from "./node-settings.ts";

interface NodeDirectoryDependencies {
  readonly store: NodeStore;
  readonly locks: Pick<SqlDriver, "tryLock">;
  /** Name of this node. */
  readonly node: string;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
}

interface OtherNode {
  readonly name: string;
  readonly settings: NodeSettings;
  readonly isRunning: boolean;
}

/** Nodes that start or stop are noticed after this time; changed settings at once. */
const refreshMs = 5_000;

export class NodeDirectory {
  readonly #dependencies: NodeDirectoryDependencies;
  #own: NodeSettings;
  #others: readonly OtherNode[] = [];
  #differences: readonly string[] = [];
  /** Reported difference from the clock of the database. */
  #offsetMs = 0;
  readonly #listeners = new Set<() => void>();
  #timer: Timer | null = null;
  #unsubscribe: (() => void) | null = null;
  #refreshing: Promise<void> | null = null;
  /** Something changed since the last read began. */
  #isStale = false;
  #isFailing = false;
  #isClosed = false;

  /** Throws ShredwayError "config_invalid" for a grave difference from a node that runs. */
  static async open(
    dependencies: NodeDirectoryDependencies,
    settings: NodeSettings,
  ): Promise<NodeDirectory> {
    const directory = new NodeDirectory(dependencies, settings);
    await directory.#read();
    directory.check(settings); // before the other nodes see these settings
    await directory.#write();
    await directory.#read();
    directory.check(settings); // of two nodes that start together, at least one sees the other
    directory.#follow();
    return directory;
  }

  private constructor(dependencies: NodeDirectoryDependencies, settings: NodeSettings) {
    this.#dependencies = dependencies;
    this.#own = settings;
  }

  /** Differences from nodes that run and from the database's clock, one sentence each. */
  get differences(): readonly string[] {
    return this.#differences;
  }

  /** Whether every running node that sells shreds has this address. */
  isOffered(shredAddress: string): boolean {
    return this.#others.every(
      ({ isRunning, settings: { shredAddresses } }) =>
        !isRunning || shredAddresses.length === 0 || shredAddresses.includes(shredAddress),
    );
  }

  /** Why nothing is sent to the destinations of a region; null: a running node has this region. */
  regionProblem(region: string): string | null {
    const isServed = this.#own.region === region || this.isServedElsewhere(region);
    return isServed ? null : `no node of region ${region} is running`;
  }

  /** Whether another running node sends to the destinations of a region, and this node does not. */
  isServedElsewhere(region: string): boolean {
    if (this.#own.region === region) return false;
    return this.#others.some(({ isRunning, settings }) => isRunning && settings.region === region);
  }

  /** Shred-tip addresses that any node has, or had when it stopped. */
  knownShredAddresses(): string[] {
    return this.#others.flatMap(({ settings }) => settings.shredAddresses);
  }

  /** Called after the settings or the presence of any node changed. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Throws ShredwayError "config_invalid" if `wanted` differs gravely from a node that runs. */
  check(wanted: NodeSettings): void {
    for (const { name, settings, isRunning } of this.#others) {
      const grave = isRunning && differencesOf(wanted, settings).find(({ isGrave }) => isGrave);
      if (!grave) continue;
      throw new ShredwayError(
        "config_invalid",
        `${textOfDifference(name, grave)}. Configure all nodes alike, then restart all of them`,
      );
    }
  }

  /** New settings of this node, after a reload. */
  replace(settings: NodeSettings): void {
    this.#own = settings;
    this.#compare();
    void this.#write().catch((error: unknown) => this.#failed(error));
  }

  /** Reads all nodes again. Never rejects; after a failure, the last known state stays. */
  refresh(): Promise<void> {
    this.#isStale = true;
    this.#refreshing ??= this.#readUntilFresh().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#unsubscribe?.();
    await this.#refreshing;
  }

  #follow(): void {
    const { store, clock } = this.#dependencies;
    this.#timer = clock.every(refreshMs, () => void this.refresh());
    this.#unsubscribe = store.onForeignChange(() => void this.refresh());
  }

  async #write(): Promise<void> {
    const { store, node } = this.#dependencies;
    await store.put({ name: node, settings: writeNodeSettings(this.#own) });
  }

  async #read(): Promise<void> {
    const { store, node } = this.#dependencies;
    const others: OtherNode[] = [];
    for (const { name, settings: text } of await store.all()) {
      const settings = name === node ? null : readNodeSettings(text);
      if (settings) others.push({ name, settings, isRunning: await this.#isRunning(name) });
    }
    const { clock } = this.#dependencies;
    const measuredMs = await measureClockOffset(clock, () => store.databaseTimeMs());
    if (this.#isClosed) return;
    this.#offsetMs = steadyOffset(this.#offsetMs, measuredMs);
    this.#others = others;
    this.#compare();
  }

  /** A change during a read may be missing in it. */
  async #readUntilFresh(): Promise<void> {
    while (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      await this.#tryRead();
    }
  }

  async #tryRead(): Promise<void> {
    try {
      await this.#read();
      this.#isFailing = false;
    } catch (error) {
      this.#failed(error);
    }
  }

  async #isRunning(name: string): Promise<boolean> {
    const lock = await this.#dependencies.locks.tryLock(nodeLockOf(name), () => {});
    await lock?.release();
    return lock === null;
  }

  #compare(): void {
    const { log } = this.#dependencies;
    const before = new Set(this.#differences);
    const ofNodes = this.#others
      .filter(({ isRunning }) => isRunning)
      .flatMap(({ name, settings }) =>
        differencesOf(this.#own, settings).map((difference) => textOfDifference(name, difference)),
      );
    const ofClock = clockProblem(this.#offsetMs);
    this.#differences = ofClock === null ? ofNodes : [...ofNodes, ofClock];
    for (const text of this.#differences) if (!before.delete(text)) log.warn(`nodes: ${text}`);
    if (before.size > 0 && this.#differences.length === 0)
      log.info(
        "nodes: all running nodes are configured alike, and the clock agrees with the database",
      );
    for (const listener of this.#listeners) listener();
  }

  #failed(error: unknown): void {
    if (!this.#isFailing && !this.#isClosed)
      this.#dependencies.log.warn(`nodes: could not compare the nodes: ${messageOf(error)}`);
    this.#isFailing = true;
  }
}
