// Budget of a landing benchmark: the lamports that its signed transactions can cost. Pure.
//
// A transaction counts from the moment it is signed, and forever: nobody can take it back. Transactions with
// the same nonce value form a group. Only one of a group can land.

import { ShredwayError } from "../../core/errors.ts";

export class Budget {
  readonly limitLamports: bigint;
  /** The most that each group can cost. */
  readonly #groups = new Map<string, bigint>();
  #reservedLamports = 0n;

  constructor(limitLamports: bigint) {
    this.limitLamports = limitLamports;
  }

  /** The most that all transactions so far can cost. */
  get reservedLamports(): bigint {
    return this.#reservedLamports;
  }

  /** Whether a round with these transactions, each with its group, keeps within the budget. */
  allows(transactions: readonly Reservation[]): boolean {
    return this.#reservedLamports + this.#additional(transactions) <= this.limitLamports;
  }

  /** Throws ShredwayError "value_invalid" above the budget; nothing is reserved then. */
  reserve(transactions: readonly Reservation[]): void {
    if (!this.allows(transactions)) {
      throw new ShredwayError(
        "value_invalid",
        `budget: expected at most ${this.limitLamports} lamports, got ${this.#reservedLamports + this.#additional(transactions)}`,
      );
    }
    this.record(transactions);
  }

  /** Counts transactions that are signed already. */
  record(transactions: readonly Reservation[]): void {
    this.#reservedLamports += this.#additional(transactions);
    for (const [group, lamports] of this.#mostByGroup(transactions)) {
      this.#groups.set(group, lamports);
    }
  }

  #additional(transactions: readonly Reservation[]): bigint {
    let lamports = 0n;
    for (const [group, most] of this.#mostByGroup(transactions)) {
      lamports += most - (this.#groups.get(group) ?? 0n);
    }
    return lamports;
  }

  #mostByGroup(transactions: readonly Reservation[]): Map<string, bigint> {
    const most = new Map<string, bigint>();
    for (const { group, lamports } of transactions) {
      const before = most.get(group) ?? this.#groups.get(group) ?? 0n;
      most.set(group, lamports > before ? lamports : before);
    }
    return most;
  }
}

interface Reservation {
  /** The nonce value, or any text that only this transaction has. */
  readonly group: string;
  readonly lamports: bigint;
}
