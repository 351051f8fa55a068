// The checks of fan-out inside the kernel (relay.transmit: clone or auto). Pure.
//
// A part of checks.ts. A probe tries whether clone works; these checks name what is missing if it does
// not.

import { about, type Found } from "./finding.ts";
import type { Input } from "./input.ts";
import { isKernelSince } from "./reader.ts";

// This version has writable memory maps, CAP_BPF (5.8), and loops in programs.
const clonesSince = [5, 10] as const;
// A burst to 200 destinations is at least 200 packets at once; the usual queue length is 1,000.
const transmitQueueLeast = 1000;

export function cloning({ facts, configured, probes }: Input): Found {
  const { ok, warn } = about(
    "transmit",
    "With many destinations, cloning in the kernel costs a small fraction of one send per destination (docs/transmit.md).",
  );
  const setting = `relay.transmit: ${configured.transmit}`;
  const finding = `${setting}, but shreds would be sent by socket: ${probes.cloneRefusal}`;
  if (configured.transmit === "socket" || configured.transmit === "xdp") return ok(setting);
  if (probes.cloneRefusal !== null) {
    const remedy = remedyOf(facts);
    if (configured.transmit === "clone") return warn(finding, remedy);
    return ok(`${finding}\nto clone: ${remedy}`);
  }
  if (facts.bpfJit === 0) {
    return warn(
      `${setting} works, but the kernel interprets its program (net.core.bpf_jit_enable is 0)`,
      "sysctl -w net.core.bpf_jit_enable=1",
    );
  }
  return ok(`${setting} works here`);
}

function remedyOf({ kernel, hasTun, capNetAdmin, capBpf, capPerfmon }: Input["facts"]): string {
  if (isKernelSince(kernel, clonesSince) === false)
    return `use Linux ${clonesSince.join(".")} or newer, or set relay.transmit: socket`;
  const missing = [
    ...(capNetAdmin === false ? ["CAP_NET_ADMIN"] : []),
    ...(capBpf === false ? ["CAP_BPF"] : []),
    ...(capPerfmon === false ? ["CAP_PERFMON"] : []),
  ];
  if (missing.length > 0)
    return `in the systemd unit: AmbientCapabilities=${missing.join(" ")} (docs/transmit.md)`;
  if (!hasTun) return "modprobe tun (in a container: pass through /dev/net/tun)";
  return "see docs/transmit.md, or set relay.transmit: socket";
}

export function transmitQueue({ facts, configured, probes }: Input): Found {
  const { ok, warn } = about(
    "transmit-queue",
    "Clones of a burst reach the NIC's queue together. Clones that do not fit are lost and counted as buffer_full.",
  );
  const known = facts.nics.filter(({ transmitQueueLength }) => transmitQueueLength !== null);
  const text = known.map(({ name, transmitQueueLength }) => `${name} ${transmitQueueLength}`);
  const finding = text.length === 0 ? "no NIC" : `transmit queue length: ${text.join(", ")}`;
  const short = known.filter(
    ({ transmitQueueLength }) => (transmitQueueLength ?? 0) < transmitQueueLeast,
  );
  const isUnused = !["clone", "auto"].includes(configured.transmit) || probes.cloneRefusal !== null;
  if (isUnused || short.length === 0) return ok(finding);
  return warn(
    finding,
    short.map(({ name }) => `ip link set dev ${name} txqueuelen 10000`).join(" && "),
  );
}
