// Bundle commitments: the commitment of a bundle in a block: processed, confirmed or finalized; and whether
// it can still land.
//
// getBundleStatuses and getInflightBundleStatuses ask for it. The submission's record gives the minimum; the
// node may answer a higher level, since records stay at "confirmed" and a bundle that is only processed is
// still open. Nothing is stored, so all processes and all nodes that share the database answer the same. A
// bundle has the lowest commitment of its transactions. "finalized" needs the node's answer for each
// signature, in the slot in which it landed.
//
// If only a part of a bundle landed, for example in another bundle, the bundle has failed. The node may not
// have answered yet about the other part, so it is asked.

import type { Clock } from "../../core/clock.ts";
import { isEnd } from "./lifecycle.ts";
import type { StatusReader } from "./status-reader.ts";
import {
  type BundleCommitment,
  type BundleCommitments,
  type BundleProgress,
  type BundleStatus,
  type Commitment,
  commitments,
  type SignatureOutcome,
  type TransactionStatus,
} from "./types.ts";

/** Half of the node's cache, which holds 300 rooted slots: at least 60 s with slots of 200 ms. */
const recentNs = 30_000_000_000n;

function isHigher(one: Commitment, other: Commitment): boolean {
  return commitments.indexOf(one) > commitments.indexOf(other);
}

/** Nodes behind one address differ by less: then one that does not know the rest of a bundle is right. */
const restNs = 10_000_000_000n;

/** According to the record alone. A landing observed in shreds is in a leader's block, before any vote. */
function recordedCommitment({ reason }: TransactionStatus): Commitment {
  return reason === "finalized" || reason === "confirmed" ? reason : "processed";
}

/** null: neither the node nor the record says that it is in a block. */
function commitmentOf(
  status: TransactionStatus,
  outcome: SignatureOutcome | null,
): BundleCommitment | null {
  const isGood = outcome !== null && outcome.err === null;
  if (status.state === "open") {
    return isGood ? { slot: outcome.slot, commitment: outcome.commitment } : null;
  }
  const { slot } = status;
  if (status.state !== "landed" || slot === null) return null;
  const recorded = recordedCommitment(status);
  const isMore = isGood && outcome.slot === slot && isHigher(outcome.commitment, recorded);
  return { slot, commitment: isMore ? outcome.commitment : recorded };
}

interface CommitmentDependencies {
  readonly clock: Pick<Clock, "nowNs">;
  /** null: no node is configured; only the records are known. */
  readonly reader: StatusReader | null;
}

/**
 * The slot in which all of them landed; null: they have not, or not together. Observations in shreds alone may
 * name different forks.
 */
function landedSlot(transactions: readonly TransactionStatus[]): bigint | null {
  if (transactions.some(({ state }) => state !== "landed")) return null;
  const reported = transactions.filter((status) => recordedCommitment(status) !== "processed");
  const isTogether = reported.every(({ slot }) => slot === reported[0]?.slot);
  return isTogether ? (transactions[0]?.slot ?? null) : null;
}

export class NodeBundleCommitments implements BundleCommitments {
  readonly #clock: CommitmentDependencies["clock"];
  readonly #reader: StatusReader | null;

  constructor({ clock, reader }: CommitmentDependencies) {
    this.#clock = clock;
    this.#reader = reader;
  }

  async of({ transactions }: BundleStatus): Promise<BundleCommitment | null> {
    const isInBlocks = transactions.every(
      ({ state, slot }) => (state === "open" || state === "landed") && slot !== null,
    );
    if (!isInBlocks) return null;
    const isLanded = transactions.every(({ state }) => state === "landed");
    if (isLanded && landedSlot(transactions) === null) return null;
    const outcomes = await this.#outcomesOf(transactions);
    const found = transactions.map((status) =>
      commitmentOf(status, outcomes?.get(status.signature) ?? null),
    );
    let least: BundleCommitment | null = null;
    for (const one of found) {
      if (one === null) return null;
      if (least === null) least = one;
      else if (isHigher(least.commitment, one.commitment)) {
        least = { slot: least.slot, commitment: one.commitment };
      }
    }
    return least;
  }

  async progressOf({ transactions }: BundleStatus): Promise<BundleProgress> {
    const landedIn = landedSlot(transactions);
    if (landedIn !== null) return { kind: "landed", slot: landedIn };
    const isDead = transactions.some(({ state }) => state !== "open" && state !== "landed");
    const open = transactions.filter(({ state }) => state === "open");
    if (isDead || open.length === 0) return { kind: "failed" };
    const landed = transactions.find(({ state }) => state === "landed");
    const isLost = landed !== undefined && (await this.#isRestLost(landed, open));
    return { kind: isLost ? "failed" : "pending" };
  }

  /** Whether the open transactions did not land together with this one. */
  async #isRestLost(
    landed: TransactionStatus,
    open: readonly TransactionStatus[],
  ): Promise<boolean> {
    const landedNs = landed.events.findLast(isEnd)?.atNs ?? 0n;
    const nowNs = this.#clock.nowNs();
    if (nowNs - landedNs < restNs) return false;
    if (!this.#reader) return true;
    const isOld = nowNs - landedNs > recentNs;
    const outcomes = await this.#reader.read(open.map(({ signature }) => ({ signature, isOld })));
    return open.some(({ signature }) => {
      const outcome = outcomes.get(signature);
      return outcome === null || (outcome !== undefined && outcome.slot !== landed.slot);
    });
  }

  async #outcomesOf(transactions: readonly TransactionStatus[]) {
    const recentFromNs = this.#clock.nowNs() - recentNs;
    const questions = transactions
      .filter((status) => status.state === "open" || recordedCommitment(status) !== "finalized")
      .map(({ signature, events }) => {
        const end = events.findLast(isEnd);
        return { signature, isOld: end !== undefined && end.atNs < recentFromNs };
      });
    return this.#reader?.read(questions);
  }
}
