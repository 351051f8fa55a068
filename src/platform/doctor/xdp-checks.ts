// The check of AF_XDP (relay.transmit: xdp, relay.receive.mode: xdp): what this machine and its NICs
// support. Pure.
//
// A part of checks.ts.

import type { XdpSupport } from "../../relay/data-plane/native.ts";
import type { XdpInterface } from "../../relay/data-plane/xdp-support.ts";
import { about, type Found } from "./finding.ts";
import type { Input } from "./input.ts";

interface XdpInput {
  readonly configured: Pick<Input["configured"], "transmit" | "receive">;
  readonly probes: Pick<Input["probes"], "xdp">;
}

const supportText: Readonly<Record<XdpSupport, string>> = {
  zero_copy: "zero-copy",
  copy: "with copies only",
  unknown: "unknown before Linux 6.3",
  absent: "no such interface",
};

function interfaceText({ name, support, receiveQueues }: XdpInterface): string {
  if (support === "absent") return `${name} ${supportText.absent}`;
  const queues = `${receiveQueues} receive queue${receiveQueues === 1 ? "" : "s"}`;
  return `${name} ${supportText[support]} (${queues})`;
}

export function afXdp({ configured, probes }: XdpInput): Found {
  const { ok, warn, fail } = about(
    "af-xdp",
    "With AF_XDP, workers read and write whole frames. It pays off on NICs that need no copy (docs/af-xdp.md).",
  );
  const { transmit, receive } = configured;
  const { refusal, receiveRefusal, interfaces } = probes.xdp;
  const onNics = interfaces.length === 0 ? "no NIC" : interfaces.map(interfaceText).join(", ");
  const isUsed = transmit === "xdp" || receive === "xdp";
  const dropIn = "in the systemd unit: the drop-in of docs/af-xdp.md";
  if (refusal !== null) {
    const finding = `AF_XDP cannot be used: ${refusal}\n${onNics}`;
    return isUsed ? fail(finding, dropIn) : ok(finding);
  }
  if (receiveRefusal !== null) {
    const finding = `AF_XDP can send, but not receive: ${receiveRefusal}\n${onNics}`;
    if (receive === "xdp") return fail(finding, dropIn);
    if (!isUsed) return ok(finding);
  }
  const finding = `AF_XDP can be used: ${onNics}`;
  const modes = `relay.transmit: ${transmit}, relay.receive.mode: ${receive}`;
  if (!isUsed) return ok(`${finding} (${modes})`);
  if (interfaces.some(({ support }) => support === "absent"))
    return fail(finding, "name existing interfaces in relay.xdpInterfaces: ip -br link");
  if (!interfaces.some(({ support }) => support === "copy")) return ok(finding);
  return warn(
    finding,
    transmit === "xdp"
      ? "compare with relay.transmit: auto, which usually costs less than copies"
      : "compare with relay.receive.mode: socket",
  );
}
