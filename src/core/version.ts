// Version of this package, from package.json.

import { readFileSync } from "node:fs";
import { isObject } from "./values.ts";

/** "unknown" if package.json is missing. */
export function packageVersion(): string {
  try {
    const file = new URL("../../package.json", import.meta.url);
    const content: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (isObject(content) && typeof content["version"] === "string") return content["version"];
  } catch {
    // The result below is "unknown".
  }
  return "unknown";
}
