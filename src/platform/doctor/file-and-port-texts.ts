// Texts of both configuration checks about files and ports. Pure.
//
// A part of config-checks.ts and service-checks.ts.

import { parseEndpoint } from "../../core/addresses/addresses.ts";
import type { PortFact } from "./file-facts.ts";
import { about, type Found } from "./finding.ts";

/** Permission bits in the format of `chmod`. */
export function modeText(mode: number): string {
  return `mode ${mode.toString(8).padStart(3, "0")}`;
}

interface PortUse {
  readonly why: string;
  /** Option of `ss` for this kind of socket. */
  readonly sockets: "-u" | "-t";
  /** The key of the configuration. */
  readonly key: string;
}

export function portFinding(
  { address, error, owner }: PortFact,
  { why, sockets, key }: PortUse,
): Found {
  const { ok, fail } = about("listen", why);
  if (error === null) return ok(`${address} is free`);
  if (owner?.isOwnService) {
    return ok(`${address} is in use by the service of this configuration (process ${owner.pid})`);
  }
  const { port } = parseEndpoint(address, { allowPortZero: true });
  const user = owner === undefined ? "" : ` (process ${owner.pid}, ${owner.program})`;
  return fail(
    `${address}: ${error}${user}`,
    `ss ${sockets}lpn 'sport = :${port}' (shows the process that uses it), or change ${key}`,
  );
}
