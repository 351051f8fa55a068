// Bundle commitments: how settled is a bundle that is in a block: processed, confirmed or finalized?
//
// Asked by getBundleStatuses. What the submission's record says of its end is the least that holds; the
// node is asked for more, since a record says "confirmed" for ever and a bundle that is only processed
// is still open. Nothing is kept here or written to the store: every process, and every node that
// shares the database, answers the same. A bundle is as settled as the least settled of its
// transactions. "finalized" needs the node's word for each signature, in the slot where it landed.

import type { Clock } from "../../core/clock.ts";
import { isEnd } from "./lifecycle.ts";
import type { StatusReader } from "./status-reader.ts";
import {
  type BundleCommitment,
  type BundleCommitments,
  type BundleStatus,
  type Commitment,
  commitments,
  type SignatureOutcome,
  type TransactionStatus,
} from "./types.ts";

/** The node's cache has 300 rooted slots, 60 s of 200 ms; half of it is certain to be there. */
const recentNs = 30_000_000_000n;

function isHigher(one: Commitment, other: Commitment): boolean {
  return commitments.indexOf(one) > commitments.indexOf(other);
}

/**
 * By its record alone. A landing without a node's word was seen in shreds: it is in a leader's block,
 * before any vote.
 */
function recordedCommitment({ reason }: TransactionStatus): Commitment {
  return reason === "finalized" || reason === "confirmed" ? reason : "processed";
}

/** null: it is in no block, as far as the node and the record say. */
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
  /** null: no node is configured, the records say all that is known. */
  readonly reader: StatusReader | null;
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
