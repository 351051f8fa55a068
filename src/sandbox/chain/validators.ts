// The validators of the sandbox cluster: seeded keys, stakes, and the use of the partner's
// software.
//
// Called by chain.ts at the start. The stakes decrease from the first to the last, as in a real
// cluster, so that the leader schedule is uneven.

import { lamportsPerSol } from "../../core/solana-constants.ts";
import { Shredder } from "../../relay/data-plane/shredder.ts";
import { SandboxKeyPair } from "./keys.ts";
import type { Validator } from "./types.ts";

const largestStakeSol = 400_000n;

export interface ClusterValidator extends Validator {
  readonly identityKeys: SandboxKeyPair;
  readonly voteKeys: SandboxKeyPair;
  /** Signs this leader's shreds. */
  readonly shredder: Shredder;
}

/** Every second validator, from the second on, runs the alternative partner's software. */
export function makeValidators(seed: number, count: number): readonly ClusterValidator[] {
  return Array.from({ length: count }, (_, i) => {
    const identityKeys = SandboxKeyPair.named(seed, `validator ${i} identity`);
    const voteKeys = SandboxKeyPair.named(seed, `validator ${i} vote`);
    return {
      name: `validator-${i + 1}`,
      identity: identityKeys.address,
      voteAccount: voteKeys.address,
      stakeLamports: (largestStakeSol * lamportsPerSol * 2n) / BigInt(i + 2),
      isAltPartner: i % 2 === 1,
      identityKeys,
      voteKeys,
      shredder: new Shredder(identityKeys.seed),
    };
  });
}
