// Votes of the validators for the previous block.
//
// Called by the producer once per block. They are signed transactions, executed by the vote
// program; the identity pays. A validator votes once per block, for its parent. A fork restores the
// towers as it restores the vote accounts.

import { buildTransaction } from "../../core/transactions/build-legacy.ts";
import { voteProgram } from "./addresses.ts";
import type { ParentEnd } from "./block-shreds.ts";
import { emptyTower, type Tower, towerSyncData, withVote } from "./tower.ts";
import type { ClusterValidator } from "./validators.ts";

export class Votes {
  readonly #validators: readonly ClusterValidator[];
  #towers: readonly Tower[];

  constructor(validators: readonly ClusterValidator[]) {
    this.#validators = validators;
    this.#towers = validators.map(() => emptyTower);
  }

  /** Signed wire bytes of the votes for `parent`, one per validator in their order. */
  castFor(parent: ParentEnd): readonly Uint8Array[] {
    this.#towers = this.#towers.map((tower) => withVote(tower, parent.slot));
    return this.#validators.map(({ identityKeys, voteKeys }, i) =>
      buildTransaction(
        [identityKeys],
        [
          {
            program: voteProgram,
            accounts: [
              { key: voteKeys.publicKey, isSigner: false, isWritable: true },
              { key: identityKeys.publicKey, isSigner: true, isWritable: false },
            ],
            data: towerSyncData(this.#towers[i] ?? emptyTower, parent.blockhash),
          },
        ],
        parent.blockhash,
      ),
    );
  }

  /** Returns a function that restores the current towers. */
  checkpoint(): () => void {
    const towers = this.#towers;
    return () => {
      this.#towers = towers;
    };
  }
}
