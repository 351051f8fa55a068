// The checks of sources of kind "shredstream". Pure.
//
// Called by src/tools/commands/doctor.ts with the facts of shredstream-facts.ts.

import { about, type Finding, type Found, withMeasure } from "./finding.ts";
import type { ShredstreamFact } from "./shredstream-facts.ts";

export function checkShredstream(facts: readonly ShredstreamFact[]): Finding[] {
  return facts.map(check).map(withMeasure);
}

function check(fact: ShredstreamFact): Found {
  const { name, key, target, error, connectMs, address, isOwn, refusal } = fact;
  const { ok, warn, fail } = about(
    "shredstream",
    "A block engine sends shreds only while heartbeats reach it, and only to the address that they come from.",
  );
  if (error !== null) {
    return fail(
      `${name}: ${target} is not reachable: ${error}`,
      `correct shredstream.${key} of the source, or permit outgoing TCP connections to it`,
    );
  }
  const connected = `${name}: ${target} connected in ${connectMs.toFixed(1)} ms`;
  if (key === "authUrl") return ok(`${connected}; it authenticates the subscription`);
  const finding = `${connected}; shreds go to ${address ?? "an unknown address"}`;
  if (refusal !== null) {
    return warn(
      `${finding}, but ${refusal}: this machine is behind NAT, or its public address is not the one of this connection`,
      "give this machine a public address and set shredstream.publicAddress of the source; block engines do not support NAT",
    );
  }
  if (!isOwn) {
    return warn(
      `${finding}, which is not an address of this machine; it may be that of a router with NAT in front of it`,
      "set shredstream.publicAddress to an address of this machine; block engines do not support NAT",
    );
  }
  return ok(finding);
}
