// Configuration of the block engine for subscribers with a stock ShredStream proxy.
//
// A part of schema.ts.

import { z } from "zod";
import { parsePubkey } from "../primitives.ts";
import { integer, key, name, nameExpects, parsed, parseEndpointOrPortZero } from "./schema-keys.ts";

const subscriber = z.strictObject({
  name: key(name(), {
    expects: nameExpects("subscriber name"),
    meaning: "Unique name of the subscriber.",
  }),
  publicKey: key(parsed(parsePubkey), {
    expects: "a public key in base58",
    meaning: "Unique public key with which the subscriber's proxy authenticates.",
  }),
  tier: key(name(), {
    expects: "a tier of relay.tiers",
    meaning: "Tier whose shreds the subscriber receives.",
  }),
  destinations: key(integer(1, 64).default(2), {
    expects: "an integer 1 to 64",
    meaning: "Maximum number of addresses of the subscriber at the same time.",
  }),
});

export const subscribers = z.strictObject({
  listen: key(parsed(parseEndpointOrPortZero).default("0.0.0.0:10010"), {
    expects: "an address and port such as 0.0.0.0:10010",
    meaning: "TCP address of the gRPC services for subscribers.",
  }),
  tls: key(
    z
      .strictObject({
        certificate: key(z.string().min(1).max(4096), {
          expects: "a path, relative to the configuration file",
          meaning: "Certificate chain in PEM form, the server's certificate first.",
        }),
        key: key(z.string().min(1).max(4096), {
          expects: "a path, relative to the configuration file",
          meaning: "Private key of the certificate in PEM form, without a password.",
        }),
      })
      .exactOptional(),
    {
      expects: "a mapping with certificate and key",
      meaning: "TLS of the listener. New files are used within two seconds.",
      absent: "HTTP/2 without TLS",
    },
  ),
  ttlSeconds: key(integer(3, 3600).default(120), {
    expects: "an integer 3 to 3600",
    unit: "s",
    meaning:
      "Time after a heartbeat until the relay stops sending. Proxies renew at a third of it.",
  }),
  subscribers: key(z.array(subscriber).max(1024).default([]), {
    expects: "a list of at most 1024 subscribers",
    meaning: "Public keys that may subscribe, with their tiers.",
  }),
});
