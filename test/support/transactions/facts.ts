// TransactionFacts for tests of the stages after the inspection.

import type { TransactionFacts } from "../../../src/core/transactions/facts.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";

const nothingKnown = {
  nonce: null,
  tipLamports: 0n,
  computeUnitLimit: 200_000,
  computeUnitPrice: 0n,
  priorityFeeLamports: 0n,
  hasFrontKey: false,
} as const;

/** Facts of a real transaction; tip, fee and nonce are not parsed. */
export function factsOf(wire: Uint8Array, known: Partial<TransactionFacts> = {}): TransactionFacts {
  const { version, signatures, keys, blockhash } = parseTransaction(wire);
  const signatureBytes = signatures[0] ?? new Uint8Array(64);
  return {
    ...nothingKnown,
    wire,
    version,
    signatureBytes,
    signature: encodeBase58(signatureBytes),
    feePayer: keys[0] ?? new Uint8Array(32),
    lifetime: blockhash,
    ...known,
  };
}

/** Facts of arbitrary bytes: `number` makes them and their signature unique. */
export function fakeFacts(number: number, bytes = 215): TransactionFacts {
  const wire = new Uint8Array(bytes).fill(7);
  wire[0] = 1;
  new DataView(wire.buffer).setUint32(1, number);
  const signatureBytes = wire.slice(1, 65);
  return {
    ...nothingKnown,
    wire,
    version: "legacy",
    signatureBytes,
    signature: encodeBase58(signatureBytes),
    feePayer: new Uint8Array(32),
    lifetime: new Uint8Array(32),
  };
}
