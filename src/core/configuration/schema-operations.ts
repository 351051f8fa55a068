// Configuration of operations: who may read metrics and readiness, and where.
//
// A part of schema.ts.

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
        "Separate listeners for `/metrics`, `/health/live` and `/health/ready`. They " +
        "require no key: choose an address that customers cannot reach.",
      absent:
        "none: the listeners of `http` answer these paths for the addresses of " +
        "`operations.allow`",
    },
  ),
  allow: key(z.array(parsed(parseAddressRange)).max(256).default(["127.0.0.0/8", "::1"]), {
    expects: "a list of at most 256 addresses and CIDR ranges",
    meaning:
      "Addresses that may read these paths on the listeners of `http`. All other " +
      "addresses receive 404. `[]` allows no address. For a proxy see docs/metrics.md.",
  }),
  destinationSeries: key(integer(0, 4096).default(256), {
    expects: "an integer 0 to 4096",
    unit: "destinations",
    meaning:
      "Maximum number of account destinations with their own time series. The remaining " +
      "destinations share one sum. Those of `relay.destinations` always have their own.",
  }),
});
