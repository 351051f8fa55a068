// What the checks of both parts of a configuration say about the files and ports that it names. Pure.
//
// A part of config-checks.ts and service-checks.ts.

import { parseEndpoint } from "../../core/addresses/addresses.ts";
import type { PortFact } from "./file-facts.ts";
import { about, type Found } from "./finding.ts";

/** Permission bits as `chmod` takes them. */
export function modeText(mode: number): string {
  return `mode ${mode.toString(8).padStart(3, "0")}`;
}

interface PortUse {
  readonly why: string;
  /** Option of `ss` for this kind of sockets. */
  readonly sockets: "-u" | "-t";
  /** Of the configuration. */
  readonly key: string;
}

export function portFinding({ address, error }: PortFact, { why, sockets, key }: PortUse): Found {
  const { ok, fail } = about("listen", why);
  if (error === null) return ok(`${address} is free`);
  const { port } = parseEndpoint(address, { allowPortZero: true });
  return fail(
    `${address}: ${error}`,
    `ss ${sockets}lpn 'sport = :${port}' (who has it), or change ${key}`,
  );
}
