// Configuration of sources of kind "shredstream": the block engine and how to authenticate with it.
//
// A part of schema-relay.ts. rules-shredstream.ts has the conditions between the keys.

import { z } from "zod";
import { parseAddress } from "../addresses/addresses.ts";
import { ShredwayError } from "../errors.ts";
import { key, parsed, parseOpenHttpUrl } from "./schema-keys.ts";

/** More regions are ignored by Jito's block engine. */
const regionsMax = 2;

const urlExpects = "http://HOST[:PORT] or https://HOST[:PORT], without path, user and password";

function parseEngineUrl(text: string): void {
  parseOpenHttpUrl(text);
  const { pathname, search, hash } = new URL(text);
  if (pathname === "/" && search === "" && hash === "") return;
  throw new ShredwayError("config_invalid", `expected ${urlExpects}; got a path or a query`);
}

export const shredstream = z.strictObject({
  url: key(parsed(parseEngineUrl), {
    expects: urlExpects,
    meaning: "URL of the block engine. `https`: TLS with the root certificates of Node.js.",
  }),
  authUrl: key(parsed(parseEngineUrl).exactOptional(), {
    expects: urlExpects,
    meaning: "URL of the block engine's authentication service.",
    absent: "`url`",
  }),
  keyFile: key(z.string().min(1).max(4096), {
    expects: "a path, relative to the configuration file",
    meaning:
      "Key pair that the block engine has approved: a JSON array of 64 numbers, as " +
      "`solana-keygen` writes it. Only its owner may have access (mode 0600).",
  }),
  regions: key(
    z
      .array(z.string().regex(/^[A-Za-z0-9._-]{1,64}$/))
      .min(1)
      .max(regionsMax),
    {
      expects: `a list of 1 to ${regionsMax} names of the block engine's regions`,
      meaning:
        "Regions whose shreds are sent. Jito's names: amsterdam, dublin, frankfurt, london, ny, " +
        "slc, singapore, tokyo. Its block engine ignores a third region.",
    },
  ),
  publicAddress: key(parsed(parseAddress).exactOptional(), {
    expects: "an IP address such as 192.0.2.1",
    meaning:
      "Address to which the block engine sends the shreds. It must be the address from which " +
      "this machine connects; the block engine rejects others.",
    absent: "the local address of the connection to the block engine",
  }),
});
