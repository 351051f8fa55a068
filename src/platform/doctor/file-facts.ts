// Facts about one file and one port, as the checks of configurations take them.

import { statSync } from "node:fs";

export interface FileFact {
  readonly path: string;
  /** Permission bits; null when the file cannot be looked at. */
  readonly mode: number | null;
}

export interface PortFact {
  readonly address: string;
  /** Why it cannot be listened on; null when it can. */
  readonly error: string | null;
}

export function fileFact(path: string): FileFact {
  try {
    return { path, mode: statSync(path).mode & 0o777 };
  } catch {
    return { path, mode: null };
  }
}
