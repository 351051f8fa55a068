// The endpoint that `shredway stream` connects to, the dialect, and the filter.
//
// Without options it is the sandbox of this machine, with the key that the sandbox stored in ./data.

import { readFileSync } from "node:fs";
import { messageOf, quote } from "../../core/errors.ts";
import { parsePubkey } from "../../core/primitives.ts";
import { type Environment, findKey } from "../send/target.ts";
import { type Arguments, usageError } from "../terminal/command.ts";

export const streamUrlVariable = "SHREDWAY_STREAMS_URL";
export const streamUrlDefault = "http://127.0.0.1:10000";

/** In the words of docs/streams.md. */
export const streamDialects = ["deshred", "preprocessed", "transactions", "entries"] as const;
export type StreamDialect = (typeof streamDialects)[number];

/** Conditions of the server's filter, with accounts in base58. */
export interface FilterChoice {
  /** undefined: votes and others. */
  readonly vote: boolean | undefined;
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  readonly required: readonly string[];
}

export interface StreamTarget {
  readonly url: string;
  /** null: the call contains no key. */
  readonly apiKey: string | null;
  /** Certificates in PEM form; undefined: the roots of Node.js. */
  readonly certificateAuthorities: string | undefined;
  readonly dialect: StreamDialect;
  readonly filter: FilterChoice;
  /** The stream begins with the history from this slot on; null: live. */
  readonly fromSlot: bigint | null;
}

const slotMax = (1n << 64n) - 1n;
const filterOptions = ["include", "exclude", "required", "vote", "no-vote"] as const;

/** Throws ShredwayError "usage". */
export function readStreamTarget(args: Arguments, environment: Environment): StreamTarget {
  const dialect = readDialect(args);
  const filter = readFilter(args, dialect);
  const url = readUrl(args, environment);
  const apiKey = findKey(args, environment, url);
  const certificateAuthorities = readAuthorities(args, url);
  return {
    url: `${url.origin}${url.pathname}`,
    apiKey: apiKey === "" ? null : apiKey,
    certificateAuthorities,
    dialect,
    filter,
    fromSlot: readFromSlot(args, dialect),
  };
}

function readDialect(args: Arguments): StreamDialect {
  const text = args.text("dialect") ?? streamDialects[0];
  const dialect = streamDialects.find((one) => one === text);
  if (dialect) return dialect;
  throw usageError(
    `--dialect: invalid value ${quote(text)}; expected one of ${streamDialects.join(", ")}`,
  );
}

function readFilter(args: Arguments, dialect: StreamDialect): FilterChoice {
  args.exclusive("vote", "no-vote");
  if (dialect === "entries") {
    const given = filterOptions.find((name) => args.given(name));
    if (given !== undefined) {
      throw usageError(
        `--${given} is not allowed with --dialect entries, which has no filters; expected --dialect deshred`,
      );
    }
  }
  if (dialect === "transactions") {
    const given = (["vote", "no-vote"] as const).find((name) => args.given(name));
    if (given !== undefined) {
      throw usageError(
        `--${given} is not allowed with --dialect transactions, whose filters have accounts only; expected --dialect deshred`,
      );
    }
  }
  const accounts = (name: string) => args.texts(name).map((text) => accountIn(name, text));
  return {
    vote: args.flag("vote") ? true : args.flag("no-vote") ? false : undefined,
    include: accounts("include"),
    exclude: accounts("exclude"),
    required: accounts("required"),
  };
}

function readFromSlot(args: Arguments, dialect: StreamDialect): bigint | null {
  const text = args.text("from-slot");
  if (text === undefined) return null;
  if (dialect === "entries") {
    throw usageError(
      "--from-slot is not allowed with --dialect entries, because only transactions are kept; expected --dialect deshred",
    );
  }
  if (/^\d{1,20}$/.test(text) && BigInt(text) <= slotMax) return BigInt(text);
  throw usageError(`--from-slot: invalid value ${quote(text)}; expected a slot`);
}

function accountIn(name: string, text: string): string {
  try {
    return parsePubkey(text);
  } catch (error) {
    throw usageError(`--${name}: ${messageOf(error)}`);
  }
}

function readUrl(args: Arguments, environment: Environment): URL {
  const given = args.text("url");
  const text = given ?? environment[streamUrlVariable] ?? streamUrlDefault;
  const what = given === undefined && environment[streamUrlVariable] ? streamUrlVariable : "--url";
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url && (url.protocol === "http:" || url.protocol === "https:")) return url;
  throw usageError(
    `${what}: invalid value ${quote(text)}; expected http://host:port, or https://host:port with TLS`,
  );
}

function readAuthorities(args: Arguments, url: URL): string | undefined {
  const path = args.text("ca");
  if (path === undefined) return undefined;
  if (url.protocol === "http:")
    throw usageError(`--ca requires a URL with https, got ${url.origin}`);
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw usageError(`--ca: cannot read ${path}: ${messageOf(error)}`);
  }
}
