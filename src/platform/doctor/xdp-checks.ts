// The check of AF_XDP (relay.transmit: xdp): what this machine and its network cards support. Pure.
//
// A part of checks.ts.

import type { XdpSupport } from "../../relay/data-plane/native.ts";
import { about, type Found } from "./finding.ts";
import type { Input } from "./input.ts";

interface XdpInput {
  readonly configured: Pick<Input["configured"], "transmit">;
  readonly probes: Pick<Input["probes"], "xdp">;
}

const supportText: Readonly<Record<XdpSupport, string>> = {
  zero_copy: "zero-copy",
  copy: "with copies only",
  unknown: "unknown before Linux 6.3",
  absent: "no such interface",
};

export function afXdp({ configured, probes }: XdpInput): Found {
  const { ok, warn, fail } = about(
    "af-xdp",
    "With AF_XDP, workers write whole frames. It pays off on network cards that send them without a copy (docs/af-xdp.md).",
  );
  const { refusal, interfaces } = probes.xdp;
  const cards = interfaces.map(({ name, support }) => `${name} ${supportText[support]}`);
  const onCards = cards.length === 0 ? "no network card" : cards.join(", ");
  const isUsed = configured.transmit === "xdp";
  if (refusal !== null) {
    const finding = `AF_XDP cannot be used: ${refusal}\n${onCards}`;
    if (!isUsed) return ok(finding);
    return fail(finding, "in the systemd unit: the drop-in of docs/af-xdp.md");
  }
  const finding = `AF_XDP can be used: ${onCards}`;
  if (!isUsed) return ok(`${finding} (relay.transmit: ${configured.transmit})`);
  if (interfaces.some(({ support }) => support === "absent"))
    return fail(finding, "name existing interfaces in relay.xdpInterfaces: ip -br link");
  if (interfaces.some(({ support }) => support === "copy"))
    return warn(finding, "compare with relay.transmit: auto, which usually costs less than copies");
  return ok(finding);
}
