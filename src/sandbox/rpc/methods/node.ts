// Methods for the node and the cluster: health, version, identity, nodes, vote accounts.
//
// Called through table.ts. The validators of the sandbox have no sockets, except those that accept
// transactions over QUIC: their rows contain that address.

import { commitmentAt, type MethodContext, type MethodTable } from "../method.ts";
import type { Params } from "../params.ts";

const commissionPercent = 0;

function clusterNodes({ chain, node }: MethodContext): object[] {
  return chain.validators().map(({ identity }) => ({
    pubkey: identity,
    // No other sockets; this node itself answers here.
    gossip: null,
    tvu: null,
    tpu: null,
    tpuQuic: node.tpuQuicAddress?.(identity) ?? null,
    tpuForwards: null,
    tpuForwardsQuic: null,
    tpuVote: null,
    serveRepair: null,
    rpc: identity === node.identity ? node.rpcAddress() : null,
    pubsub: null,
    version: node.version,
    featureSet: node.featureSet,
    shredVersion: node.shredVersion,
  }));
}

function voteAccounts(context: MethodContext, params: Params): object {
  const { chain } = context;
  const config = params.config(0);
  const commitment = commitmentAt(context, config);
  const votePubkey = config.field("votePubkey").or(null, (value) => value.pubkey());
  const lastVote = chain.slot(commitment);
  const rootSlot = chain.slot("finalized");
  const current = chain
    .validators()
    .filter(({ voteAccount }) => votePubkey === null || voteAccount === votePubkey)
    .map(({ identity, voteAccount, stakeLamports }) => ({
      votePubkey: voteAccount,
      nodePubkey: identity,
      activatedStake: stakeLamports,
      epochVoteAccount: true,
      epochCredits: [],
      commission: commissionPercent,
      lastVote,
      rootSlot,
    }));
  return { current, delinquent: [] };
}

export const nodeMethods: MethodTable = {
  getHealth: { paramsMax: 0, run: () => "ok" },
  getVersion: {
    paramsMax: 0,
    run: ({ node }) => ({ "solana-core": node.version, "feature-set": node.featureSet }),
  },
  getIdentity: { paramsMax: 0, run: ({ node }) => ({ identity: node.identity }) },
  getGenesisHash: { paramsMax: 0, run: ({ chain }) => chain.genesisHash },
  getClusterNodes: { paramsMax: 0, run: clusterNodes },
  getVoteAccounts: { paramsMax: 1, run: voteAccounts },
};
