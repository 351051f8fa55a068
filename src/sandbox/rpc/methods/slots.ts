// Methods for slots, epochs and leaders.
//
// Called through table.ts. Leaders are known for the current epoch and the next one. A range in a
// request is checked before it is used.

import { blocksBetween } from "../blocks.ts";
import { commitmentAt, type MethodContext, type MethodTable, withContext } from "../method.ts";
import { invalidParams, type Params } from "../params.ts";

const slotLeadersMax = 5000;

function leaderSchedule(context: MethodContext, params: Params): unknown {
  const { chain } = context;
  const first = params.at(0, "slot");
  // If the slot is omitted, the configuration is the first parameter.
  const isConfigFirst = typeof first.json === "object" && first.json !== null;
  const config = params.config(isConfigFirst ? 0 : 1);
  const commitment = commitmentAt(context, config);
  const identity = config.field("identity").or(null, (value) => value.pubkey());
  const slot = isConfigFirst
    ? chain.slot(commitment)
    : first.or(chain.slot(commitment), (value) => value.integer());
  const schedule = chain.leaderSchedule(slot);
  if (!schedule) return null;
  const rows = identity === null ? [...schedule] : [[identity, schedule.get(identity) ?? []]];
  return Object.fromEntries(rows.filter(([, slots]) => slots?.length !== 0));
}

function slotLeaders({ chain }: MethodContext, params: Params): string[] {
  const start = params.at(0, "start slot").integer();
  const limit = params.at(1, "limit").count(slotLeadersMax, 1);
  return Array.from({ length: limit }, (_, index) => {
    const slot = start + BigInt(index);
    const leader = chain.leaderOf(slot);
    if (leader !== null) return leader;
    throw invalidParams("slot range", "slots of this epoch and the next", slot);
  });
}

function blockProduction(context: MethodContext, params: Params): unknown {
  const { chain } = context;
  const config = params.config(0);
  const commitment = commitmentAt(context, config);
  const identity = config.field("identity").or(null, (value) => value.pubkey());
  const { absoluteSlot, slotIndex } = chain.epochInfo(commitment);
  const range = config.field("range").or(null, (value) => value.object());
  const from = range?.field("firstSlot").integer() ?? absoluteSlot - slotIndex;
  const lastSlot = range?.field("lastSlot").or(absoluteSlot, (value) => value.integer());
  const to = lastSlot ?? absoluteSlot;
  const firstSlot = from > chain.firstKeptSlot() ? from : chain.firstKeptSlot();
  if (firstSlot > to || to > absoluteSlot) {
    throw invalidParams("range", `slots ${chain.firstKeptSlot()} to ${absoluteSlot}`, to);
  }
  const counts = new Map<string, [number, number]>();
  const count = (leader: string | null, place: 0 | 1): void => {
    if (leader === null || (identity !== null && leader !== identity)) return;
    const both = counts.get(leader) ?? [0, 0];
    both[place]++;
    counts.set(leader, both);
  };
  for (let slot = firstSlot; slot <= to; slot++) count(chain.leaderOf(slot), 0);
  for (const { leader } of blocksBetween(chain, firstSlot, to)) count(leader, 1);
  const value = { byIdentity: Object.fromEntries(counts), range: { firstSlot, lastSlot: to } };
  return withContext(context, commitment, value);
}

/** The sandbox pays no inflation rewards. */
const noInflation = { total: 0, validator: 0, foundation: 0 };

export const slotMethods: MethodTable = {
  getSlot: {
    paramsMax: 1,
    run: (context, params) => context.chain.slot(commitmentAt(context, params.config(0))),
  },
  getBlockHeight: {
    paramsMax: 1,
    run: (context, params) => context.chain.blockHeight(commitmentAt(context, params.config(0))),
  },
  getTransactionCount: {
    paramsMax: 1,
    run: (context, params) => {
      commitmentAt(context, params.config(0));
      return context.chain.transactionCount();
    },
  },
  getEpochInfo: {
    paramsMax: 1,
    run: (context, params) => context.chain.epochInfo(commitmentAt(context, params.config(0))),
  },
  getEpochSchedule: {
    paramsMax: 0,
    run: ({ chain }) => ({
      slotsPerEpoch: chain.slotsPerEpoch,
      leaderScheduleSlotOffset: chain.slotsPerEpoch,
      warmup: false,
      firstNormalEpoch: 0,
      firstNormalSlot: 0,
    }),
  },
  getLeaderSchedule: { paramsMax: 2, run: leaderSchedule },
  getSlotLeader: {
    paramsMax: 1,
    run: (context, params) =>
      context.chain.leaderOf(context.chain.slot(commitmentAt(context, params.config(0)))),
  },
  getSlotLeaders: { paramsMax: 2, run: slotLeaders },
  getBlockProduction: { paramsMax: 1, run: blockProduction },
  getInflationGovernor: {
    paramsMax: 1,
    run: (context, params) => {
      commitmentAt(context, params.config(0));
      return { initial: 0, terminal: 0, taper: 0, foundation: 0, foundationTerm: 0 };
    },
  },
  getInflationRate: {
    paramsMax: 0,
    run: ({ chain }) => ({ ...noInflation, epoch: chain.epochInfo("finalized").epoch }),
  },
};
