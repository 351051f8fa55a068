// Texts of both configuration checks about files and ports. Pure.
//
// A part of config-checks.ts and service-checks.ts.

import { formatAddress, parseEndpoint } from "../../core/addresses/addresses.ts";
import type { KeyedPortFact } from "./file-facts.ts";
import { about, type Found } from "./finding.ts";

/** Permission bits in the format of `chmod`. */
export function modeText(mode: number): string {
  return `mode ${mode.toString(8).padStart(3, "0")}`;
}

/** Why the service needs the port, by its key or the section of its key. */
const reasons: Readonly<Record<string, string>> = {
  relay: "Shreds arrive here.",
  "relay.send.source": "Shreds are sent from here.",
  quic: "Clients of the QUIC ingress send transactions here.",
  delivery: "Ownership challenges are sent from here, and their responses arrive here.",
  http: "The gateway needs free ports.",
  operations: "Metrics and readiness are read here.",
  streams: "Clients of decoded streams connect here.",
  "streams.push.from": "Transaction pushes are sent from here.",
  "streams.push.fromIpv6": "Transaction pushes are sent from here.",
  shredstream: "Subscribers' proxies connect here.",
};

/** `sockets`: the option of `ss` for this kind of socket. */
export function portFinding(
  { address, error, owner, ownAddresses, key }: KeyedPortFact,
  sockets: "-u" | "-t",
): Found {
  const [section = ""] = key.split(".", 1);
  const reason = reasons[key] ?? reasons[section] ?? "The service listens here.";
  const { ok, fail } = about("listen", reason);
  if (error === null && key === "relay.send.source")
    return ok(`${key}: this machine has its address`);
  if (error === null) return ok(`${address} is free`);
  if (owner?.isOwnService) {
    return ok(`${address} is in use by the service of this configuration (process ${owner.pid})`);
  }
  const { bytes, port } = parseEndpoint(address, { allowPortZero: true });
  if (ownAddresses) {
    const list = ownAddresses.length > 0 ? ownAddresses.join(", ") : "none of this family";
    return fail(
      `${address}: no interface of this machine has the address ${formatAddress(bytes)}`,
      `set ${key} to an address of this machine: ${list} (ip -brief address lists them)`,
    );
  }
  const user = owner === undefined ? "" : ` (process ${owner.pid}, ${owner.program})`;
  if (port === 0) return fail(`${address}: ${error}`, `change ${key}`);
  return fail(
    `${address}: ${error}${user}`,
    `ss ${sockets}lpn 'sport = :${port}' (shows the process that uses it), or change ${key}`,
  );
}
