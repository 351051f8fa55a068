// The leader schedule from a node: fetched at the start, renewed before it ends.
//
// Made by the relay's service when no file names the leaders. It keeps two epochs (more where they are
// short), beginning with the one of 512 slots ago, whose last shreds are under way. A node that does not answer changes nothing: the schedule in force stays,
// and the next try comes soon.

import type { Clock, Timer } from "../core/clock.ts";
import { messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import { parsePubkey, pubkeyBytes } from "../core/primitives.ts";
import { buildSchedule, type LeaderSchedule, type LeaderSlots } from "../leaders/schedule.ts";
import type { EpochInfo, EpochLeaders, RpcClient } from "../solana/rpc-client.ts";

const lookMs = { most: 20_000, least: 1000, perSlotOfEpoch: 50 } as const;
const tryAgainMs = 2000;
/** The relay's window: so far back shreds may come. */
const slotsBehind = 512n;
/** More than come until the look after the next one, and the relay's window ahead. */
const slotsAhead = 1024n;

/** What is asked of the node; RpcClient is the real one. */
export type LeaderNode = Pick<RpcClient, "epochInfo" | "leaderSchedule" | "host">;

export interface RpcLeadersParts {
  readonly node: LeaderNode;
  readonly clock: Clock;
  readonly log: Logger;
  /** Takes a new schedule into force. May throw: then it is tried again. */
  readonly publish: (schedule: LeaderSchedule) => void;
}

interface Span {
  readonly firstSlot: bigint;
  readonly leaders: EpochLeaders;
}

/** Two epochs as one schedule. Throws ShredwayError when they overlap or a key is none. */
export function joinEpochs(spans: readonly Span[]): LeaderSchedule {
  const firstSlot = spans.reduce(
    (low, span) => (span.firstSlot < low ? span.firstSlot : low),
    spans[0]?.firstSlot ?? 0n,
  );
  const byIdentity = new Map<string, number[]>();
  for (const span of spans) {
    const shift = Number(span.firstSlot - firstSlot);
    for (const [identity, slots] of span.leaders) {
      const all = byIdentity.get(identity) ?? [];
      for (const slot of slots) all.push(slot + shift);
      byIdentity.set(identity, all);
    }
  }
  const leaders: LeaderSlots[] = Array.from(byIdentity, ([identity, slots]) => ({
    key: pubkeyBytes(parsePubkey(identity)),
    slots,
  }));
  return buildSchedule(firstSlot, leaders);
}

export class RpcLeaders {
  readonly #parts: RpcLeadersParts;
  #timer: Timer | undefined;
  /** Of the present run; what an earlier run still waits for comes to nothing. */
  #run: object | undefined;
  /** What the schedule in force was made of, e.g. "417960000+2". */
  #inForce = "";
  #failures = 0;
  #lastFailure = "";
  /** Several looks in an epoch, for a node may know one epoch ahead only. */
  #lookMs: number = lookMs.most;

  constructor(parts: RpcLeadersParts) {
    this.#parts = parts;
  }

  /** Settles after the first try, whether it worked or not; goes on until `stop`. */
  async start(): Promise<void> {
    this.stop();
    this.#inForce = "";
    this.#run = {};
    await this.#look(this.#run);
  }

  get hasSchedule(): boolean {
    return this.#inForce !== "";
  }

  /** Publishes nothing more. May be started again. */
  stop(): void {
    this.#run = undefined;
    this.#timer?.cancel();
  }

  async #look(run: object): Promise<void> {
    const { log, node, clock } = this.#parts;
    try {
      await this.#renew(run);
      if (this.#failures > 0) log.info(`leader schedule: ${node.host} answers again`);
      this.#failures = 0;
      this.#lastFailure = "";
    } catch (error) {
      this.#failures++;
      // Each kind of failure once, and every tenth: a node may be away for hours.
      const isNew = messageOf(error) !== this.#lastFailure;
      this.#lastFailure = messageOf(error);
      if (this.#run === run && (isNew || this.#failures % 10 === 1)) {
        const state = this.hasSchedule ? "the one in force stays" : "SHREDS ARE DROPPED UNTIL THEN";
        log.warn(`no new leader schedule, ${state}: ${messageOf(error)}`);
      }
    }
    if (this.#run !== run) return;
    const delayMs = this.#failures > 0 ? tryAgainMs : this.#lookMs;
    this.#timer = clock.after(delayMs, () => void this.#look(run));
  }

  async #renew(run: object): Promise<void> {
    const { node, publish } = this.#parts;
    const info = await node.epochInfo();
    const byEpoch = Number(info.slotsInEpoch) * lookMs.perSlotOfEpoch;
    this.#lookMs = Math.min(lookMs.most, Math.max(lookMs.least, byEpoch));
    const firsts = wantedEpochs(info);
    const key = firsts.join(" ");
    if (this.#inForce === key) return;
    const spans: Span[] = [];
    for (const firstSlot of firsts) {
      const leaders = await node.leaderSchedule(firstSlot);
      if (leaders) spans.push({ firstSlot, leaders });
    }
    if (this.#run !== run) return; // stopped while the node was thinking
    publish(joinEpochs(spans));
    // With the next epoch unknown as yet, the next look asks again.
    this.#inForce = spans.length === firsts.length ? key : `part of ${key}`;
  }
}

/** First slots of the epochs that the schedule is to cover: at least two, of equal length. */
function wantedEpochs({ absoluteSlot, slotIndex, slotsInEpoch }: EpochInfo): bigint[] {
  let first = absoluteSlot - slotIndex;
  while (first + slotsBehind > absoluteSlot && first >= slotsInEpoch) first -= slotsInEpoch;
  const firsts = [first, first + slotsInEpoch];
  for (let next = first + 2n * slotsInEpoch; next < absoluteSlot + slotsAhead; next += slotsInEpoch)
    firsts.push(next);
  return firsts;
}
