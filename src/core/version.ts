// Version: of this package, as package.json says it.
//
// Asked by the command line and by the portal.

import { readFileSync } from "node:fs";
import { isObject } from "./values.ts";

/** "unknown" when package.json was taken away. */
export function packageVersion(): string {
  try {
    const file = new URL("../../package.json", import.meta.url);
    const content: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (isObject(content) && typeof content["version"] === "string") return content["version"];
  } catch {
    // Said below.
  }
  return "unknown";
}
