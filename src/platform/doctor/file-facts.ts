// Facts about one file and one port, for the configuration checks.

import { statSync } from "node:fs";
import type { PortOwner } from "./port-owner.ts";

export interface FileFact {
  readonly path: string;
  /** Permission bits; null: the file is inaccessible. */
  readonly mode: number | null;
}

export interface PortFact {
  readonly address: string;
  /** The reason why listening is impossible; null: it is possible. */
  readonly error: string | null;
  /** The process that uses the port; absent: the port is free, or its owner is unknown. */
  readonly owner?: PortOwner;
}

/** A port with its key in the configuration, for example "http.split[0].listen". */
export interface KeyedPortFact extends PortFact {
  /** For a derived address, the text continues with the derivation in parentheses. */
  readonly key: string;
}

export function fileFact(path: string): FileFact {
  try {
    return { path, mode: statSync(path).mode & 0o777 };
  } catch {
    return { path, mode: null };
  }
}
