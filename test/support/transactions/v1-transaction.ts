// A transaction of version 1, which web3.js 1.x cannot build: a transfer with its config.

import type { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { u32, u64 } from "../little-endian.ts";

export interface V1Choices {
  readonly blockhash: Uint8Array;
  readonly priorityFeeLamports?: bigint;
  readonly computeUnitLimit?: number;
  readonly loadedBytesLimit?: number;
}

/** Message, then the signature: SIMD-0385. */
export function v1Transfer(
  payer: SandboxKeyPair,
  to: Uint8Array,
  lamports: bigint,
  choices: V1Choices,
): Uint8Array {
  const { priorityFeeLamports, computeUnitLimit, loadedBytesLimit } = choices;
  const config = [
    { bits: 3, bytes: priorityFeeLamports === undefined ? null : u64(priorityFeeLamports) },
    { bits: 4, bytes: computeUnitLimit === undefined ? null : u32(computeUnitLimit) },
    { bits: 8, bytes: loadedBytesLimit === undefined ? null : u32(loadedBytesLimit) },
  ];
  const message = Buffer.concat([
    Uint8Array.of(0x81, 1, 0, 1),
    u32(config.reduce((mask, { bits, bytes }) => (bytes ? mask | bits : mask), 0)),
    choices.blockhash,
    Uint8Array.of(1, 3),
    payer.publicKey,
    to,
    new Uint8Array(32),
    ...config.flatMap(({ bytes }) => bytes ?? []),
    Uint8Array.of(2, 2, 12, 0),
    Uint8Array.of(0, 1),
    u32(2),
    u64(lamports),
  ]);
  return Uint8Array.from(Buffer.concat([message, payer.sign(message)]));
}
