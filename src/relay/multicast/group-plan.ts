// Group plan: which multicast groups the relay receives, and the entries of its source table. Pure.
//
// Called by multicast-groups.ts. A source with one group has the source's name in metrics. A source
// with several groups, or with discovered ones, is one entry for each group: "edge/233.84.178.1".

import { formatEndpoint, parseAddress } from "../../core/addresses/addresses.ts";
import { parseGroup } from "../../core/addresses/multicast-addresses.ts";
import {
  groupPlaceOf,
  isForwardedSource,
  isMulticastSource,
} from "../../core/configuration/relay-sources.ts";
import type { Source } from "../data-plane/tables.ts";

export interface ConfiguredSource extends Source {
  readonly kind?: string;
  readonly groups?: readonly string[];
  readonly interface?: string;
}

export interface PlannedGroup {
  /** Name in the source table and in metrics. */
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly interface: string;
  readonly tier: string;
  readonly forward: boolean;
  /** From a route of the interface, not from the configuration. */
  readonly isDiscovered: boolean;
}

export function interfacesOf(sources: readonly ConfiguredSource[]): string[] {
  const names = sources.filter(isMulticastSource).map((source) => groupPlaceOf(source).interface);
  return [...new Set(names)];
}

/** Listening addresses of the groups, for RelayOptions. A machine without IPv6 ignores "[::]". */
export function groupListenersOf(sources: readonly ConfiguredSource[]): string[] {
  const listeners = sources.filter(isMulticastSource).flatMap((source) => {
    const { port } = groupPlaceOf(source);
    const isIpv6 = (group: string) => group.includes(":");
    return [
      ...(source.groups?.every(isIpv6) === true ? [] : [`0.0.0.0:${port}`]),
      ...(source.groups?.some(isIpv6) === false ? [] : [`[::]:${port}`]),
    ];
  });
  return [...new Set(listeners)].toSorted();
}

/** Multicast groups of an interface, by its name. */
type GroupsOfInterface = (name: string) => readonly string[];

/**
 * Each group and port belongs to one source. Configured groups win over discovered ones, a route
 * that exists wins over a remembered one, and otherwise the first source wins. `discovered`: groups
 * with a route now; `remembered`: those whose route is gone.
 */
export function planGroups(
  sources: readonly ConfiguredSource[],
  discovered: GroupsOfInterface,
  remembered: GroupsOfInterface = () => [],
): PlannedGroup[] {
  const multicast = sources.filter(isMulticastSource);
  const given = multicast.map((source) => source.groups?.map(parseGroup));
  const taken = new Set<string>();
  const take = (source: ConfiguredSource, groups: readonly string[]): string[] =>
    groups.filter((group) => {
      const key = `${group} ${groupPlaceOf(source).port}`;
      const isFree = !taken.has(key);
      taken.add(key);
      return isFree;
    });
  const takeAll = (groupsOf: (index: number, source: ConfiguredSource) => readonly string[]) =>
    multicast.map((source, index) => take(source, groupsOf(index, source)));
  const found = (of: GroupsOfInterface) =>
    takeAll((index, source) => (given[index] ? [] : of(groupPlaceOf(source).interface)));
  const parts = [takeAll((index) => given[index] ?? []), found(discovered), found(remembered)];
  return multicast.flatMap((source, index) =>
    parts
      .flatMap((part) => part[index] ?? [])
      .map((address) => ({
        name: given[index]?.length === 1 ? source.name : `${source.name}/${address}`,
        address,
        ...groupPlaceOf(source),
        tier: source.tier,
        forward: isForwardedSource(source),
        isDiscovered: given[index] === undefined,
      })),
  );
}

/** The source table: sources that are known by their senders, and the groups. */
export function tableOf(
  sources: readonly ConfiguredSource[],
  groups: readonly PlannedGroup[],
): Source[] {
  const unicast = sources
    .filter((source) => !isMulticastSource(source))
    .map((source) => ({ ...source, forward: isForwardedSource(source) }));
  return [
    ...unicast,
    ...groups.map(({ name, address, port, tier, forward }) => ({
      name,
      address,
      port,
      tier,
      forward,
    })),
  ];
}

export function endpointOf({ address, port }: PlannedGroup): string {
  return formatEndpoint({ bytes: parseAddress(address), port });
}
