// Votes: what the validators send about the block before.
//
// Called by the producer once per block. Real signed transactions, executed by the vote program; the
// identity pays. A validator votes once per block, for its parent; a fork takes the towers back to
// what they were, as it does with the vote accounts.

import { voteProgram } from "./addresses.ts";
import type { ParentEnd } from "./block-shreds.ts";
import { buildTransaction } from "./build.ts";
import { emptyTower, type Tower, towerSyncData, withVote } from "./tower.ts";
import type { ClusterValidator } from "./validators.ts";

export class Votes {
  readonly #validators: readonly ClusterValidator[];
  #towers: readonly Tower[];

  constructor(validators: readonly ClusterValidator[]) {
    this.#validators = validators;
    this.#towers = validators.map(() => emptyTower);
  }

  /** Signed wire bytes, one per validator in their order, that vote for `parent`. */
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

  /** A function that takes the towers back to what they are now. */
  checkpoint(): () => void {
    const towers = this.#towers;
    return () => {
      this.#towers = towers;
    };
  }
}
