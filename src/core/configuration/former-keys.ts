// Former keys: configuration keys that were renamed. The former name is accepted for one release.
//
// Called by configuration.ts before the schema checks the file. docs/upgrading.md lists the renames.

import type { ConfigProblem } from "./rules.ts";

interface FormerKey {
  readonly section: string;
  readonly formerName: string;
  readonly name: string;
}

/** Remove an entry in the release after the one that renamed the key. */
const formerKeys: readonly FormerKey[] = [
  { section: "gateway", formerName: "frontKeyPrefixes", name: "dontFrontPrefixes" },
];

interface RenamedKeys {
  /** The file's value, each former key under its present name. */
  readonly value: unknown;
  /** One for each former key in the file. */
  readonly warnings: readonly string[];
  readonly problems: readonly ConfigProblem[];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Does not change `file`. A section with both names is a problem. */
export function renameFormerKeys(file: unknown): RenamedKeys {
  const warnings: string[] = [];
  const problems: ConfigProblem[] = [];
  let value = file;
  for (const { section, formerName, name } of formerKeys) {
    const settings = isRecord(value) ? value[section] : undefined;
    if (!isRecord(value) || !isRecord(settings) || !Object.hasOwn(settings, formerName)) continue;
    if (Object.hasOwn(settings, name)) {
      const message = `expected ${section}.${name} only, got also its former name ${formerName}`;
      problems.push({ path: [section, formerName], message });
      continue;
    }
    const { [formerName]: setting, ...others } = settings;
    value = { ...value, [section]: { ...others, [name]: setting } };
    warnings.push(
      `configuration: ${section}.${formerName} is now ${section}.${name}; ` +
        "rename it, because the next release rejects the former name",
    );
  }
  return { value, warnings, problems };
}
