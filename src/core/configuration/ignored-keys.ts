// Ignored keys: the keys of a file without `http` that only a gateway uses.
//
// Called by file-problems.ts. `quic` and `streams` are missing here, because rules.ts refuses them
// without `http`.

import { isObject } from "../values.ts";
import type { Config } from "./schema.ts";

/** Sections that only a gateway uses. */
const gatewaySections: readonly string[] = [
  "tips",
  "tiers",
  "delivery",
  "region",
  "regions",
  "gateway",
  "nonces",
  "tracker",
  "portal",
  "routes",
] satisfies (keyof Config)[];

/** Keys that only a gateway uses. A relay uses the other keys of these sections. */
const gatewayKeys: ReadonlyMap<string, readonly string[]> = new Map([
  ["solana", ["websocket"] satisfies (keyof NonNullable<Config["solana"]>)[]],
  ["operations", ["allow"] satisfies (keyof Config["operations"])[]],
  [
    "data",
    ["node", "postgres", "durableSubmissions", "historyHours"] satisfies (keyof Config["data"])[],
  ],
]);

function ignoredKeysOf(section: string, value: unknown): readonly string[] {
  if (gatewaySections.includes(section)) return [section];
  const ignored = gatewayKeys.get(section) ?? [];
  if (!isObject(value)) return [];
  return ignored.filter((key) => Object.hasOwn(value, key)).map((key) => `${section}.${key}`);
}

/** One warning, or none. `file`: the values that the file itself contains. */
export function ignoredKeysWarning(file: unknown, { http }: Pick<Config, "http">): string[] {
  if (http || !isObject(file)) return [];
  const ignored = Object.entries(file).flatMap(([section, value]) => ignoredKeysOf(section, value));
  if (ignored.length === 0) return [];
  return [
    "configuration: http is missing, so the service runs no gateway and ignores these keys: " +
      `${ignored.join(", ")}; add http, or remove them`,
  ];
}
