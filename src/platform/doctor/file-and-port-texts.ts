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

export function portFinding({ address, error }: PortFact, { why, sockets, key }: PortUse): Found {
  const { ok, fail } = about("listen", why);
  if (error === null) return ok(`${address} is free`);
  const { port } = parseEndpoint(address, { allowPortZero: true });
  return fail(
    `${address}: ${error}`,
    `ss ${sockets}lpn 'sport = :${port}' (shows the process that uses it), or change ${key}`,
  );
}
