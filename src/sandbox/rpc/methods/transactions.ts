// Methods that execute transactions: simulation, submission, airdrops.
//
// Called through table.ts. A transaction that fails in its preflight is not sent. No method waits:
// when the signature is returned, the transaction is in the chain's queue.

import { ShredwayError } from "../../../core/errors.ts";
import { describeFailure } from "../../../core/transactions/describe-failure.ts";
import { parseTransaction } from "../../chain/wire.ts";
import { readAccountEncoding } from "../encode-account.ts";
import {
  checkMinContextSlot,
  commitmentAt,
  type MethodContext,
  type MethodTable,
  withContext,
} from "../method.ts";
import { type Config, invalidParams, type Params } from "../params.ts";
import { encodeSimulation, type SimulationFormat, simulate } from "../simulation-result.ts";
import { readWire } from "../wire-params.ts";

const u32Max = 0xffff_ffff;
/** Far above the need of any wallet, and far below the faucet's balance. */
const airdropLamportsMax = 1_000_000n * 1_000_000_000n;

function readAccounts(config: Config, wire: Uint8Array): SimulationFormat["accounts"] {
  return config.field("accounts").or(null, (value) => {
    const accounts = value.object();
    const encoding = readAccountEncoding(accounts, "base64");
    if (encoding === "binary" || encoding === "base58") {
      throw invalidParams("accounts.encoding", "base64, base64+zstd or jsonParsed", encoding);
    }
    const { keys, lookups } = parseTransaction(wire);
    const loaded = lookups.reduce(
      (count, { writable, readonly }) => count + writable.length + readonly.length,
      keys.length,
    );
    const addresses = accounts
      .field("addresses")
      .array(loaded)
      .map((address) => address.pubkey());
    return { addresses, format: { encoding, slice: null } };
  });
}

function simulateTransaction(context: MethodContext, params: Params): unknown {
  const { chain } = context;
  const config = params.config(1);
  const wire = readWire(params.at(0, "transaction"), config);
  const verifySignatures = config.boolean("sigVerify");
  const replaceBlockhash = config.boolean("replaceRecentBlockhash");
  if (verifySignatures && replaceBlockhash) {
    throw invalidParams("sigVerify", "false together with replaceRecentBlockhash", true);
  }
  const hasInnerInstructions = config.boolean("innerInstructions");
  const commitment = commitmentAt(context, config);
  const accounts = readAccounts(config, wire);
  const simulation = simulate(chain, wire, { verifySignatures, replaceBlockhash });
  const value = encodeSimulation(chain, wire, simulation, { hasInnerInstructions, accounts });
  return withContext(context, commitment, value);
}

function preflight({ chain }: MethodContext, wire: Uint8Array): void {
  const simulation = simulate(chain, wire, { verifySignatures: true, replaceBlockhash: false });
  if (simulation.err === null) return;
  const format = { hasInnerInstructions: false, accounts: null };
  throw new ShredwayError(
    "preflight_failed",
    `Transaction simulation failed: ${describeFailure(simulation.err)}`,
    { details: encodeSimulation(chain, wire, simulation, format) },
  );
}

function sendTransaction(context: MethodContext, params: Params): string {
  const { chain } = context;
  const config = params.config(1);
  const wire = readWire(params.at(0, "transaction"), config);
  const skipsPreflight = config.boolean("skipPreflight");
  const commitment = config.commitment("preflightCommitment");
  // The queue of the sandbox loses no transaction, so no resends are needed.
  config.field("maxRetries").or(0, (value) => value.count(u32Max));
  checkMinContextSlot(chain, commitment, config.minContextSlot());
  if (!skipsPreflight) preflight(context, wire);
  return chain.send(wire);
}

function requestAirdrop(context: MethodContext, params: Params): string {
  const address = params.at(0, "address").pubkey();
  const lamports = params.at(1, "lamports").integer({ min: 1n, max: airdropLamportsMax });
  const config = params.config(2);
  config.field("recentBlockhash").or("", (value) => value.blockhash());
  commitmentAt(context, config);
  return context.chain.airdrop(address, lamports);
}

export const transactionMethods: MethodTable = {
  simulateTransaction: { paramsMax: 2, run: simulateTransaction },
  sendTransaction: { paramsMax: 2, run: sendTransaction },
  requestAirdrop: { paramsMax: 3, run: requestAirdrop },
};
