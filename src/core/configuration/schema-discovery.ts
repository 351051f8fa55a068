// Configuration of discovered destinations: a URL that lists them.
//
// A part of schema-relay.ts.

import { z } from "zod";
import { integer, key, name, parsed, parseHttpUrl } from "./schema-keys.ts";

export const discovery = z.strictObject({
  url: key(parsed(parseHttpUrl), {
    expects: "a URL of http or https",
    meaning:
      "Answers GET with a JSON array of at most 2,048 addresses, each `ip` or `ip:port` " +
      "(`[ip]:port` for IPv6). It may contain a user and a password.",
  }),
  tier: key(name(), {
    expects: "a tier of relay.tiers",
    meaning: "Tier whose shreds the discovered destinations receive.",
  }),
  port: key(integer(1, 65_535).exactOptional(), {
    expects: "an integer 1 to 65535",
    meaning: "UDP port of addresses that name none.",
    absent: "every address must name its port",
  }),
  intervalSeconds: key(integer(5, 3600).default(30), {
    expects: "an integer 5 to 3600",
    unit: "s",
    meaning: "Time between two requests.",
  }),
});
