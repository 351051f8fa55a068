// The checks of the way of a block engine's shreds into this machine. Pure.
//
// Called by src/tools/commands/doctor.ts with the facts of inbound-facts.ts and shredstream-facts.ts.

import { about, type Finding, type Found, withMeasure } from "./finding.ts";
import type { InboundFact } from "./inbound-facts.ts";
import type { ShredstreamFact } from "./shredstream-facts.ts";

const why =
  "A block engine sends UDP packets without a request, so every listener, router and firewall on their way must admit them.";

/** `targets`: the addresses of the heartbeats. */
export function checkInbound(
  facts: readonly InboundFact[],
  targets: readonly ShredstreamFact[],
): Finding[] {
  return facts.flatMap((fact) => {
    const target = targets.find(({ name, key }) => name === fact.name && key === "url");
    return [listener(fact, target?.address ?? null), firewall(fact)].map(withMeasure);
  });
}

/** Whether the relay receives what arrives for the address. */
function listener({ name, port, listening }: InboundFact, address: string | null): Found {
  const { ok, fail } = about("shredstream-port", why);
  const at = listening.map((each) =>
    each.includes(":") ? `[${each}]:${port}` : `${each}:${port}`,
  );
  const text = `${name}: the relay listens at ${at.join(" and ")}`;
  if (address === null) return ok(`${text}; the address of the shreds is unknown`);
  const unspecified = address.includes(":") ? "::" : "0.0.0.0";
  if (listening.includes(address) || listening.includes(unspecified)) {
    return ok(`${text}, which includes ${address}`);
  }
  return fail(
    `${text}, but shreds go to ${address}`,
    `set relay.listen to ${address.includes(":") ? `[::]:${port}` : `0.0.0.0:${port}`}, or shredstream.publicAddress of the source to an address of this list`,
  );
}

function firewall({ name, port, firewall: rules }: InboundFact): Found {
  const { ok, warn } = about("shredstream-firewall", why);
  const rest = `firewalls and routers outside this machine must admit UDP port ${port} from everywhere, too`;
  if (rules === null) {
    return ok(
      `${name}: the rules of nftables could not be read (no program nft, or no permission); ` +
        `admit UDP port ${port} from everywhere; ${rest}`,
    );
  }
  const [chain] = rules.dropping;
  if (chain === undefined) {
    return ok(`${name}: nftables of this machine drops nothing by default; ${rest}`);
  }
  if (rules.namesPort) {
    return ok(
      `${name}: nftables drops by default (${rules.dropping.join(", ")}), and a rule accepts UDP port ${port}; ` +
        `check that it accepts all senders; ${rest}`,
    );
  }
  return warn(
    `${name}: nftables drops by default (${rules.dropping.join(", ")}), and no rule names UDP port ${port}`,
    `nft insert rule ${chain} udp dport ${port} accept (and add it to the firewall's configuration)`,
  );
}
