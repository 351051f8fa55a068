// Configuration of the portal: its keys, with their ranges, units, defaults and meanings.
//
// A part of schema.ts.

import { z } from "zod";
import { integer, key } from "./schema-keys.ts";

export const portal = z.strictObject({
  enabled: key(z.boolean().default(true), {
    expects: "true or false",
    meaning: "Enables the portal at `/portal/`, see docs/portal.md.",
  }),
  sessionHours: key(integer(1, 168).default(12), {
    expects: "an integer 1 to 168",
    unit: "hours",
    meaning: "Duration of a portal session. Afterwards the user must sign in again.",
  }),
});
