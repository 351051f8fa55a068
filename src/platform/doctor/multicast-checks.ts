// The checks of multicast sources: interface, groups, reverse-path filter, firewall. Pure.
//
// Called by src/tools/commands/doctor.ts with facts about the interfaces of the configuration.

import type { RelayConfig } from "../../core/configuration/configuration.ts";
import {
  groupPlaceOf,
  isForwardedSource,
  isMulticastSource,
} from "../../core/configuration/relay-sources.ts";
import { type PlannedGroup, planGroups } from "../../relay/multicast/group-plan.ts";
import type { InterfaceFacts } from "../../relay/multicast/interface-reader.ts";
import { about, type Finding, type Found, withMeasure } from "./finding.ts";

export interface MulticastFacts {
  readonly interface: string;
  readonly facts: InterfaceFacts;
  /** Why the kernel does not tell the facts; null: it does. */
  readonly refusal: string | null;
  /** Groups that a program of this machine has joined on the interface. */
  readonly joined: readonly string[];
  /** rp_filter in force: the larger of the values of `all` and of this interface; null: unknown. */
  readonly reversePathFilter: number | null;
}

const strictFilter = 1;

export function checkMulticast(relay: RelayConfig, all: readonly MulticastFacts[]): Finding[] {
  const sources = relay.sources.filter(isMulticastSource);
  const routed = new Map(all.map((each) => [each.interface, each.facts.groups]));
  const planned = planGroups(relay.sources, (name) => routed.get(name) ?? []);
  const ofInterfaces = all.flatMap((each) => {
    const state = interfaceState(each);
    if (state.level === "fail") return [state];
    return [state, groups(planned, each), reversePath(each), firewall(relay, each)];
  });
  return [...ofInterfaces, ...(sources.some(isForwardedSource) ? [forwarding(relay)] : [])].map(
    withMeasure,
  );
}

function interfaceState({ interface: name, facts, refusal }: MulticastFacts): Found {
  const { ok, fail } = about(
    "multicast-interface",
    "The relay joins the groups on the address of this interface.",
  );
  if (refusal !== null)
    return fail(
      refusal,
      "permit netlink sockets (AF_NETLINK) to the service: RestrictAddressFamilies of its unit, or the seccomp profile of its container",
    );
  if (facts.index === 0)
    return fail(
      `the interface ${name} does not exist`,
      "connect the tunnel (doublezero status), or set interface of the source to one of `ip link`",
    );
  if (!facts.isUp) return fail(`the interface ${name} is down`, `ip link set ${name} up`);
  if (facts.ipv4 === null)
    return fail(`the interface ${name} has no IPv4 address`, `ip address show dev ${name}`);
  return ok(`${name} is up, ${facts.ipv4}`);
}

function groups(planned: readonly PlannedGroup[], each: MulticastFacts): Found {
  const { ok, warn } = about(
    "multicast-groups",
    "Without a joined group no shred of the source arrives. A running service joins the groups.",
  );
  const name = each.interface;
  const here = planned.filter((group) => group.interface === name);
  const wanted = [...new Set(here.map(({ address }) => address))];
  if (wanted.length === 0 && each.facts.groups.length > 0)
    return warn(
      `every group with a route through ${name} belongs to another source: ${each.facts.groups.join(", ")}`,
      "remove the source, unless it is a reserve that takes over when the route of the other source is gone",
    );
  if (wanted.length === 0)
    return warn(
      `no multicast group has a route through ${name}`,
      "subscribe to groups (doublezero multicast group list), or name groups in the source",
    );
  const missing = wanted.filter((group) => !group.includes(":") && !each.joined.includes(group));
  if (missing.length === 0) return ok(`joined on ${name}: ${wanted.join(", ")}`);
  return warn(
    `not joined on ${name}: ${missing.join(", ")}`,
    "start the service; if it runs, its log says why (multicast: …)",
  );
}

function reversePath({ interface: name, reversePathFilter }: MulticastFacts): Found {
  const { ok, warn } = about(
    "multicast-filter",
    "A strict reverse-path filter drops packets of publishers whose addresses are not routed back through the interface.",
  );
  if (reversePathFilter === strictFilter)
    return warn(
      `rp_filter of ${name} is strict`,
      `sysctl -w net.ipv4.conf.${name}.rp_filter=2 net.ipv4.conf.all.rp_filter=2`,
    );
  return ok(`rp_filter of ${name} is ${reversePathFilter ?? "unknown"}`);
}

/** The rules of a firewall cannot be read without privileges, so this is a hint. */
function firewall(relay: RelayConfig, { interface: name }: MulticastFacts): Found {
  const ports = relay.sources
    .filter((source) => isMulticastSource(source) && groupPlaceOf(source).interface === name)
    .map((source) => groupPlaceOf(source).port);
  const { ok } = about("multicast-firewall", "A firewall may drop the packets inside the tunnel.");
  return ok(
    `a firewall must admit UDP ${[...new Set(ports)].join(", ")} on ${name}, and GRE on the physical interface`,
  );
}

function forwarding(relay: RelayConfig): Found {
  const names = relay.sources
    .filter((source) => isMulticastSource(source) && isForwardedSource(source))
    .map(({ name }) => name);
  return about(
    "multicast-terms",
    "DoubleZero's terms, section 2(e), forbid retransmission of its data.",
  ).warn(
    `forward: true for ${names.join(", ")}`,
    "remove forward: true, unless you may pass these groups on",
  );
}
