// Log: structured lines for operators on standard error, one JSON object each.
//
// No line contains a key, a secret or a raw transaction, and no line is written per packet. Fields
// with such names are masked, and so are keys inside texts.

import { writeSync } from "node:fs";
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import { LogOutput } from "./log-output.ts";
import { RecentWarnings } from "./recent-warnings.ts";

export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];
export type { Logger } from "pino";

const secretFields = [
  "apiKey",
  "api-key",
  "api_key",
  "authorization",
  "x-jito-auth",
  "secretKey",
  "seed",
  "password",
  "transaction",
];
// Masks fields at the top level and two levels below: headers, options, rows.
const secretPaths = secretFields.flatMap((field) =>
  ["", "*", "*.*"].map((prefix) => (prefix === "" ? `["${field}"]` : `${prefix}["${field}"]`)),
);
const mask = "[masked]";

/** Masks keys inside a text: `sw_…`, `api-key=…`, `Bearer …`, `user:password@`. */
export function maskKeys(text: string): string {
  return text
    .replace(/(api[-_]?key=)[^&\s"'\\]+/gi, `$1${mask}`)
    .replace(/\bsw_[1-9A-HJ-NP-Za-km-z]{32,44}/g, mask)
    .replace(/(bearer\s+)[^\s"'\\,]+/gi, `$1${mask}`)
    .replace(/(:\/\/[^\s:/@"]*:)[^\s/@"]+@/g, `$1${mask}@`);
}

let standardError: LogOutput | undefined;

/** The same object for every logger of the process, so that no line begins inside of another one. */
function standardErrorOutput(): LogOutput {
  if (standardError) return standardError;
  // Node.js makes pipes non-blocking when `process.stderr` is first read. In worker threads, it has no descriptor.
  const descriptor: number | undefined = process.stderr.fd;
  const output = new LogOutput({
    write: (bytes) => writeSync(descriptor ?? 2, bytes),
    warningLine,
  });
  process.on("exit", () => output.flushAtExit());
  standardError = output;
  return output;
}

/** For LogOutput: a line as a logger writes it. */
export function warningLine(message: string): string {
  return `{"level":"warn"${stdTimeFunctions.isoTime()},"msg":${JSON.stringify(message)}}\n`;
}

interface LogOptions {
  /** Default: "info". */
  readonly level?: LogLevel;
  /** Default: standard error. */
  readonly stream?: DestinationStream;
}

/** Creates a logger; `logger.child({ part: "relay" })` creates one for a part of the program. */
export function createLogger(options: LogOptions = {}): Logger {
  const problems = new RecentWarnings();
  const stream = options.stream ?? standardErrorOutput();
  const log = pino(
    {
      level: options.level ?? "info",
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretPaths, censor: mask },
      hooks: { streamWrite: maskKeys },
    },
    {
      write: (line) => {
        stream.write(line);
        problems.add(line);
      },
    },
  );
  problemsByLogger.set(log, problems);
  return log;
}

const problemsByLogger = new WeakMap<Logger, RecentWarnings>();

/** The last warnings and errors of a logger of createLogger; empty for other loggers. */
export function problemsOf(log: Logger): RecentWarnings {
  return problemsByLogger.get(log) ?? new RecentWarnings();
}
