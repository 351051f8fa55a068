// Configuration texts for tests: the smallest valid one, and the message for an invalid one.

import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { ShredwayError } from "../../../src/core/errors.ts";

export const path = "/etc/shredway/shredway.yaml";
export const least = "relay:\n  shredVersion: 50093\n  leaders: { file: leaders.json }\n";

/** The message of the refusal; "accepted" for a valid text. */
export function messageOf(text: string): string {
  try {
    parseConfig(text, path);
  } catch (error) {
    if (error instanceof ShredwayError && error.reason === "config_invalid") return error.message;
    throw error;
  }
  return "accepted";
}
