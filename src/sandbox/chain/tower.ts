// Tower: the votes of one validator, and the bytes of a vote.
//
// Called by votes.ts. Each vote doubles the lockout of those below it. The stack has 31 votes, and
// the oldest becomes the voter's root (Tower BFT). Towers are immutable: a fork restores an older
// one. Vote = instruction 14 of the vote program (TowerSync): root, lockouts as offsets, hash of
// the newest slot, no timestamp, block id.

import { lengthBytes, u32Bytes, u64Bytes } from "../../core/transactions/build-legacy.ts";

interface Lockout {
  readonly slot: bigint;
  readonly confirmations: number;
}

export interface Tower {
  /** Oldest first. */
  readonly lockouts: readonly Lockout[];
  readonly root: bigint | null;
}

export const emptyTower: Tower = { lockouts: [], root: null };

const lockoutsMax = 31;
const towerSyncInstruction = 14;
const noRoot = 0xffff_ffff_ffff_ffffn;

/** The tower after one more vote. `slot` must be above its newest one. */
export function withVote(tower: Tower, slot: bigint): Tower {
  const lockouts = [...tower.lockouts];
  for (let top = lockouts.at(-1); top && top.slot + 2n ** BigInt(top.confirmations) < slot; ) {
    lockouts.pop();
    top = lockouts.at(-1);
  }
  let { root } = tower;
  if (lockouts.length === lockoutsMax) root = lockouts.shift()?.slot ?? root;
  lockouts.push({ slot, confirmations: 0 });
  // A vote doubles the lockout of each vote that has as many votes above it as its confirmation
  // count.
  const deepened = lockouts.map((lockout, i) =>
    lockouts.length > i + lockout.confirmations
      ? { ...lockout, confirmations: lockout.confirmations + 1 }
      : lockout,
  );
  return { lockouts: deepened, root };
}

function varintBytes(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 0x80n; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80);
  bytes.push(Number(left));
  return Uint8Array.from(bytes);
}

/** Data of the vote instruction for the newest slot of `tower`, whose block has this hash. */
export function towerSyncData(tower: Tower, hash: Uint8Array): Uint8Array {
  let before = tower.root ?? 0n;
  const lockouts = tower.lockouts.map(({ slot, confirmations }) => {
    const offset = varintBytes(slot - before);
    before = slot;
    return Buffer.concat([offset, Uint8Array.of(confirmations)]);
  });
  return Buffer.concat([
    u32Bytes(towerSyncInstruction),
    u64Bytes(tower.root ?? noRoot),
    lengthBytes(lockouts.length),
    ...lockouts,
    hash,
    Uint8Array.of(0), // no timestamp
    hash, // the block id: the sandbox uses the blockhash
  ]);
}
