// Node lock: the lock "node NAME", which at most one service holds.
//
// Acquired by store.ts for a service. The start is rejected while another service holds it. If it is
// lost with its connection, the service keeps acquiring it while it continues to run, because other
// locks and the transactions themselves guard all exclusive work.

import type { Clock } from "../../core/clock.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { nodeLockOf } from "../../core/node-lock-name.ts";
import type { HeldLock, SqlDriver } from "./driver.ts";

const retryMs = 250;
/**
 * Longer than a database needs to notice that the previous service of that name was disconnected.
 */
const defaultWaitMs = 12_000;
const msNs = 1_000_000n;

interface NodeLockOptions {
  readonly driver: Pick<SqlDriver, "tryLock">;
  readonly node: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** The error if another service has that name. */
  readonly waitMs?: number;
}

export class NodeLock {
  readonly #options: NodeLockOptions;
  readonly #waitNs: bigint;
  readonly #closing = new AbortController();
  #held: HeldLock | null = null;
  #taking: Promise<void> | undefined;

  /**
   * Throws ShredwayError "store_failed": another service has the name, or the database is unreachable.
   */
  static async take(options: NodeLockOptions): Promise<NodeLock> {
    const lock = new NodeLock(options);
    const { node, clock, log } = options;
    const endNs = clock.monotonicNs() + lock.#waitNs;
    for (let tries = 1; !(await lock.#try()); tries++) {
      if (clock.monotonicNs() > endNs) {
        throw new ShredwayError(
          "store_failed",
          `data.node: another service on this database uses the name ${quote(node)}; ` +
            `expected a unique name: set data.node`,
          { details: { node } },
        );
      }
      if (tries === 1) log.info(`data.node: another service uses the name ${quote(node)}; waiting`);
      await clock.sleep(retryMs);
    }
    return lock;
  }

  private constructor(options: NodeLockOptions) {
    this.#options = options;
    this.#waitNs = BigInt(options.waitMs ?? defaultWaitMs) * msNs;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#taking;
    await this.#held?.release();
  }

  async #try(): Promise<boolean> {
    const { driver, node } = this.#options;
    this.#held = await driver.tryLock(nodeLockOf(node), () => {
      this.#held = null;
      this.#taking ??= this.#takeAgain().finally(() => {
        this.#taking = undefined;
      });
    });
    return this.#held !== null;
  }

  async #takeAgain(): Promise<void> {
    const { node, clock, log } = this.#options;
    const { signal } = this.#closing;
    let refusedNs: bigint | null = null;
    let isWarned = false;
    while (!signal.aborted) {
      try {
        if (await this.#try()) break;
        const nowNs = clock.monotonicNs();
        refusedNs ??= nowNs;
        // At first, the holder may be the rest of the lost connection, or a test of the lock.
        if (!isWarned && nowNs - refusedNs > this.#waitNs) {
          isWarned = true;
          log.warn(`data.node: another service now uses this service's name ${quote(node)}`);
        }
      } catch {
        refusedNs = null; // the database is unreachable, which others report
      }
      await clock.sleep(retryMs * 4, signal);
    }
    if (isWarned && !signal.aborted) log.info(`data.node: the name ${quote(node)} is free again`);
  }
}
