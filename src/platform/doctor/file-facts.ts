// Facts about one file and one port, for the configuration checks.

import { statSync } from "node:fs";

export interface FileFact {
  readonly path: string;
  /** Permission bits; null: the file is inaccessible. */
  readonly mode: number | null;
}

export interface PortFact {
  readonly address: string;
  /** The reason why listening is impossible; null: it is possible. */
  readonly error: string | null;
}

export function fileFact(path: string): FileFact {
  try {
    return { path, mode: statSync(path).mode & 0o777 };
  } catch {
    return { path, mode: null };
  }
}
