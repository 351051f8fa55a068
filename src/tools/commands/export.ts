// `shredway export`: writes the whole database as a stream of lines while the service runs.
//
// Writes to stdout or to a file that only its owner can read. The file gets its name when it is
// complete. API keys are exported as hashes.

import {
  closeSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import { systemClock } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { createLogger } from "../../core/log.ts";
import { replayLeftJournal } from "../../platform/store/journal/replay.ts";
import { checkImported, openSnapshot } from "../../platform/store/transfer/database-location.ts";
import { type ExportSummary, exportDatabase } from "../../platform/store/transfer/export.ts";
import { type Arguments, type Command, exitCodes } from "../terminal/command.ts";
import { formatBytes, formatCount, toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { configOf, defaultDirectory, locationOf, refuseNewDefaultFolder } from "./store-command.ts";

export const exportCommand: Command = {
  name: "export",
  summary: "write the database as lines of JSON; the service may run",
  usage: ["export [--config FILE | --data DIRECTORY] [--output FILE] [--json]"],
  description: `
Writes one consistent state of the database, SQLite or PostgreSQL, as lines of JSON. "shredway import"
reads them into either (docs/backup.md describes the format). The service may run and is not delayed.
The file is readable by its owner only, and gets its name when it is complete. It contains API keys as
hashes, but accounts, addresses, tips and open transactions in plain form. Protect it as you protect the
database.`,
  options: {
    config: { value: "FILE", help: "the service's configuration, for its database" },
    data: { value: "DIRECTORY", help: `the data folder (default ${defaultDirectory})` },
    output: {
      value: "FILE",
      help: "output file; an existing one is replaced (default: standard output)",
    },
    json: { help: "print the result as one JSON object; without --output to standard error" },
  },
  examples: [
    "shredway export --config shredway.yaml --output shredway.export",
    "shredway export --config shredway.yaml | zstd > shredway.export.zst",
  ],
  run,
};

interface Sink {
  write(text: string): Promise<void>;
  /** Completes the output and gives the file its name. */
  finish(): void;
  /** Removes the partial output. Does nothing after `finish`. */
  remove(): void;
}

function writeToStdout(text: string): Promise<void> {
  // shredway.ts handles write errors and ends the program.
  return new Promise((resolve) => process.stdout.write(text, () => resolve()));
}

const stdoutSink: Sink = { write: writeToStdout, finish: () => {}, remove: () => {} };

function asFailure<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const message = `cannot write ${path}: ${messageOf(cause)}`;
    throw new ShredwayError("store_failed", message, { cause });
  }
}

/** The file to replace. A device, pipe or folder of that name must stay: /dev/null is one of them. */
function replaceable(path: string): string {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) return path;
  if (found.isFile()) return realpathSync(path);
  throw new Error(
    "expected a regular file or a new name, got a device, pipe or folder; without --output the " +
      "export is written to standard output",
  );
}

/** Writes to a temporary file in the same folder first. Throws ShredwayError "store_failed". */
function fileSink(output: string): Sink {
  const path = asFailure(output, () => replaceable(output));
  const draft = `${path}.${process.pid}.part`;
  const file = asFailure(path, () => openSync(draft, "wx", 0o600));
  let isOpen = true;
  const close = (): void => {
    if (isOpen) closeSync(file);
    isOpen = false;
  };
  return {
    write: (text) => {
      const bytes = Buffer.from(text);
      asFailure(path, () => {
        for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
      });
      return Promise.resolve();
    },
    finish: () =>
      asFailure(path, () => {
        fsyncSync(file);
        close();
        renameSync(draft, path);
        const folder = openSync(dirname(path), "r");
        fsyncSync(folder);
        closeSync(folder);
      }),
    remove: () => {
      close();
      rmSync(draft, { force: true });
    },
  };
}

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const output = args.text("output");
  refuseNewDefaultFolder(args);
  const node = configOf(args)?.data.node ?? hostname();
  const location = locationOf(args);
  await checkImported(location, systemClock);
  if (location.postgres === undefined) {
    const log = createLogger({ level: "warn" });
    await replayLeftJournal(location.directory, { clock: systemClock, log });
  }
  const { snapshot, version } = await openSnapshot(location, systemClock);
  try {
    if (version === 0) {
      const message =
        "the database is not set up; start the service once or check --config and --data";
      throw new ShredwayError("store_failed", message);
    }
    const sink = output === undefined ? stdoutSink : fileSink(output);
    const head = { schemaVersion: version, createdNs: systemClock.nowNs(), node };
    const write = (text: string): Promise<void> => {
      if (!terminal.stopped.aborted) return sink.write(text);
      throw new ShredwayError(
        "store_failed",
        "the export was interrupted; its output is incomplete",
      );
    };
    const onProgress = (rows: number): void => terminal.progress(`${formatCount(rows)} rows`);
    try {
      const summary = await exportDatabase({ snapshot, head, write, onProgress });
      sink.finish();
      terminal.clearProgress();
      report(args, terminal, version, summary);
    } finally {
      sink.remove();
    }
    return exitCodes.ok;
  } finally {
    await snapshot.close();
  }
}

function report(
  args: Arguments,
  terminal: Terminal,
  version: number,
  summary: ExportSummary,
): void {
  const { rows, bytes, sha256 } = summary;
  const output = args.text("output");
  const print = (line: string): void =>
    output === undefined ? terminal.note(line) : terminal.line(line);
  if (args.flag("json")) {
    const counts = Object.fromEntries(rows);
    print(toJson({ schemaVersion: version, rows: counts, bytes, sha256, output: output ?? null }));
    return;
  }
  const total = [...rows.values()].reduce((sum, count) => sum + count, 0);
  print(
    `exported ${formatCount(total)} rows of ${rows.size} tables, schema version ${version}, ` +
      `${formatBytes(bytes)}, SHA-256 ${sha256}`,
  );
}
