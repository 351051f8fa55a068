// The address lookup tables that must be read from a node, and when.
//
// Pure. A transaction reaches the relay before it is executed, and it may fail. A table that it changes is
// therefore read again until the node has confirmed the slot; the node then knows the table with or without
// the change. A needed table is read until it exists or the slot is confirmed, then after pauses only.

import { backOffMs } from "../../core/back-off.ts";
import type { LookupReport } from "../data-plane/relay-lookup-tables.ts";

/** A table that waits to be read. */
export interface WaitingTable {
  readonly table: Uint8Array;
  /** The node must have confirmed this slot. */
  readonly slot: bigint;
  /** A transaction needs addresses of it. */
  readonly isNeeded: boolean;
  /** An instruction names it. */
  readonly isChanging: boolean;
  /** Reads before the slot was confirmed. */
  readonly reads: number;
  readonly dueMs: number;
}

interface TableRead {
  /** The newest slot that the node has confirmed. */
  readonly confirmedSlot: bigint;
  /** The table exists. */
  readonly isFound: boolean;
}

interface Pause {
  readonly untilMs: number;
  readonly durationMs: number;
}

const waitingMax = 4096;
const pausesMax = 4096;
/** A slot takes about 400 ms, and one or two seconds until it is confirmed. */
const rereads = { firstMs: 400, maxMs: 6400 };
/** Within 19 s. Then a later transaction has to need the table. */
const readsMax = 7;
const pauses = { firstMs: 1000, maxMs: 60_000 };

/** A map compares arrays by identity, so its keys are texts. */
const keyOf = (table: Uint8Array) => Buffer.from(table).toString("latin1");

export class LookupTableQueue {
  readonly #waiting = new Map<string, WaitingTable>();
  readonly #pauses = new Map<string, Pause>();
  #dropped = 0;

  get size(): number {
    return this.#waiting.size;
  }

  /** Reports that found the queue full. */
  get dropped(): number {
    return this.#dropped;
  }

  add({ table, slot, isChange }: LookupReport, nowMs: number): void {
    const key = keyOf(table);
    const waiting = this.#waiting.get(key);
    if (waiting) {
      this.#waiting.set(key, {
        ...waiting,
        slot: slot > waiting.slot ? slot : waiting.slot,
        isNeeded: waiting.isNeeded || !isChange,
        isChanging: waiting.isChanging || isChange,
        dueMs: waiting.isNeeded || isChange ? waiting.dueMs : nowMs,
      });
      return;
    }
    if (isChange) this.#pauses.delete(key);
    else if (nowMs < (this.#pauses.get(key)?.untilMs ?? 0)) return;
    if (this.#waiting.size >= waitingMax) {
      this.#dropped++;
      return;
    }
    // The change is never confirmed at once.
    const dueMs = isChange ? nowMs + rereads.firstMs : nowMs;
    const flags = { isNeeded: !isChange, isChanging: isChange };
    this.#waiting.set(key, { table, slot, ...flags, reads: 0, dueMs });
  }

  /** At most `count` tables that are due; those that transactions need come first. They stay in the queue. */
  due(count: number, nowMs: number): WaitingTable[] {
    const due = [...this.#waiting.values()].filter(({ dueMs }) => dueMs <= nowMs);
    const needed = due.filter(({ isNeeded }) => isNeeded);
    return [...needed, ...due.filter(({ isNeeded }) => !isNeeded)].slice(0, count);
  }

  /** The table was read from a node. */
  read({ table }: WaitingTable, { confirmedSlot, isFound }: TableRead, nowMs: number): void {
    const key = keyOf(table);
    const waiting = this.#waiting.get(key);
    if (!waiting) return;
    const reads = waiting.reads + 1;
    const isFinal = confirmedSlot >= waiting.slot || (isFound && !waiting.isChanging);
    if (!isFinal && reads < readsMax) {
      const dueMs = nowMs + backOffMs(rereads, waiting.reads);
      this.#waiting.set(key, { ...waiting, reads, dueMs });
      return;
    }
    this.#waiting.delete(key);
    if (waiting.isNeeded) this.#pause(key, nowMs);
  }

  /** Each pause soon after another one is twice as long. */
  #pause(key: string, nowMs: number): void {
    const last = this.#pauses.get(key);
    const isSoon = last !== undefined && nowMs < last.untilMs + pauses.maxMs;
    const durationMs = isSoon
      ? backOffMs({ ...pauses, firstMs: last.durationMs }, 1)
      : pauses.firstMs;
    this.#pauses.delete(key);
    this.#pauses.set(key, { untilMs: nowMs + durationMs, durationMs });
    if (this.#pauses.size <= pausesMax) return;
    const [oldest] = this.#pauses.keys();
    if (oldest !== undefined) this.#pauses.delete(oldest);
  }
}
