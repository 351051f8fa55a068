// Facts about the interfaces of multicast sources, for multicast-checks.ts.

import type { RelayConfig } from "../../core/configuration/configuration.ts";
import { messageOf } from "../../core/errors.ts";
import { interfacesOf } from "../../relay/multicast/group-plan.ts";
import { type InterfaceFacts, readInterface } from "../../relay/multicast/interface-reader.ts";
import type { MulticastFacts } from "./multicast-checks.ts";

type ReadText = (path: string) => string | null;

/**
 * Groups by /proc/net/igmp: a line for each interface, followed by one for each of its groups, as a
 * hexadecimal number in the byte order of the processor.
 */
export function joinedGroupsIn(text: string, name: string): string[] {
  const groups: string[] = [];
  let isHere = false;
  for (const line of text.split("\n").slice(1)) {
    const device = /^\d+\s+([^\s:]+)\s*:/.exec(line)?.[1];
    if (device !== undefined) isHere = device === name;
    const group = /^\s+([0-9A-F]{8})\s/.exec(line)?.[1];
    if (!isHere || group === undefined) continue;
    groups.push([...Buffer.from(group, "hex")].toReversed().join("."));
  }
  return groups;
}

function reversePathFilterOf(name: string, readText: ReadText): number | null {
  const values = ["all", name].flatMap((one) => {
    const text = readText(`/proc/sys/net/ipv4/conf/${one}/rp_filter`);
    return text === null ? [] : [Number(text.trim())];
  });
  return values.length === 0 ? null : Math.max(...values);
}

/** A refused call is a finding, so that the other findings of the configuration remain. */
function readFacts(
  name: string,
  read: (name: string) => InterfaceFacts,
): Pick<MulticastFacts, "facts" | "refusal"> {
  try {
    return { facts: read(name), refusal: null };
  } catch (error) {
    return { facts: { index: 0, isUp: false, ipv4: null, groups: [] }, refusal: messageOf(error) };
  }
}

export function readMulticastFacts(
  relay: RelayConfig,
  readText: ReadText,
  read: (name: string) => InterfaceFacts = readInterface,
): MulticastFacts[] {
  return interfacesOf(relay.sources).map((name) => ({
    interface: name,
    ...readFacts(name, read),
    joined: joinedGroupsIn(readText("/proc/net/igmp") ?? "", name),
    reversePathFilter: reversePathFilterOf(name, readText),
  }));
}
