// Secrets of a configuration that are stored outside it: in files, in the environment, in
// credentials of the service manager.
//
// Called by configuration.ts between reading a file and checking it. Only keys that may contain a
// secret accept a reference. Errors never quote the secret.

import { resolve } from "node:path";
import { messageOf, ShredwayError } from "../errors.ts";
import { readTextFile } from "../files.ts";
import type { ConfigProblem } from "./rules.ts";

type Path = readonly (string | number)[];

interface SecretDirectories {
  /** Path of the configuration; relative paths of files start at its folder. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface ResolvedSecrets {
  /** The configuration with every reference replaced. */
  readonly value: unknown;
  readonly problems: readonly ConfigProblem[];
  /** Absolute paths of the referenced files. */
  readonly files: readonly string[];
}

/** Keys with URLs: a secret in the middle of a URL is percent-encoded. */
const urlKeys =
  /^(solana\.(rpc|websocket)|data\.postgres|relay\.discovery\.url|tracker\.url|routes\.\d+\.url|routes\.\d+\.leaders\.[^.]+)$/;
const textKeys = /^routes\.\d+\.headers\.[^.]+$/;

const reference = /\$\{(file|env|credential):([^{}]*)\}/g;
const credentialName = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const forms = `\${file:PATH}, \${env:NAME} or \${credential:NAME}`;
const secretBytesMax = 4096;
/** Replaces a reference where only the rest of the text matters. */
const mark = "\0";
/** Words such as "Bearer", "v1" or "api-key" are shorter. */
const keyLengthMin = 16;
const depthMax = 8;

/**
 * Replaces the references in all texts of `file`. It never throws: each error becomes a problem.
 */
export function resolveSecrets(file: unknown, directories: SecretDirectories): ResolvedSecrets {
  const problems: ConfigProblem[] = [];
  const files: string[] = [];
  const resolveText = (text: string, path: Path): string => {
    if (!text.includes("${")) return text;
    const key = path.join(".");
    const isUrl = urlKeys.test(key);
    const problem = (message: string) => problems.push({ path: [...path], message });
    if (!isUrl && !textKeys.test(key)) {
      if (text.search(reference) >= 0)
        problem(
          "expected the value itself: only URLs of nodes, partners, lists and the database, and headers, take references",
        );
      return text;
    }
    if (text.replaceAll(reference, "").includes("${")) {
      problem(`expected ${forms}, got another text in \${…}`);
      return text;
    }
    return text.replaceAll(reference, (whole, kind: string, name: string) => {
      try {
        const secret = secretOf(kind, name, directories, files);
        return isUrl && whole !== text ? encodeURIComponent(secret) : secret;
      } catch (error) {
        problem(messageOf(error));
        return whole;
      }
    });
  };
  return { value: mapTexts(file, [], resolveText), problems, files };
}

/**
 * Whether the text of `file` itself contains a secret: a part of a URL or header that --print-config masks
 * and that is not a reference. It never throws.
 */
export function holdsInlineSecrets(file: unknown): boolean {
  let isFound = false;
  mapTexts(file, [], (text, path) => {
    isFound ||= isInlineSecret(text, path.join("."));
    return text;
  });
  return isFound;
}

function isInlineSecret(text: string, key: string): boolean {
  const marked = text.replaceAll(reference, mark);
  if (textKeys.test(key)) return holdsKey(marked.split(/[\s=:,;]+/));
  if (!urlKeys.test(key)) return false;
  const [, authority = "", path = "", query = ""] =
    /^[^:]*:\/\/([^/?#]*)([^?#]*)\??([^#]*)/.exec(marked) ?? [];
  const user = authority.slice(0, Math.max(0, authority.lastIndexOf("@")));
  const [name = "", password = ""] = user.split(/:(.*)/);
  const options = query.split("&").map((option) => option.split(/=(.*)/));
  if (isWritten(password)) return true;
  // Database, role and other options are not secret.
  if (key === "data.postgres")
    return options.some(
      ([option = "", value = ""]) => /password/i.test(option) && isWritten(value),
    );
  const values = options.map(([option = "", value = option]) => value);
  return holdsKey([password === "" ? name : password, ...path.split("/"), ...values]);
}

/** Whether text remains without the references. */
function isWritten(part: string): boolean {
  return part.replaceAll(mark, "") !== "";
}

/** Beside a reference, which is then the key, other parts are usually words. */
function holdsKey(parts: readonly string[]): boolean {
  const lengthMin = parts.some((part) => part.includes(mark)) ? keyLengthMin : 1;
  return parts.flatMap((part) => part.split(mark)).some(({ length }) => length >= lengthMin);
}

function mapTexts(value: unknown, path: Path, map: (text: string, path: Path) => string): unknown {
  if (path.length > depthMax) return value; // no valid key is this deep, and an alias may contain itself
  if (typeof value === "string") return map(value, path);
  if (Array.isArray(value)) return value.map((part, i) => mapTexts(part, [...path, i], map));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, part]) => [
    key,
    mapTexts(part, [...path, key], map),
  ]);
  return Object.fromEntries(entries);
}

function refused(message: string): ShredwayError {
  return new ShredwayError("config_invalid", message);
}

function secretOf(
  kind: string,
  name: string,
  directories: SecretDirectories,
  files: string[],
): string {
  if (name === "") throw refused(`expected ${forms}, got no name`);
  if (kind === "env") return oneLine(directories.environment[name], `the variable ${name}`);
  const path =
    kind === "file" ? resolve(directories.folder, name) : credentialPath(name, directories);
  files.push(path);
  return oneLine(readTextFile(path, secretBytesMax, "config_invalid"), path);
}

function credentialPath(name: string, { environment }: SecretDirectories): string {
  if (!credentialName.test(name))
    throw refused("expected a credential's name without slashes, got another text");
  const folder = environment["CREDENTIALS_DIRECTORY"];
  if (folder) return resolve(folder, name);
  throw refused(
    `expected the service manager's credential ${name} (LoadCredential=), got no CREDENTIALS_DIRECTORY`,
  );
}

function oneLine(text: string | undefined, where: string): string {
  const secret = text?.replace(/\r?\n$/, "") ?? "";
  if (secret === "") throw refused(`${where}: expected a secret, got nothing`);
  if (/\p{Cc}/u.test(secret))
    throw refused(`${where}: expected one line of text, got control characters or more lines`);
  return secret;
}
