// The error for an API key without a scope that a call needs.

import { ShredwayError } from "../../core/errors.ts";
import type { ApiKey, Scope } from "./types.ts";

export function scopeMissing(what: string, key: ApiKey, wanted: readonly Scope[]): ShredwayError {
  return new ShredwayError(
    "scope_missing",
    `${what}: the API key has the scopes ${key.scopes.join(", ")}; expected ${wanted.join(" or ")}`,
  );
}
