// Leader schedule from a node: fetched at startup, and refreshed before it ends.
//
// Used by the relay's service if no file is configured. It retains two epochs (more if they are short),
// starting with the one of 512 slots ago, whose last shreds may still arrive. If the node does not
// answer, the active schedule stays, and the next attempt follows soon.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { FailureStreak } from "../../core/failure-streak.ts";
import type { Logger } from "../../core/log.ts";
import { parsePubkey, pubkeyBytes } from "../../core/primitives.ts";
import { buildSchedule, type LeaderSchedule, type LeaderSlots } from "./schedule.ts";

const checkIntervalMs = { most: 20_000, least: 1000, perSlotOfEpoch: 50 } as const;
const retryMs = 2000;
const logEvery = 10;
/** The relay's window: shreds may arrive this many slots late. */
const slotsBehind = 512n;
/** More slots than pass until the check after the next one, plus the relay's window. */
const slotsAhead = 1024n;

export interface EpochInfo {
  readonly epoch: bigint;
  readonly absoluteSlot: bigint;
  readonly slotIndex: bigint;
  readonly slotsInEpoch: bigint;
}

/** Identity in base58 -> slots relative to the epoch's first. */
export type EpochLeaders = ReadonlyMap<string, readonly number[]>;

/** The used part of the node; RpcClient implements it. */
export interface LeaderNode {
  /** Name of the node in log lines. */
  readonly host: string;
  epochInfo(): Promise<EpochInfo>;
  /** The leaders of the epoch that contains `slot`; null: the node does not know it yet. */
  leaderSchedule(slot: bigint): Promise<EpochLeaders | null>;
}

interface RpcLeaderScheduleDependencies {
  readonly node: LeaderNode;
  readonly clock: Clock;
  readonly log: Logger;
  /** Activates a new schedule. May throw; then it is tried again. */
  readonly publish: (schedule: LeaderSchedule) => void;
}

interface Span {
  readonly firstSlot: bigint;
  readonly leaders: EpochLeaders;
}

/** The parts of a schedule. */
interface Coverage {
  /** First slots of its epochs, ascending. */
  readonly firsts: readonly bigint[];
  /** First slot after the last of them. */
  readonly end: bigint;
  /** False: the node did not know every epoch, so it is queried again. */
  readonly isComplete: boolean;
}

/**
 * Epochs as one schedule with the first slot of each. Throws ShredwayError if they overlap or a key is
 * invalid.
 */
export function joinEpochs(spans: readonly Span[]): LeaderSchedule {
  const firsts = spans
    .map(({ firstSlot }) => firstSlot)
    .toSorted((a, b) => (a < b ? -1 : Number(a > b)));
  const [firstSlot = 0n] = firsts;
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
  return buildSchedule(firstSlot, leaders, firsts);
}

export class RpcLeaderSchedule {
  readonly #dependencies: RpcLeaderScheduleDependencies;
  #timer: Timer | undefined;
  /** The present run; results of an earlier run are ignored. */
  #run: object | undefined;
  #inForce: Coverage | undefined;
  readonly #failures = new FailureStreak(logEvery);
  /** Several checks per epoch, because a node may know only one epoch ahead. */
  #lookMs: number = checkIntervalMs.most;

  constructor(dependencies: RpcLeaderScheduleDependencies) {
    this.#dependencies = dependencies;
  }

  /** Settles after the first attempt, successful or not; continues until `stop`. */
  async start(): Promise<void> {
    this.stop();
    this.#inForce = undefined;
    this.#run = {};
    await this.#poll(this.#run);
  }

  get hasSchedule(): boolean {
    return this.#inForce !== undefined;
  }

  /** Publishes nothing afterwards. May be started again. */
  stop(): void {
    this.#run = undefined;
    this.#timer?.cancel();
  }

  async #poll(run: object): Promise<void> {
    const { log, node, clock } = this.#dependencies;
    try {
      await this.#renew(run);
      if (this.#failures.isFailing) log.info(`leader schedule: ${node.host} responds again`);
      this.#failures.end();
    } catch (error) {
      const isToLog = this.#failures.add(messageOf(error));
      if (this.#run === run && isToLog) {
        const state = this.hasSchedule
          ? "the current schedule stays in force"
          : "SHREDS ARE DROPPED UNTIL THEN";
        log.warn(`leader schedule: no new schedule, ${state}: ${messageOf(error)}`);
      }
    }
    if (this.#run !== run) return;
    const delayMs = this.#failures.isFailing ? retryMs : this.#lookMs;
    this.#timer = clock.after(delayMs, () => void this.#poll(run));
  }

  async #renew(run: object): Promise<void> {
    const { node, publish } = this.#dependencies;
    const info = await node.epochInfo();
    const byEpoch = Number(info.slotsInEpoch) * checkIntervalMs.perSlotOfEpoch;
    this.#lookMs = Math.min(checkIntervalMs.most, Math.max(checkIntervalMs.least, byEpoch));
    if (this.#inForce && isEnough(this.#inForce, info)) return;
    const { spans, ...coverage } = await this.#ask(info);
    if (this.#run !== run) return; // stopped during the query
    publish(joinEpochs(spans));
    this.#inForce = coverage;
  }

  /** The current epoch and as many others as the schedule must cover, at least two in total. */
  async #ask({
    absoluteSlot,
    slotIndex,
    slotsInEpoch,
  }: EpochInfo): Promise<Coverage & { readonly spans: readonly Span[] }> {
    const { node } = this.#dependencies;
    const present = absoluteSlot - slotIndex;
    const spans: Span[] = [];
    let isComplete = true;
    let first = present;
    while (first + slotsBehind > absoluteSlot && first > 0n) {
      const leaders = await node.leaderSchedule(first - 1n);
      isComplete &&= leaders !== null;
      if (!leaders) break;
      first -= lengthOf(leaders);
      spans.unshift({ firstSlot: first, leaders });
    }
    let next = present;
    while (spans.length < 2 || next < absoluteSlot + slotsAhead) {
      const leaders = await node.leaderSchedule(next);
      isComplete &&= leaders !== null;
      if (!leaders) break;
      spans.push({ firstSlot: next, leaders });
      next += next === present ? slotsInEpoch : lengthOf(leaders);
    }
    return { spans, isComplete, end: next, firsts: spans.map(({ firstSlot }) => firstSlot) };
  }
}

/** Whether the active schedule also covers the current slot. */
function isEnough({ firsts, end, isComplete }: Coverage, info: EpochInfo): boolean {
  const { absoluteSlot, slotIndex } = info;
  const present = absoluteSlot - slotIndex;
  const hasEpochs = firsts.includes(present) && end >= absoluteSlot + slotsAhead;
  // As soon as the shreds of the previous epoch have arrived, the next one replaces it.
  const isNextDue = firsts.at(-1) === present && present + slotsBehind <= absoluteSlot;
  return isComplete && hasEpochs && !isNextDue;
}

/**
 * Slots of an epoch by leader: every slot has one, and epochs change their length. Throws ShredwayError
 * if it has no leader.
 */
function lengthOf(leaders: EpochLeaders): bigint {
  let last = -1;
  for (const slots of leaders.values()) for (const slot of slots) last = Math.max(last, slot);
  if (last >= 0) return BigInt(last) + 1n;
  throw new ShredwayError(
    "leaders_invalid",
    "leader schedule: expected leaders of an epoch, got none",
  );
}
