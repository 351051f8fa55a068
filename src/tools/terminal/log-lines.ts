// Log lines of the product's parts, as tools show them.

import { isObject } from "../../core/values.ts";

/** Returns the message of a log line. */
export function messageIn(line: string): string {
  const entry: unknown = JSON.parse(line);
  return isObject(entry) ? String(entry["msg"]) : line;
}
