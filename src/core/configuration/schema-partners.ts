// Configuration of durable nonces and of the tracker of alternative partners: keys, ranges, units,
// defaults, meanings.
//
// A part of config-schema.ts.

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
      "Key pair that pays for the nonce accounts of API keys: a JSON array of 64 numbers, as Solana's " +
      "tools write it, readable by its owner only.",
    absent: "no nonce accounts are made: getNonce answers for callers' own accounts",
  }),
  authorityKeyFile: key(path().exactOptional(), {
    expects: "a path, relative to the configuration file",
    meaning:
      "Key pair that the nonce accounts and their authorities are derived from. Without this file the " +
      "accounts cannot be used any more: keep a copy, and use it with one database only. The same form as " +
      "`fundingKeyFile`.",
    absent: "`fundingKeyFile`",
  }),
  pollMs: key(integer(50, 60_000).default(400), {
    expects: "an integer 50 to 60000",
    unit: "ms",
    meaning:
      "So often the node is asked for the values of nonces in use, besides at once after one was spent.",
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
      "Where more of them are listed, as a JSON array of identities or an object with identities as keys. " +
      "Masked by `--print-config`, for it may hold a key.",
    absent: "nobody is asked",
  }),
  refreshMinutes: key(integer(1, 10_080).default(60), {
    expects: "an integer 1 to 10080",
    unit: "minutes",
    meaning: "So often `url` is asked.",
  }),
  denied: key(pubkeys().default([]), {
    expects: pubkeysExpects,
    meaning:
      "Identities that are no members whatever the lists say, e.g. those who only open the partner's ports.",
  }),
});
