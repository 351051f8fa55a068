// All problems of a configuration file: wrong shapes, unknown keys, and violated rules between keys.
//
// Called by configuration.ts. A value of a wrong shape is removed after it was reported, and the rest
// of the file is checked as if it were absent. Rules that depend on a removed value stay silent.

import type { z } from "zod";
import { quote } from "../errors.ts";
import { didYouMean, nearestName } from "../near-names.ts";
import { lamportsPerSol } from "../solana-constants.ts";
import { deriveRegions } from "./derived.ts";
import { ignoredKeysWarning } from "./ignored-keys.ts";
import { RepairedFile } from "./repaired-file.ts";
import { type ConfigProblem, checkConfig } from "./rules.ts";
import { deriveWebSocketListen } from "./rules-tcp-listeners.ts";
import { type Config, configSchema, keyDocuments, schemaAt, unwrapSchema } from "./schema.ts";
import { unworkableParts } from "./unworkable-parts.ts";

type Path = (string | number)[];

/** Each round removes what the round before reported; a corrected key can reveal more. */
const roundsMax = 8;

interface CheckedFile {
  /** Undefined: the file has problems. */
  readonly config?: Config;
  readonly problems: readonly ConfigProblem[];
  /** Values that the program chose and the operator should know. */
  readonly warnings: readonly string[];
}

interface FileToCheck {
  /** The file's values with resolved secrets. */
  readonly value: unknown;
  /** The file's values as they are written, for quotes in errors. */
  readonly written: unknown;
  /** Problems that are already known; their values are not checked further. */
  readonly problems: readonly ConfigProblem[];
  readonly ownAddresses: readonly string[];
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

function knownKeysAt(path: readonly PropertyKey[]): string[] {
  const schema = unwrapSchema(schemaAt(path));
  return "shape" in schema && typeof schema.shape === "object"
    ? Object.keys(schema.shape ?? {})
    : [];
}

function toPath(path: readonly PropertyKey[]): Path {
  return path.map((part) => (typeof part === "number" ? part : String(part)));
}

/** A fraction where lamports are expected is usually an amount in SOL. */
function inLamports(value: unknown, unit: string | undefined): string {
  const isFraction = typeof value === "number" && value > 0 && !Number.isInteger(value);
  if (unit !== "lamports" || !isFraction) return "";
  return `; ${value} SOL are ${Math.round(value * Number(lamportsPerSol))} lamports`;
}

function shapeProblem(path: Path, original: Path, written: unknown): ConfigProblem {
  if (path.length === 0 && written === null) {
    return { path, message: "the file is empty; expected at least the section relay" };
  }
  let length = path.length;
  let document = keyDocuments.get(schemaAt(path));
  while (!document && length > 0) document = keyDocuments.get(schemaAt(path.slice(0, --length)));
  // The schema of an entry of a mapping with free names is that of the mapping.
  const isEntry = path.length > 0 && schemaAt(path) === schemaAt(path.slice(0, -1));
  const expected = (isEntry ? document?.entryExpects : undefined) ?? document?.expects;
  const value = valueAt(written, original);
  const message = `${describeValue(value)}; expected ${expected ?? "another value"}`;
  return { path: original, message: message + inLamports(value, document?.unit) };
}

/** The section that has `key`, if only one has it. */
function sectionHint(key: string): string {
  const sections = knownKeysAt([]).filter((section) => knownKeysAt([section]).includes(key));
  return sections.length === 1 ? `; this key belongs to the section ${sections[0]}` : "";
}

/** Reports unknown keys, and goes on with the names that were probably meant. */
function unknownKeys(repaired: RepairedFile, path: Path, keys: readonly string[]): ConfigProblem[] {
  const known = knownKeysAt(path);
  const original = repaired.originalPath(path);
  const mapping = valueAt(repaired.value, path);
  const isFree = (name: string) => valueAt(mapping, [name]) === undefined;
  return keys.map((key) => {
    const meant = nearestName(key, known);
    if (meant !== undefined && isFree(meant)) repaired.rename(path, key, meant);
    else repaired.remove([...path, key]);
    const hint = didYouMean(key, known);
    const listed = `; expected one of the keys ${known.join(", ")}${sectionHint(key)}`;
    const expected = hint === "" ? listed : hint;
    return { path: [...original, key], message: `unknown key ${quote(key)}${expected}` };
  });
}

/** The problems of one round. Afterwards their values are removed from `repaired`. */
function takeProblems(
  repaired: RepairedFile,
  issues: readonly z.core.$ZodIssue[],
  written: unknown,
): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  // A mistyped key explains a missing one: with unknown keys, the other problems wait for the next round.
  const unknown = issues.filter((issue) => issue.code === "unrecognized_keys");
  for (const issue of unknown) {
    problems.push(...unknownKeys(repaired, toPath(issue.path), issue.keys));
  }
  if (unknown.length > 0) return problems;
  const paths: Path[] = [];
  for (const issue of issues) {
    const path = toPath(issue.path);
    const original = repaired.originalPath(path);
    if (issue.code === "custom") problems.push({ path: original, message: issue.message });
    else problems.push(shapeProblem(path, original, written));
    paths.push(path);
  }
  // Later elements of a list go first, so that the positions of the others stay true.
  for (const path of paths.toReversed()) repaired.remove(path);
  return problems;
}

function startsWith(path: readonly (string | number)[], prefix: readonly (string | number)[]) {
  return prefix.every((part, i) => path[i] === part);
}

/** Whether a rule that reads `key` would be judged on a value that the file does not contain. */
function isAffected(removed: RepairedFile["removed"], key: string): boolean {
  const parts = key.split(".");
  return removed.some((path) => startsWith(path, parts) || startsWith(parts, path));
}

/** Checks the whole file. Never throws. */
export function checkFile({
  value,
  written,
  problems: known,
  ownAddresses,
}: FileToCheck): CheckedFile {
  const repaired = new RepairedFile(value);
  const problems = [...known];
  for (const { path } of known) repaired.remove([...path]);
  for (let round = 0; round < roundsMax; round++) {
    const result = configSchema.safeParse(repaired.value);
    if (result.success) {
      const hasDeliveryRegions = valueAt(repaired.value, ["delivery", "regions"]) !== undefined;
      const warnings = [
        ...deriveRegions(result.data, { hasDeliveryRegions }),
        ...deriveWebSocketListen(result.data),
        ...ignoredKeysWarning(repaired.value, result.data),
      ];
      const isUsable = (key: string) => !isAffected(repaired.removed, key);
      const violated = checkConfig(result.data, { ownAddresses, isUsable });
      const located = violated.map(({ path, message }) => ({
        path: repaired.originalPath([...path]),
        message,
      }));
      // A part of these values is already reported.
      const isKnown = ({ path }: ConfigProblem) =>
        repaired.removed.some((one) => startsWith(one, path));
      problems.push(...located.filter((problem) => !isKnown(problem)));
      if (problems.length > 0) return { problems, warnings: [] };
      warnings.push(...unworkableParts(result.data));
      return { config: result.data, problems, warnings };
    }
    const found = takeProblems(repaired, result.error.issues, written);
    problems.push(...found);
    // Without a mapping at the root, there is nothing else to check.
    if (found.some(({ path }) => path.length === 0)) break;
  }
  return { problems, warnings: [] };
}
