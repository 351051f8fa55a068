// Multicast groups: joins the groups of the configuration, joins them again when their interface,
// route or address returns, and investigates silent ones.
//
// Owned by relay-service.ts and by the tools that receive groups. It looks at the interfaces once a
// second. A group is silent when no shred of it has arrived for 30 s: the group is then left and
// joined again, once per period, and reported until shreds arrive.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import type { Relay } from "../data-plane/relay.ts";
import {
  type ConfiguredSource,
  endpointOf,
  interfacesOf,
  type PlannedGroup,
  planGroups,
  tableOf,
} from "./group-plan.ts";
import type { InterfaceFacts, InterfaceReader } from "./interface-reader.ts";

const pollMs = 1000;
const silentMs = 30_000;
/** A discovered group keeps its entry and its counters for this time after its route is gone. */
const rememberMs = 24 * 3600 * 1000;
const noInterface: InterfaceFacts = { index: 0, isUp: false, ipv4: null, groups: [] };

/** The part of a snapshot that shows whether groups deliver. */
interface SourceCounts {
  readonly sources: readonly {
    readonly name: string;
    readonly received: bigint;
    readonly verdicts: { readonly heartbeat: bigint };
  }[];
}

interface Dependencies {
  readonly relay: Pick<Relay, "joinGroup" | "leaveGroup" | "publishSources"> & {
    snapshot(): SourceCounts;
  };
  readonly readInterface: InterfaceReader;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly clock: Clock;
}

/** One group, for metrics, readiness and tools. */
export interface GroupState {
  /** Name of its source in metrics. */
  readonly source: string;
  readonly address: string;
  readonly interface: string;
  readonly isJoined: boolean;
  /** Why it is not joined; null: it is. */
  readonly problem: string | null;
  /** Times that the group was joined. */
  readonly joins: number;
  /**
   * Seconds since the last datagram that was not a heartbeat. Before the first one: since the group
   * was configured or discovered, joined or not.
   */
  readonly silentSeconds: number;
  readonly isSilent: boolean;
}

class Group {
  plan: PlannedGroup;
  /** The interface when the group was joined; null: not joined. */
  joined: Pick<InterfaceFacts, "index" | "ipv4"> | null = null;
  joins = 0;
  problem: string | null = null;
  shreds = -1n;
  lastShredMs: number;
  lastJoinMs = 0;
  isSilent = false;
  /** Since when the route of a discovered group is gone; null: it exists. */
  goneMs: number | null = null;

  constructor(plan: PlannedGroup, nowMs: number) {
    this.plan = plan;
    this.lastShredMs = nowMs;
  }
}

function keyOf({ name, address, port, interface: of }: PlannedGroup): string {
  return `${name} ${address} ${port} ${of}`;
}

export class MulticastGroups {
  readonly #dependencies: Dependencies;
  readonly #groups = new Map<string, Group>();
  readonly #interfaces = new Map<string, InterfaceFacts>();
  #sources: readonly ConfiguredSource[] = [];
  #timer: Timer | undefined;
  #readProblem: string | null = null;
  #tableProblem: string | null = null;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Publishes the source table of these sources, and joins and leaves groups accordingly. Throws
   * ShredwayError if the relay rejects the table; the old one then stays active.
   */
  publish(sources: readonly ConfiguredSource[]): void {
    this.#readInterfaces(sources);
    const plans = this.#publishTable(sources);
    this.#tableProblem = null;
    this.#sources = sources;
    this.#replace(plans);
    this.#timer?.cancel();
    this.#timer = undefined;
    if (interfacesOf(sources).length > 0)
      this.#timer = this.#dependencies.clock.every(pollMs, () => this.#poll());
  }

