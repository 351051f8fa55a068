// Configuration of decoded streams: its keys, with their ranges, units, defaults and meanings.
//
// A part of schema.ts.

import { z } from "zod";
import { integer, key, name, parsed, parseEndpointOrPortZero, tlsFiles } from "./schema-keys.ts";

const kibibyte = 1024;

const push = z.strictObject({
  from: key(parsed(parseEndpointOrPortZero).default("0.0.0.0:0"), {
    expects: "an address and port such as 192.0.2.1:20002; with port 0 the kernel chooses a port",
    meaning: "Local address that sends transaction pushes to IPv4 destinations.",
  }),
  fromIpv6: key(parsed(parseEndpointOrPortZero).default("[::]:0"), {
    expects:
      "an address and port such as [2001:db8::1]:20002; with port 0 the kernel chooses a port",
    meaning: "The same for IPv6 destinations.",
  }),
  datagramsPerSecondMax: key(integer(100, 1_000_000).default(30_000), {
    expects: "an integer 100 to 1000000",
    unit: "datagrams",
    meaning:
      "Maximum number of datagrams of all pushes in a second. Each push has an equal share; what exceeds it is dropped and counted.",
  }),
});

export const streams = z.strictObject({
  listen: key(parsed(parseEndpointOrPortZero).default("0.0.0.0:10000"), {
    expects: "an address and port such as 0.0.0.0:10000",
    meaning: "TCP address of the gRPC services for decoded streams.",
  }),
  tls: key(z.strictObject(tlsFiles("New files are used within two seconds.")).exactOptional(), {
    expects: "a mapping with the keys certificate and key",
    meaning: "TLS of the listener.",
    absent: "HTTP/2 without TLS",
  }),
  tier: key(name().exactOptional(), {
    expects: "a tier of relay.tiers",
    meaning: "Tier whose shreds an account without a tier of its own receives as streams.",
    absent: "accounts without a tier are refused",
  }),
  subscriptionsMax: key(integer(1, 4000).default(1000), {
    expects: "an integer 1 to 4000",
    unit: "streams",
    meaning:
      "Maximum number of open streams of all accounts. Each subscription on a WebSocket and each push is a stream.",
  }),
  subscriptionsPerAccountMax: key(integer(1, 4000).default(10), {
    expects: "an integer 1 to 4000",
    unit: "streams",
    meaning: "Maximum number of open streams of an account.",
  }),
  replayBytes: key(
    z
      .union([z.literal(0), integer(1024 * kibibyte, 4_194_303 * kibibyte)])
      .default(256 * 1024 * kibibyte),
    {
      expects: "0, or an integer 1048576 to 4294966272",
      unit: "bytes",
      meaning:
        "Memory for the transactions of the last two minutes, which streams with the metadata `x-from-slot` begin with. It is used while a stream is open, and for two minutes after that. 0: no stream can begin with an earlier slot.",
    },
  ),
  filtersMax: key(integer(1, 1000).default(20), {
    expects: "an integer 1 to 1000",
    unit: "filters",
    meaning: "Maximum number of filters of a gRPC stream. All streams together have at most 4,096.",
  }),
  accountsMax: key(integer(1, 50_000).default(10_000), {
    expects: "an integer 1 to 50000",
    unit: "accounts",
    meaning:
      "Maximum number of accounts in the filters of a stream. All streams together have at most 50,000.",
  }),
  queueBytes: key(integer(64 * kibibyte, 65_536 * kibibyte).default(4096 * kibibyte), {
    expects: "an integer 65536 to 67108864",
    unit: "bytes",
    meaning:
      "Messages that may wait for a client that reads slowly. With more, its stream ends with the reason `lagged`.",
  }),
  push: key(push.prefault({}), {
    expects: "a mapping",
    meaning: "Transaction pushes over UDP (docs/transaction-push.md).",
  }),
});
