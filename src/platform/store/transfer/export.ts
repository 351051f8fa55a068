// Exports a database as lines (format.ts): one consistent state, in bounded memory.
//
// Called by the command export. It reads a snapshot, so the service continues meanwhile.

import { createHash } from "node:crypto";
import { checkVersion } from "../migrations.ts";
import { pagesOf, type Snapshot } from "../snapshot.ts";
import { type Head, headLine, rowLine, tableLine, tailLine } from "./format.ts";
import { tablesAt } from "./tables.ts";

interface ExportOptions {
  readonly snapshot: Snapshot;
  readonly head: Head;
  /** Settles when more may be written. */
  readonly write: (text: string) => Promise<void>;
  readonly onProgress?: (rows: number) => void;
}

export interface ExportSummary {
  /** Rows of each table. */
  readonly rows: ReadonlyMap<string, number>;
  readonly bytes: number;
  readonly sha256: string;
}

/** Throws ShredwayError: "store_failed", "store_newer". */
export async function exportDatabase(options: ExportOptions): Promise<ExportSummary> {
  const { snapshot, head, onProgress } = options;
  checkVersion(head.schemaVersion);
  const hash = createHash("sha256");
  let bytes = 0;
  const write = (text: string): Promise<void> => {
    bytes += Buffer.byteLength(text);
    return options.write(text);
  };
  const put = (text: string): Promise<void> => {
    hash.update(text);
    return write(text);
  };
  await put(headLine(head));
  const rows = new Map<string, number>();
  let total = 0;
  for (const table of tablesAt(head.schemaVersion)) {
    await put(tableLine(table));
    rows.set(table.name, 0);
    for await (const page of pagesOf(snapshot, table)) {
      await put(page.map(rowLine).join(""));
      rows.set(table.name, (rows.get(table.name) ?? 0) + page.length);
      total += page.length;
      onProgress?.(total);
    }
  }
  const sha256 = hash.digest("hex");
  await write(tailLine({ rows, sha256 }));
  return { rows, bytes, sha256 };
}
