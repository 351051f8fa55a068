// Ports of the alternative partner's validators: each takes transactions while it leads.
//
// A slot before and a slot after its own are good, too: callers see the slots a little later. The
// second lane, `?revert-protection=true`, takes only what succeeds at present.

import { JsonRpcRefusal } from "../../json-rpc/refusal.ts";
import { describeFailure } from "../../transactions/describe-failure.ts";
import type { ChainApi } from "../chain/types.ts";
import { type PartnerHandler, textAnswer } from "./partner-endpoint.ts";
import { readTransaction } from "./swqos.ts";

const toleranceSlots = 1n;

function checkLeader(chain: ChainApi, identity: string, slot: bigint): void {
  for (let near = slot - toleranceSlots; near <= slot + toleranceSlots; near++) {
    if (near >= 0n && chain.leaderOf(near) === identity) return;
  }
  throw new JsonRpcRefusal(
    "node_behind",
    `expected a transaction while ${identity} leads, got one in slot ${slot}`,
    { slot },
  );
}

function checkSuccess(chain: ChainApi, wire: Uint8Array): void {
  const { err } = chain.simulate(wire, { verifySignatures: true, replaceBlockhash: false });
  if (err === null) return;
  throw new JsonRpcRefusal(
    "preflight_failed",
    `expected a transaction that succeeds, got: ${describeFailure(err)}`,
    { err },
  );
}

/** `slot`: the one whose time it is. */
export function altPartner(chain: ChainApi, identity: string, slot: () => bigint): PartnerHandler {
  return (request, endpoint) => {
    if (request.method !== "POST") return textAnswer(405, "expected POST");
    const isProtected = new URLSearchParams(request.query).get("revert-protection") === "true";
    return endpoint.answerJsonRpc(request, (method, params) => {
      const wire = readTransaction(method, params);
      checkLeader(chain, identity, slot());
      if (isProtected) checkSuccess(chain, wire);
      const signature = chain.send(wire);
      endpoint.counts.transactions++;
      return signature;
    });
  };
}
