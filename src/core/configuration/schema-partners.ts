// Configuration of durable nonces and of the tracker of alternative partners: keys, ranges, units,
// defaults, meanings.
//
// A part of schema.ts.

import { z } from "zod";
import { parsePubkey } from "../primitives.ts";
import { integer, key, parsed, parseHttpUrl } from "./schema-keys.ts";

const path = () => z.string().min(1).max(4096);
const membersMax = 4096;
const pubkeys = () => z.array(parsed(parsePubkey)).max(membersMax);
const pubkeysExpects = `a list of at most ${membersMax} public keys in base58`;

export const nonces = z.strictObject({
  fundingKeyFile: key(path().exactOptional(), {
    expects: "a path, relative to the configuration file",
    meaning:
      "Key pair that pays for the nonce accounts of API keys: a JSON array of 64 numbers " +
      "in the format of Solana's tools. Only its owner may read the file.",
    absent: "the service creates no nonce accounts; getNonce reads only callers' own accounts",
  }),
  authorityKeyFile: key(path().exactOptional(), {
    expects: "a path, relative to the configuration file",
    meaning:
      "Key pair from which the nonce accounts and their authorities are derived. Without " +
      "this file the accounts are unusable: back it up, and use it with one database " +
      "only. The format is that of `fundingKeyFile`.",
    absent: "`fundingKeyFile`",
  }),
  pollMs: key(integer(50, 60_000).default(400), {
    expects: "an integer 50 to 60000",
    unit: "ms",
    meaning:
      "Polling interval for the values of nonces in use. A spent nonce is polled immediately.",
  }),
});

export const tracker = z.strictObject({
  members: key(pubkeys().exactOptional(), {
    expects: pubkeysExpects,
    meaning: "Identities of validators that run the alternative partner's software.",
    absent: "the leaders of the `alt-partner` routes",
  }),
  url: key(parsed(parseHttpUrl).exactOptional(), {
    expects: "a URL of http or https",
    meaning:
      "URL of a list of additional members: a JSON array of identities, or an object with " +
      "identities as keys. `--print-config` masks it, because it may contain a key.",
    absent: "no additional list",
  }),
  refreshMinutes: key(integer(1, 10_080).default(60), {
    expects: "an integer 1 to 10080",
    unit: "minutes",
    meaning: "Refresh interval of `url`.",
  }),
  denied: key(pubkeys().default([]), {
    expects: pubkeysExpects,
    meaning:
      "Identities to exclude from both lists, for example validators that only open the " +
      "partner's ports.",
  }),
});
