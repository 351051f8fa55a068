// Follows the address lookup tables that decoded streams need: reads them from the node of solana.rpc.
//
// Created by src/app/compose-streams.ts. The deshred thread reports tables that are unknown, and tables
// that instructions in the stream create, extend, deactivate or close. One request runs at a time, and
// requests have a minimum distance, so that the node's load is bounded.

import { backOffMs } from "../../core/back-off.ts";
import { encodeBase58 } from "../../core/base58.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { FailureStreak } from "../../core/failure-streak.ts";
import type { Logger } from "../../core/log.ts";
import type { LookupTableCounts, RelayLookupTables } from "../data-plane/relay-lookup-tables.ts";
import { type NodeCall, readLookupTables, tablesPerCall } from "./lookup-table-node.ts";
import { LookupTableQueue, type WaitingTable } from "./lookup-table-queue.ts";

export interface LookupTableStatus extends LookupTableCounts {
  /** Tables that wait to be read. */
  readonly waiting: number;
  /** Requests by their result. */
  readonly answered: number;
  readonly failed: number;
  /** Tables in responses, by whether they exist. */
  readonly found: number;
  readonly missing: number;
  /** Reports that were dropped because too many tables wait. */
  readonly dropped: number;
}

interface FollowerDependencies {
  readonly tables: Pick<RelayLookupTables, "apply" | "reports" | "counts">;
  readonly call: NodeCall;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn" | "info">;
}

/** Reports are read this often. */
const turnMs = 50;
/** Between the beginnings of two requests: 100 tables a second. */
const requestIntervalMs = 200;
const failurePauses = { firstMs: 1000, maxMs: 30_000 };
/** A node may be unavailable for hours. */
const logEvery = 20;

export class LookupTableFollower {
  readonly #dependencies: FollowerDependencies;
  readonly #queue = new LookupTableQueue();
  readonly #failing = new FailureStreak(logEvery);
  readonly #timer: Timer;
  #isReading = false;
  #nextRequestMs = 0;
  #failuresInRow = 0;
  #counts = { answered: 0, failed: 0, found: 0, missing: 0 };

  constructor(dependencies: FollowerDependencies) {
    this.#dependencies = dependencies;
    this.#timer = dependencies.clock.every(turnMs, () => this.#turn());
  }

  status(): LookupTableStatus {
    const { size: waiting, dropped } = this.#queue;
    return { ...this.#dependencies.tables.counts(), ...this.#counts, waiting, dropped };
  }

  close(): void {
    this.#timer.cancel();
  }

  #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / 1_000_000n);
  }

  #turn(): void {
    const nowMs = this.#nowMs();
    for (const report of this.#dependencies.tables.reports()) this.#queue.add(report, nowMs);
    if (this.#isReading || nowMs < this.#nextRequestMs) return;
    const due = this.#queue.due(tablesPerCall, nowMs);
    if (due.length === 0) return;
    this.#isReading = true;
    this.#nextRequestMs = nowMs + requestIntervalMs;
    void this.#read(due).finally(() => {
      this.#isReading = false;
    });
  }

  async #read(due: readonly WaitingTable[]): Promise<void> {
    const { tables, call, log } = this.#dependencies;
    try {
      const answer = await readLookupTables(
        call,
        due.map(({ table }) => encodeBase58(table)),
      );
      const changes = due.map(({ table, slot }, i) => ({
        table,
        usedSlot: slot,
        content: answer.tables[i] ?? null,
      }));
      tables.apply(changes);
      const found = changes.filter(({ content }) => content !== null).length;
      this.#counts.answered++;
      this.#counts.found += found;
      this.#counts.missing += changes.length - found;
      for (const [i, waiting] of due.entries()) {
        const isFound = changes[i]?.content !== null;
        this.#queue.read(waiting, { confirmedSlot: answer.slot, isFound }, this.#nowMs());
      }
      if (this.#failing.isFailing) log.info("streams: address lookup tables are read again");
      this.#failing.end();
      this.#failuresInRow = 0;
    } catch (error) {
      this.#fail(messageOf(error));
    }
  }

  /** The tables stay in the queue. */
  #fail(message: string): void {
    const pauseMs = backOffMs(failurePauses, this.#failuresInRow++);
    this.#counts.failed++;
    this.#nextRequestMs = this.#nowMs() + pauseMs;
    if (!this.#failing.add(message)) return;
    const text = `streams: address lookup tables could not be read: ${message}; retry in ${pauseMs / 1000} s`;
    this.#dependencies.log.warn(text);
  }
}
