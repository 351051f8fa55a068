// Facts about the way of a block engine's shreds into this machine: listeners and firewall.
//
// Called by src/tools/commands/doctor.ts. Sends nothing: only a packet from outside could prove the whole way.

import { familyOf, formatAddress, parseEndpoint } from "../../core/addresses/addresses.ts";
import type { RelayConfig } from "../../core/configuration/configuration.ts";
import { type FirewallFacts, firewallFactsIn } from "./nft-rules.ts";
import type { SystemReader } from "./reader.ts";

export interface InboundFact {
  /** Name of the source. */
  readonly name: string;
  readonly port: number;
  /** Addresses at which the relay listens on this port; unspecified ones are "0.0.0.0" and "::". */
  readonly listening: readonly string[];
  /** null: the rules could not be read. */
  readonly firewall: FirewallFacts | null;
}

export function readInboundFacts(
  { sources, listen }: RelayConfig,
  reader: Pick<SystemReader, "run">,
): InboundFact[] {
  const wanted = sources.filter(({ shredstream }) => shredstream !== undefined);
  if (wanted.length === 0) return [];
  const ruleset = reader.run("nft", "list", "ruleset");
  const endpoints = listen.map((text) => parseEndpoint(text, { allowPortZero: true }));
  return wanted.map(({ name, port = endpoints[0]?.port ?? 0 }) => {
    const own = endpoints.filter((endpoint) => endpoint.port === port);
    const isIpv4 = own.some(({ bytes }) => familyOf(bytes) === "ipv4");
    const family = isIpv4 ? "ipv4" : "ipv6";
    return {
      name,
      port,
      listening: own.map(({ bytes }) => formatAddress(bytes)),
      firewall: ruleset === null ? null : firewallFactsIn(ruleset, port, family),
    };
  });
}
