// Genesis: the accounts before the first block.
//
// Called by chain.ts once. It funds the faucet, the validators' identities, the background wallets
// and the accounts from the options. The vote program itself creates the vote accounts.

import { lamportsPerSol } from "../../core/solana-constants.ts";
import {
  type AccountUse,
  buildTransaction,
  u32Bytes,
} from "../../core/transactions/build-legacy.ts";
import { clockSysvar, rentSysvar, voteProgram } from "./addresses.ts";
import type { SandboxKeyPair } from "./keys.ts";
import type { Svm } from "./svm.ts";
import type { ClusterValidator } from "./validators.ts";
import { parseTransaction } from "./wire.ts";

const faucetLamports = 500_000_000n * lamportsPerSol;
const walletLamports = 100_000n * lamportsPerSol;
const identityLamports = 10_000n * lamportsPerSol;
const voteAccountBytes = 3762;
const initializeVoteInstruction = 0;

interface Funded {
  /** Address of 32 bytes. */
  readonly key: Uint8Array;
  readonly lamports: bigint;
}

interface GenesisOptions {
  readonly faucet: SandboxKeyPair;
  readonly validators: readonly ClusterValidator[];
  readonly wallets: readonly SandboxKeyPair[];
  readonly funded: readonly Funded[];
  readonly genesisHash: Uint8Array;
}

function fund(svm: Svm, { key, lamports }: Funded): void {
  svm.setAccount(key, { lamports, data: new Uint8Array(0), owner: new Uint8Array(32) });
}

function createVoteAccount(
  svm: Svm,
  { identityKeys, voteKeys }: ClusterValidator,
  hash: Uint8Array,
) {
  svm.setAccount(voteKeys.publicKey, {
    lamports: svm.minimumBalanceForRentExemption(voteAccountBytes),
    data: new Uint8Array(voteAccountBytes),
    owner: voteProgram,
  });
  const use = (key: Uint8Array, isWritable: boolean): AccountUse => ({
    key,
    isSigner: false,
    isWritable,
  });
  const identity = identityKeys.publicKey;
  const wire = buildTransaction(
    [identityKeys],
    [
      {
        program: voteProgram,
        accounts: [
          use(voteKeys.publicKey, true),
          use(rentSysvar, false),
          use(clockSysvar, false),
          { key: identity, isSigner: true, isWritable: false },
        ],
        data: Buffer.concat([
          u32Bytes(initializeVoteInstruction),
          identity, // node
          identity, // authorized voter
          identity, // authorized withdrawer
          Uint8Array.of(0), // commission
        ]),
      },
    ],
    hash,
  );
  const { err } = svm.execute(parseTransaction(wire), hash);
  if (err !== null) {
    throw new RangeError(`genesis: expected a vote account, got the error ${JSON.stringify(err)}`);
  }
}

export function createGenesis(svm: Svm, options: GenesisOptions): void {
  fund(svm, { key: options.faucet.publicKey, lamports: faucetLamports });
  for (const { publicKey } of options.wallets) {
    fund(svm, { key: publicKey, lamports: walletLamports });
  }
  for (const validator of options.validators) {
    fund(svm, { key: validator.identityKeys.publicKey, lamports: identityLamports });
    createVoteAccount(svm, validator, options.genesisHash);
  }
  for (const account of options.funded) fund(svm, account);
}
