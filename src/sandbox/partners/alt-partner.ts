// Ports of the alternative partner's validators: each accepts transactions during its leader slots.
//
// One slot before and after is accepted as well, because callers observe slots with a delay. A
// transaction below the partner's minimum fee per compute unit is rejected. The rest is an auction:
// the highest fee per compute unit first, then the highest tip. With `?revert-protection=true`, a
// transaction becomes a bundle of one: it is dropped if it would fail, at submission or at
// execution.

import { ShredwayError } from "../../core/errors.ts";
import { describeFailure } from "../../core/transactions/describe-failure.ts";
import { encodeBase58 } from "../../relay/data-plane/base58.ts";
import { feeOf } from "../chain/fees.ts";
import type { ChainApi } from "../chain/types.ts";
import { parseTransaction, type WireTransaction } from "../chain/wire.ts";
import { sendBundleTo, tipOf } from "./bundle.ts";
import { type PartnerHandler, textAnswer } from "./partner-endpoint.ts";
import { readTransaction } from "./swqos.ts";

const toleranceSlots = 1n;
const unitLamportsMin = 10n;
const microPerLamport = 1_000_000n;

interface AltPartnerOptions {
  /** Identities in base58. */
  readonly identity: string;
  /** Addresses in base58. Tips to these addresses count in the auction. */
  readonly tipAddresses: readonly string[];
  /** The current slot by time. */
  readonly slot: () => bigint;
}

function checkLeader(chain: ChainApi, identity: string, slot: bigint): void {
  for (let near = slot - toleranceSlots; near <= slot + toleranceSlots; near++) {
    if (near >= 0n && chain.leaderOf(near) === identity) return;
  }
  throw new ShredwayError(
    "node_behind",
    `expected a transaction while ${identity} leads, got one in slot ${slot}`,
    { details: { slot } },
  );
}

function checkFee(transaction: WireTransaction): void {
  const { price, computeUnitLimit } = feeOf(transaction);
  // A v1 transaction without compute units has no price.
  const hasPrice = transaction.version !== 1 || computeUnitLimit > 0n;
  if (hasPrice && price >= unitLamportsMin * microPerLamport) return;
  throw new ShredwayError(
    "priority_fee_too_low",
    `expected at least ${unitLamportsMin} lamports per compute unit, got ${price} micro-lamports for ` +
      `each of ${computeUnitLimit} units`,
  );
}

function checkSuccess(chain: ChainApi, wire: Uint8Array): void {
  const { err } = chain.simulate(wire, { verifySignatures: true, replaceBlockhash: false });
  if (err === null) return;
  throw new ShredwayError(
    "preflight_failed",
    `expected a transaction that succeeds, got: ${describeFailure(err)}`,
    { details: { err } },
  );
}

export function altPartner(
  chain: ChainApi,
  { identity, tipAddresses, slot }: AltPartnerOptions,
): PartnerHandler {
  const addresses = new Set(tipAddresses);
  const sendProtected = (wire: Uint8Array, tipLamports: bigint): void => {
    checkSuccess(chain, wire);
    sendBundleTo(chain, [wire], tipLamports);
  };
  return (request, endpoint) => {
    if (request.method !== "POST") return textAnswer(405, "expected POST");
    const isProtected = new URLSearchParams(request.query).get("revert-protection") === "true";
    return endpoint.answerJsonRpc(request, (method, params) => {
      const wire = readTransaction(method, params);
      const transaction = parseTransaction(wire);
      checkFee(transaction);
      checkLeader(chain, identity, slot());
      const tipLamports = tipOf(transaction, addresses);
      if (isProtected) sendProtected(wire, tipLamports);
      else chain.send(wire, tipLamports);
      endpoint.counts.transactions++;
      return encodeBase58(transaction.signatures[0] ?? new Uint8Array(64));
    });
  };
}