  states(): GroupState[] {
    const nowMs = this.#nowMs();
    return [...this.#groups.values()].map((group) => ({
      source: group.plan.name,
      address: group.plan.address,
      interface: group.plan.interface,
      isJoined: group.joined !== null,
      problem: group.problem,
      joins: group.joins,
      silentSeconds: Math.max(0, Math.floor((nowMs - group.lastShredMs) / 1000)),
      isSilent: group.isSilent,
    }));
  }

  /** Why a group does not deliver; null: all do, or none is configured. */
  get problem(): string | null {
    const ofGroups = this.states().flatMap(
      ({ source, address, problem, silentSeconds, isSilent }) =>
        problem !== null
          ? [`group ${address} of ${source}: ${problem}`]
          : isSilent
            ? [`group ${address} of ${source}: no shred for ${silentSeconds} s`]
            : [],
    );
    const problems = [this.#readProblem, this.#tableProblem, ...ofGroups].filter(
      (problem) => problem !== null,
    );
    if (problems.length > 0) return problems.join("; ");
    const empty = interfacesOf(this.#sources).find(
      (name) => !this.#hasGroup(name) && this.#facts(name).groups.length === 0,
    );
    return empty === undefined ? null : this.#emptyText(empty);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / 1_000_000n);
  }

  #facts(name: string): InterfaceFacts {
    return this.#interfaces.get(name) ?? noInterface;
  }

  #hasGroup(name: string): boolean {
    return [...this.#groups.values()].some(({ plan }) => plan.interface === name);
  }

  #emptyText(name: string): string {
    return this.#facts(name).index === 0
      ? `the interface ${name} does not exist`
      : `no multicast group has a route through ${name}`;
  }

  #readInterfaces(sources: readonly ConfiguredSource[]): void {
    const problems: string[] = [];
    for (const name of interfacesOf(sources)) {
      try {
        this.#interfaces.set(name, this.#dependencies.readInterface(name));
      } catch (error) {
        problems.push(messageOf(error)); // what was read before stays in force
      }
    }
    const problem = problems.length > 0 ? problems.join("; ") : null;
    if (problem !== null && problem !== this.#readProblem) this.#warn(problem);
    this.#readProblem = problem;
  }

  /**
   * A discovered group whose route is gone keeps its entry for a time, so that its counters continue. It loses
   * the entry to a source on another interface that has a route for the group.
   */
  #plansOf(sources: readonly ConfiguredSource[], keepMs = rememberMs): PlannedGroup[] {
    const nowMs = this.#nowMs();
    const known = (name: string): string[] =>
      [...this.#groups.values()]
        .filter(({ plan }) => plan.isDiscovered && plan.interface === name)
        .filter(({ goneMs }) => nowMs - (goneMs ?? nowMs) < keepMs)
        .map(({ plan }) => plan.address);
    return planGroups(sources, (name) => this.#facts(name).groups, known);
  }

  #poll(): void {
    this.#readInterfaces(this.#sources);
    const plans = this.#plansOf(this.#sources);
    const isNew = plans.some((plan) => !this.#groups.has(keyOf(plan)));
    if (!isNew) this.#tableProblem = null;
    const published = isNew || plans.length < this.#groups.size ? this.#tryTable() : null;
    if (published) this.#replace(published);
    else for (const group of this.#groups.values()) this.#update(group);
    this.#findSilence(this.#dependencies.relay.snapshot());
  }

  /** null: the relay rejects the table, for example because there are too many groups. */
  #tryTable(): PlannedGroup[] | null {
    try {
      const plans = this.#publishTable(this.#sources);
      this.#tableProblem = null;
      return plans;
    } catch (error) {
      if (!(error instanceof ShredwayError)) throw error;
      const problem = `new groups are ignored: ${error.message}`;
      if (problem !== this.#tableProblem) this.#warn(problem);
      this.#tableProblem = problem;
      return null;
    }
  }

  /** Groups without a route lose their entries if the relay rejects a table with them: it may be full. */
  #publishTable(sources: readonly ConfiguredSource[]): PlannedGroup[] {
    const { relay } = this.#dependencies;
    const plans = this.#plansOf(sources);
    try {
      relay.publishSources(tableOf(sources, plans));
      return plans;
    } catch (error) {
      const present = this.#plansOf(sources, 0);
      if (!(error instanceof ShredwayError) || present.length === plans.length) throw error;
      relay.publishSources(tableOf(sources, present));
      return present;
    }
  }

  #replace(plans: readonly PlannedGroup[]): void {
    const wanted = new Map(plans.map((plan) => [keyOf(plan), plan]));
    for (const [key, group] of this.#groups) {
      if (wanted.has(key)) continue;
      this.#leave(group);
      this.#groups.delete(key);
      if (group.goneMs !== null) this.#info(group, "dropped: its route is gone");
    }
    for (const [key, plan] of wanted) {
      const group = this.#groups.get(key) ?? new Group(plan, this.#nowMs());
      group.plan = plan;
      this.#groups.set(key, group);
      this.#update(group);
    }
  }

  /** Why the group cannot be joined now; null: it can. */
  #obstacle({ plan }: Group): string | null {
    const facts = this.#facts(plan.interface);
    if (facts.index === 0) return `the interface ${plan.interface} does not exist`;
    if (!facts.isUp) return `the interface ${plan.interface} is down`;
    if (plan.isDiscovered && !facts.groups.includes(plan.address))
      return `its route through ${plan.interface} is gone`;
    if (!plan.address.includes(":") && facts.ipv4 === null)
      return `the interface ${plan.interface} has no IPv4 address`;
    return null;
  }

  #update(group: Group): void {
    const facts = this.#facts(group.plan.interface);
    const isGone = group.plan.isDiscovered && !facts.groups.includes(group.plan.address);
    group.goneMs = isGone ? (group.goneMs ?? this.#nowMs()) : null;
    const obstacle = this.#obstacle(group);
    const { joined } = group;
    const hasChanged = joined && (joined.index !== facts.index || joined.ipv4 !== facts.ipv4);
    if (obstacle !== null || hasChanged === true) this.#leave(group);
    if (obstacle === null && !group.joined) this.#join(group, facts);
    else this.#report(group, obstacle);
  }

  #join(group: Group, facts: InterfaceFacts): void {
    const refusal = this.#dependencies.relay.joinGroup(membershipOf(group.plan, facts));
    if (refusal === null) {
      group.joined = facts;
      group.joins += 1;
      group.lastJoinMs = this.#nowMs();
      if (group.joins === 1 || group.problem !== null) this.#info(group, "joined");
      group.problem = null;
    } else {
      this.#report(group, refusal);
    }
  }

  #leave(group: Group): void {
    if (!group.joined) return;
    // The kernel drops memberships of a deleted interface by itself; then this has no effect.
    this.#dependencies.relay.leaveGroup(membershipOf(group.plan, group.joined));
    group.joined = null;
  }

  #report(group: Group, problem: string | null): void {
    if (problem !== null && problem !== group.problem)
      this.#warn(`group ${group.plan.address} of ${group.plan.name} is not joined: ${problem}`);
    group.problem = problem;
  }

  #findSilence(snapshot: SourceCounts): void {
    const nowMs = this.#nowMs();
    const rows = new Map(snapshot.sources.map((row) => [row.name, row]));
    for (const group of this.#groups.values()) {
      const row = rows.get(group.plan.name);
      const shreds = row ? row.received - row.verdicts.heartbeat : 0n;
      if (shreds !== group.shreds) {
        if (group.isSilent) this.#info(group, "receives shreds again");
        group.isSilent = false;
        if (group.shreds >= 0n || shreds > 0n) group.lastShredMs = nowMs;
        group.shreds = shreds;
      } else if (
        group.joined &&
        nowMs - Math.max(group.lastShredMs, group.lastJoinMs) >= silentMs
      ) {
        this.#investigate(group);
      }
    }
  }

  /** Joins a silent group again: a router or the kernel may have lost the membership. */
  #investigate(group: Group): void {
    const { address, name, interface: of } = group.plan;
    if (!group.isSilent) {
      this.#warn(
        `group ${address} of ${name} on ${of}: no shred for ${silentMs / 1000} s; it is left and joined ` +
          "again until shreds arrive. Check that the subscription is active and that no firewall drops its port on " +
          of,
      );
    }
    group.isSilent = true;
    this.#leave(group);
    this.#update(group);
  }

  #info({ plan }: Group, what: string): void {
    this.#dependencies.log.info(
      { group: plan.address, interface: plan.interface, source: plan.name },
      `multicast: group ${endpointOf(plan)} on ${plan.interface} ${what}`,
    );
  }

  #warn(text: string): void {
    this.#dependencies.log.warn(`multicast: ${text}`);
  }
}

function membershipOf(plan: PlannedGroup, facts: Pick<InterfaceFacts, "index" | "ipv4">) {
  return {
    group: endpointOf(plan),
    interfaceIndex: facts.index,
    interfaceAddress: facts.ipv4 ?? "0.0.0.0",
  };
}
