// Schedule check: compares the leader schedule with the traffic, and watches its end. Pure.
//
// Called by relay-service.ts every few seconds with a snapshot. A schedule that ended drops every shred,
// so this logs a warning, at most once a minute per kind.

import type { RelaySnapshot } from "../data-plane/snapshot.ts";
import { coverageText, coveredSlots, type LeaderSchedule } from "./schedule.ts";

/** About an hour of slots of 400 ms: the time of the warning before a schedule file ends. */
const slotsLeftLow = 9000n;
/** A schedule from a node is refreshed long before this, so the node has a problem. */
const slotsLeftLowFromNode = 512n;
const logIntervalNs = 60_000_000_000n;
/** Fewer packets are not significant. */
const packetsLeast = 32n;

const fileRemedy = "Write the schedule of the current epoch to relay.leaders.file and send SIGHUP";

export class ScheduleCheck {
  #schedule: LeaderSchedule;
  /** Host of the node that provides the schedule; undefined: a file. */
  readonly node: string | undefined;
  #unknownBefore = 0n;
  #packetsBefore = 0n;
  readonly #saidAtNs = new Map<string, bigint>();

  constructor(schedule: LeaderSchedule, node?: string) {
    this.#schedule = schedule;
    this.node = node;
  }

  /** After a reload, earlier warnings do not apply to the new schedule. */
  replace(schedule: LeaderSchedule): void {
    this.#schedule = schedule;
    this.#saidAtNs.clear();
  }

  /** Warnings for the operator; usually empty. `nowNs` is monotonic. */
  update(snapshot: RelaySnapshot, nowNs: bigint): string[] {
    const found: [string, string | undefined][] = [
      ["unknown", this.#unknownLeaders(snapshot)],
      ["end", this.#nearEnd(snapshot)],
    ];
    return found.flatMap(([kind, text]) => {
      const loggedAtNs = this.#saidAtNs.get(kind);
      if (text === undefined || (loggedAtNs !== undefined && nowNs - loggedAtNs < logIntervalNs))
        return [];
      this.#saidAtNs.set(kind, nowNs);
      return [text];
    });
  }

  get #remedy(): string {
    if (this.node === undefined) return fileRemedy;
    return `The node at ${this.node} has not returned the next epoch's schedule; check whether the node is in sync`;
  }

  #unknownLeaders({ verdicts }: RelaySnapshot): string | undefined {
    const all = Object.values(verdicts).reduce((total, count) => total + count, 0n);
    const packets = all - verdicts.unknown_source;
    const newPackets = packets - this.#packetsBefore;
    const unknown = verdicts.unknown_leader - this.#unknownBefore;
    this.#packetsBefore = packets;
    this.#unknownBefore = verdicts.unknown_leader;
    if (newPackets < packetsLeast || unknown * 2n <= newPackets) return undefined;
    return (
      `MOST SHREDS ARE DROPPED: ${unknown} of the last ${newPackets} packets belong to slots without a ` +
      `leader in the schedule; ${coverageText(this.#schedule)}. ${this.#remedy}`
    );
  }

  #nearEnd({ workers }: RelaySnapshot): string | undefined {
    const { last } = coveredSlots(this.#schedule);
    const highest = workers.reduce(
      (most, { highest_slot }) => (highest_slot > most ? highest_slot : most),
      0n,
    );
    const slotsLow = this.node === undefined ? slotsLeftLow : slotsLeftLowFromNode;
    if (highest === 0n || highest + slotsLow <= last) return undefined;
    const left = highest >= last ? "it has ended" : `${last - highest} slots are left`;
    return `${coverageText(this.#schedule)}, slot ${highest} was received: ${left}. ${this.#remedy}`;
  }
}
