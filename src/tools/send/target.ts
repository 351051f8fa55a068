// The gateway that `shredway send` calls: its URL, the API key, and its address for QUIC.
//
// Without options it is the sandbox of this machine, with the key that the sandbox stored in ./data.

import { readFileSync } from "node:fs";
import type { ServerIdentity } from "../../client/quic/index.ts";
import { isLoopbackHost } from "../../core/addresses/loopback-host.ts";
import { messageOf, quote } from "../../core/errors.ts";
import { readSandboxKey, sandboxFolder } from "../sandbox/default-key.ts";
import { type Arguments, usageError } from "../terminal/command.ts";

export const urlVariable = "SHREDWAY_URL";
export const keyVariable = "SHREDWAY_API_KEY";
export const urlDefault = "http://127.0.0.1:8780";
export const quicPortDefault = 7000;

export interface Target {
  readonly url: string;
  readonly apiKey: string;
  /** null: HTTP. */
  readonly quic: { readonly address: string; readonly server: ServerIdentity | undefined } | null;
}

export type Environment = Readonly<Record<string, string | undefined>>;

function readUrl(args: Arguments, environment: Environment): URL {
  const given = args.text("url");
  const text = given ?? environment[urlVariable] ?? urlDefault;
  const what = given === undefined && environment[urlVariable] ? urlVariable : "--url";
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url && (url.protocol === "http:" || url.protocol === "https:")) return url;
  throw usageError(`${what}: invalid value ${quote(text)}; expected http://host:port or https://…`);
}

export function keyInFile(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw usageError(`--api-key-file: cannot read ${path}: ${messageOf(error)}`);
  }
}

/** The key of the options, the URL, the environment or the sandbox; null: none is given. */
export function findKey(args: Arguments, environment: Environment, url: URL): string | null {
  args.exclusive("api-key", "api-key-file");
  const file = args.text("api-key-file");
  const given = args.text("api-key") ?? (file === undefined ? undefined : keyInFile(file));
  return (
    given ??
    url.searchParams.get("api-key") ??
    environment[keyVariable] ??
    (isLoopbackHost(url.hostname) ? readSandboxKey() : null)
  );
}

function readKey(args: Arguments, environment: Environment, url: URL): string {
  const key = findKey(args, environment, url);
  if (key) return key;
  throw usageError(
    `missing API key; expected --api-key-file FILE, --api-key KEY, ${keyVariable}, or a URL with ?api-key=… ` +
      `(a sandbox that runs in this folder stores its key in ${sandboxFolder})`,
  );
}

function readIdentity(args: Arguments): ServerIdentity | undefined {
  args.exclusive("fingerprint", "unverified");
  const fingerprint = args.text("fingerprint");
  if (args.flag("unverified")) return { unverified: true };
  if (fingerprint === undefined) return undefined;
  if (/^[0-9a-f]{64}$/i.test(fingerprint.replaceAll(":", ""))) return { fingerprint };
  throw usageError(
    `--fingerprint: invalid value ${quote(fingerprint)}; expected SHA-256 in hex (64 digits), with or without colons`,
  );
}

function readQuic(args: Arguments, url: URL): Target["quic"] {
  const given = args.text("quic-address");
  if (!args.flag("quic") && given === undefined) {
    for (const name of ["fingerprint", "unverified"]) {
      if (args.given(name)) throw usageError(`--${name} requires --quic`);
    }
    return null;
  }
  const address = given ?? `${url.hostname}:${quicPortDefault}`;
  return { address, server: readIdentity(args) };
}

/** Throws ShredwayError "usage". */
export function readTarget(args: Arguments, environment: Environment): Target {
  const url = readUrl(args, environment);
  const apiKey = readKey(args, environment, url);
  return { url: url.href, apiKey, quic: readQuic(args, url) };
}
