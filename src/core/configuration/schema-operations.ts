// Configuration of operations: who may read metrics and readiness, and where.
//
// A part of config-schema.ts.

import { z } from "zod";
import { parseAddressRange } from "../addresses/addresses.ts";
import { integer, key, parsed, parseEndpointOrPortZero } from "./schema-keys.ts";

const listenAddressesMax = 16;

export const operations = z.strictObject({
  listen: key(
    z
      .preprocess(
        (value) => (Array.isArray(value) ? value : [value]),
        z.array(parsed(parseEndpointOrPortZero)).min(1).max(listenAddressesMax),
      )
      .exactOptional(),
    {
      expects: "an address and port such as 10.0.0.1:9780, or a list of 1 to 16",
      meaning:
        "Own listeners for `/metrics`, `/health/live` and `/health/ready` alone. Whoever reaches them may " +
        "read: choose an address that customers do not reach.",
      absent:
        "none: they are answered on the listeners of `http`, to whom `operations.allow` names",
    },
  ),
  allow: key(z.array(parsed(parseAddressRange)).max(256).default(["127.0.0.0/8", "::1"]), {
    expects: "a list of at most 256 addresses and CIDR ranges",
    meaning:
      "Who may read them on the listeners of `http`. For everybody else these paths do not exist. `[]`: " +
      "nobody. Behind a proxy see docs/metrics.md.",
  }),
  destinationSeries: key(integer(0, 4096).default(256), {
    expects: "an integer 0 to 4096",
    unit: "destinations",
    meaning:
      "Destinations of accounts with metrics of their own; the others are summed up. Those of " +
      "`relay.destinations` always have their own.",
  }),
});
