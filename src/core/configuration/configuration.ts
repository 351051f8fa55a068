// Configuration: from shredway.yaml to a checked, complete value.
//
// Called by the command line at start and on reload. All problems of the file are reported
// together, each with file, line, key, expected value and received value. It starts nothing and
// opens only the file itself.

import { dirname, resolve } from "node:path";
import {
  type Document,
  isMap,
  isNode,
  isScalar,
  Lexer,
  LineCounter,
  Parser,
  parseDocument,
  stringify,
} from "yaml";
import type { z } from "zod";
import { messageOf, quote, ShredwayError } from "../errors.ts";
import { readTextFile } from "../files.ts";
import { renameFormerKeys } from "./former-keys.ts";
import { maskPostgresUrl } from "./postgres-url.ts";
import { type ConfigProblem, checkConfig } from "./rules.ts";
import {
  type Config,
  configSchema,
  keyDocuments,
  type RouteConfig,
  schemaAt,
  unwrapSchema,
} from "./schema.ts";
import { type ResolvedSecrets, resolveSecrets } from "./secrets.ts";

export type {
  Config,
  RelayConfig,
  RouteConfig,
  SolanaConfig,
} from "./schema.ts";

/** 4,096 destinations with names and comments need well under 1 MB. */
export const configFileBytesMax = 4 * 1024 * 1024;
const problemsShownMax = 20;
/** The deepest key needs 8 levels of the YAML parser. */
const nestingMax = 64;

const warningsByConfig = new WeakMap<Config, readonly string[]>();

interface Located {
  /** Line number from 1; undefined: the problem has no position in the text. */
  readonly line: number | undefined;
  readonly text: string;
}

function refusal(path: string, problems: readonly Located[]): ShredwayError {
  const lines = problems
    .toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    .slice(0, problemsShownMax)
    .map(({ line, text }) => `${path}${line === undefined ? "" : `:${line}`}: ${text}`);
  if (problems.length > problemsShownMax) {
    lines.push(`${path}: and ${problems.length - problemsShownMax} more`);
  }
  return new ShredwayError("config_invalid", lines.join("\n"), {
    details: { path, problems: problems.length },
  });
}

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

/**
 * The value at `path` in the file. If the schema has a list and the file a single value, that
 * value.
 */
function valueAt(file: unknown, path: readonly PropertyKey[]): unknown {
  let value = file;
  for (const part of path) {
    if (typeof value === "string") return value;
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part))
      return undefined;
    value = Object.entries(value).find(([key]) => key === String(part))?.[1];
  }
  return value;
}

function describeValue(value: unknown): string {
  return value === undefined ? "missing required key" : `invalid value ${quote(value)}`;
}

function unknownKeyProblem(path: readonly PropertyKey[], key: string): ConfigProblem {
  const schema = unwrapSchema(schemaAt(path));
  const known =
    "shape" in schema && typeof schema.shape === "object" ? Object.keys(schema.shape ?? {}) : [];
  const message = `unknown key ${quote(key)}; expected one of the keys ${known.join(", ")}`;
  return { path: [...path.map(toPathPart), key], message };
}

function toPathPart(part: PropertyKey): string | number {
  return typeof part === "number" ? part : String(part);
}

/** Converts zod's issues to problems with this program's texts. */
function problemsOf(issue: z.core.$ZodIssue, file: unknown): ConfigProblem[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => unknownKeyProblem(issue.path, key));
  }
  const path = issue.path.map(toPathPart);
  if (issue.code === "custom") return [{ path, message: issue.message }];
  let length = path.length;
  let document = keyDocuments.get(schemaAt(path));
  while (!document && length > 0) document = keyDocuments.get(schemaAt(path.slice(0, --length)));
  const expected = document?.expects ?? "another value";
  return [{ path, message: `${describeValue(valueAt(file, path))}; expected ${expected}` }];
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
 * Whether the text is nested more deeply than any valid configuration. The composer of the YAML
 * library recurses, and a stack overflow there can end the process. This check therefore runs
 * first; the parser uses its own stack, not recursion.
 */
function nestsTooDeeply(text: string): boolean {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    // Runs the parser over the lexeme. The resulting tokens are not needed.
    Array.from(parser.next(lexeme));
    if (parser.stack.length > nestingMax) return true;
  }
  return false;
}

function parseYaml(
  text: string,
  path: string,
): { document: Document; lines: LineCounter; file: unknown } {
  const lines = new LineCounter();
  try {
    if (nestsTooDeeply(text)) {
      const message = `expected at most ${nestingMax} levels of nesting, got more`;
      throw refusal(path, [{ line: undefined, text: message }]);
    }
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
    // A warning means a tag or directive that this program would ignore.
    const faults = [...document.errors, ...document.warnings];
    if (faults.length > 0) {
      const located = faults.map((fault) => ({
        line: lines.linePos(fault.pos[0]).line,
        text: `invalid YAML: ${fault.message}`,
      }));
      throw refusal(path, located);
    }
    const file: unknown = document.toJS({ maxAliasCount: 100 });
    return { document, lines, file };
  } catch (cause) {
    if (cause instanceof ShredwayError) throw cause;
    // The text has too many aliases, or exceeds the parser's stack.
    throw refusal(path, [{ line: undefined, text: `invalid YAML: ${messageOf(cause)}` }]);
  }
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
  if (secrets.problems.length > 0) throw refusal(path, locate(secrets.problems, document, lines));
  const renamed = renameFormerKeys(secrets.value);
  if (renamed.problems.length > 0) throw refusal(path, locate(renamed.problems, document, lines));
  const result = configSchema.safeParse(renamed.value);
  if (!result.success) {
    // Errors quote the file's text, never the secrets that its references stand for.
    const problems = result.error.issues.flatMap((issue) => problemsOf(issue, file));
    throw refusal(path, locate(problems, document, lines));
  }
  const config = result.data;
  const problems = checkConfig(config, ownAddresses);
  if (problems.length > 0) throw refusal(path, locate(problems, document, lines));
  makePathsAbsolute(config, dirname(path));
  warningsByConfig.set(config, renamed.warnings);
  return config;
}

/** Warnings about the file that `config` was read from: one for each key with a former name. */
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
function makePathsAbsolute({ relay, data, http, nonces, routes }: Config, folder: string): void {
  if (relay.leaders) relay.leaders.file = resolve(folder, relay.leaders.file);
  data.directory = resolve(folder, data.directory);
  if (http?.tls) {
    http.tls.certificate = resolve(folder, http.tls.certificate);
    http.tls.key = resolve(folder, http.tls.key);
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

/** The effective configuration as YAML that parseConfig reads again, secrets masked. */
export function formatConfig(config: Config): string {
  const { solana, relay, routes, tracker, data, ...open } = config;
  const masked = {
    ...(solana && {
      solana: {
        rpc: maskUrl(solana.rpc),
        ...(solana.websocket !== undefined && { websocket: maskUrl(solana.websocket) }),
      },
    }),
    relay,
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
