// Configuration: from shredway.yaml to a checked, complete value.
//
// Called by the command line at start and on reload. All problems of the file are reported
// together, each with file, line, key, expected value and received value. It starts nothing and
// opens only the file itself.

import { hostname } from "node:os";
import { dirname, resolve } from "node:path";
import { type Document, isMap, isNode, isScalar, type LineCounter, stringify } from "yaml";
import type { z } from "zod";
import { readTextFile } from "../files.ts";
import { effectiveConfig } from "./derived.ts";
import { checkFile } from "./file-problems.ts";
import { renameFormerKeys } from "./former-keys.ts";
import { maskPostgresUrl } from "./postgres-url.ts";
import type { ConfigProblem } from "./rules.ts";
import { type Config, configSchema, type RouteConfig } from "./schema.ts";
import { type ResolvedSecrets, resolveSecrets } from "./secrets.ts";
import { type Located, parseYaml, refusal } from "./yaml-text.ts";

export type {
  Config,
  RelayConfig,
  RouteConfig,
  SolanaConfig,
} from "./schema.ts";

/** 4,096 destinations with names and comments need well under 1 MB. */
export const configFileBytesMax = 4 * 1024 * 1024;

const warningsByConfig = new WeakMap<Config, readonly string[]>();

function keyText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? String(part) : `.${String(part)}`;
  }
  return text;
}

/** Line of the key at `path`, or of the nearest key around it. */
function lineOf(document: Document, lines: LineCounter, path: readonly PropertyKey[]) {
  for (let length = path.length; length > 0; length--) {
    const parent: unknown = length === 1 ? document.contents : nodeAt(document, path, length - 1);
    const last = path[length - 1];
    if (isMap(parent)) {
      const pair = parent.items.find(({ key }) => isScalar(key) && key.value === last);
      if (pair && isNode(pair.key) && pair.key.range) return lines.linePos(pair.key.range[0]).line;
    }
    const node = nodeAt(document, path, length);
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
  }
  return document.contents?.range ? lines.linePos(document.contents.range[0]).line : undefined;
}

function nodeAt(document: Document, path: readonly PropertyKey[], length: number): unknown {
  return document.getIn(path.slice(0, length), true);
}

function locate(
  problems: readonly ConfigProblem[],
  document: Document,
  lines: LineCounter,
): Located[] {
  return problems.map(({ path, message }) => ({
    line: lineOf(document, lines, path),
    text: path.length === 0 ? message : `${keyText(path)}: ${message}`,
  }));
}

/**
 * Parses the configuration in `text`. `path` is the file name for errors, and relative paths inside
 * start at its folder. `ownAddresses` are this machine's addresses: a destination must not be one
 * of them with a port of a listener. Throws ShredwayError "config_invalid" with one line for each
 * problem.
 */
export function parseConfig(
  text: string,
  path: string,
  ownAddresses: readonly string[] = [],
): Config {
  const { document, lines, file } = parseYaml(text, path);
  const secrets = secretsOf(file, path);
  const renamed = renameFormerKeys(secrets.value);
  const { config, problems, warnings } = checkFile({
    value: renamed.value,
    // Errors quote the file's text, never the secrets that its references stand for.
    written: file,
    problems: [...secrets.problems, ...renamed.problems],
    ownAddresses,
  });
  if (!config) throw refusal(path, locate(problems, document, lines));
  makePathsAbsolute(config, dirname(path));
  warningsByConfig.set(config, [...renamed.warnings, ...warnings]);
  return config;
}

/**
 * Warnings about the file that `config` was read from: former names of keys, a missing region, and
 * keys that the service ignores.
 */
export function configWarnings(config: Config): readonly string[] {
  return warningsByConfig.get(config) ?? [];
}

function secretsOf(file: unknown, path: string): ResolvedSecrets {
  return resolveSecrets(file, { folder: dirname(path), environment: process.env });
}

/**
 * Files that contain secrets for the configuration at `path`. Throws ShredwayError
 * "config_invalid".
 */
export function secretFilesOf(path: string): readonly string[] {
  const { file } = parseYaml(readTextFile(path, configFileBytesMax, "config_invalid"), path);
  return secretsOf(file, path).files;
}

/** Relative paths start at the folder of the configuration file. */
function makePathsAbsolute(config: Config, folder: string): void {
  const { relay, data, http, quic, nonces, routes, shredstream, streams } = config;
  if (relay.leaders) relay.leaders.file = resolve(folder, relay.leaders.file);
  for (const { shredstream: engine } of relay.sources) {
    if (engine) engine.keyFile = resolve(folder, engine.keyFile);
  }
  data.directory = resolve(folder, data.directory);
  for (const tls of [http?.tls, quic?.tls, shredstream?.tls, streams?.tls]) {
    if (!tls) continue;
    tls.certificate = resolve(folder, tls.certificate);
    tls.key = resolve(folder, tls.key);
  }
  for (const key of ["fundingKeyFile", "authorityKeyFile"] as const) {
    const file = nonces[key];
    if (file !== undefined) nonces[key] = resolve(folder, file);
  }
  for (const route of routes) {
    if (route.identityFile !== undefined) route.identityFile = resolve(folder, route.identityFile);
  }
}

/**
 * Completes a configuration that the program itself wrote with the defaults. Throws ShredwayError
 * "config_invalid".
 */
export function completeConfig(written: z.input<typeof configSchema>): Config {
  return parseConfig(stringify(written), "configuration");
}

/** Reads the configuration in the file `path`. Throws ShredwayError "config_invalid". */
export function loadConfig(path: string, ownAddresses: readonly string[] = []): Config {
  const text = readTextFile(path, configFileBytesMax, "config_invalid");
  return parseConfig(text, path, ownAddresses);
}

/**
 * The effective configuration as YAML that parseConfig reads again, secrets masked and every default
 * filled in.
 */
export function formatConfig(config: Config, hostName = hostname()): string {
  const { solana, relay, routes, tracker, data, ...open } = configSchema.parse(
    effectiveConfig(config, hostName), // in the order of the schema
  );
  const masked = {
    ...(solana && {
      solana: {
        rpc: maskUrl(solana.rpc),
        ...(solana.websocket !== undefined && { websocket: maskUrl(solana.websocket) }),
      },
    }),
    relay: {
      ...relay,
      ...(relay.discovery && {
        discovery: { ...relay.discovery, url: maskUrl(relay.discovery.url) },
      }),
    },
    data: {
      ...data,
      ...(data.postgres !== undefined && { postgres: maskPostgresUrl(data.postgres) }),
    },
    ...open,
    tracker: { ...tracker, ...(tracker.url !== undefined && { url: maskUrl(tracker.url) }) },
    routes: routes.map(maskRoute),
  };
  return stringify(masked, { lineWidth: 100 });
}

function maskRoute(route: RouteConfig): RouteConfig {
  const { url, leaders, headers } = route;
  const values = <T>(record: Record<string, T>, mask: (value: T) => string) =>
    Object.fromEntries(Object.entries(record).map(([name, value]) => [name, mask(value)]));
  return {
    ...route,
    ...(url !== undefined && { url: maskUrl(url) }),
    ...(leaders && { leaders: values(leaders, maskUrl) }),
    headers: values(headers, () => "masked"),
  };
}

/** Replaces the parts of a URL that may contain a key (path, query, user) by `masked`. */
function maskUrl(text: string): string {
  const { protocol, host, pathname, search, username } = new URL(text);
  const holdsMore = search !== "" || username !== "" || pathname.length > 1;
  return `${protocol}//${host}${holdsMore ? "/masked" : pathname}`;
}
