// Configuration of the gateway: its keys, with their ranges, units, defaults and meanings.
//
// A part of config-schema.ts.

import { z } from "zod";
import { parseAddressRange, parseEndpoint } from "../addresses/addresses.ts";
import { parsePubkey } from "../primitives.ts";
import {
  integer,
  key,
  lamports,
  name,
  nameExpects,
  parsed,
  parseEndpointOrPortZero,
  parseHttpUrl,
  parseOpenHttpUrl,
  parsePostgresUrl,
} from "./schema-keys.ts";

const listenAddressesMax = 16;
/** What a listener of HTTP may show; http/faces.ts knows which paths are whose. */
const faceNames = ["gateway", "tips", "tracker", "portal"] as const;
const facesExpects = "a list of 1 to 4 of gateway, tips, tracker and portal";

const split = z.strictObject({
  listen: key(oneOrMany(parsed(parseEndpointOrPortZero)), {
    expects: "an address and port such as 127.0.0.1:8781 or [::]:8781, or a list of 1 to 16",
    meaning: "Where these faces are answered.",
  }),
  serves: key(z.array(z.enum(faceNames)).min(1).max(faceNames.length), {
    expects: facesExpects,
    meaning:
      "What is answered there. Any other path is unknown there, but for `/gethealth` and what `operations` allows.",
  }),
});

function oneOrMany<T extends z.ZodType>(element: T) {
  return z.preprocess(
    (value) => (Array.isArray(value) ? value : [value]),
    z.array(element).min(1).max(listenAddressesMax),
  );
}

const addressesMax = 64;
const pubkeys = (max: number) => z.array(parsed(parsePubkey)).max(max).default([]);
const pubkeysExpects = (max: number) => `a list of at most ${max} public keys in base58`;

export const http = z.strictObject({
  listen: key(oneOrMany(parsed(parseEndpointOrPortZero)).default(["127.0.0.1:8780"]), {
    expects: "an address and port such as 127.0.0.1:8780 or [::]:8780, or a list of 1 to 16",
    meaning: "Where HTTP and WebSocket are answered. TLS is a proxy's business.",
  }),
  webSocketListen: key(z.array(parsed(parseEndpoint)).max(listenAddressesMax).exactOptional(), {
    expects: "a list of at most 16 addresses and ports",
    meaning:
      "Further addresses that answer the same: @solana/web3.js opens its WebSocket at the port above " +
      "when its URL names a port.",
    absent: "the port above the first of `listen`; `[]`: none",
  }),
  serves: key(
    z
      .array(z.enum(faceNames))
      .min(1)
      .max(faceNames.length)
      .default([...faceNames]),
    {
      expects: facesExpects,
      meaning:
        "What `listen` answers: submissions and methods (gateway), `/tip_floor` and `/tip_stream` (tips), " +
        "`/api/…` of alternative partners (tracker), the portal.",
    },
  ),
  split: key(z.array(split).max(8).default([]), {
    expects: "a list of at most 8 mappings with the keys listen and serves",
    meaning:
      "Further listeners of some faces each. `connectionsMax` holds for each entry on its own.",
  }),
  trustedProxies: key(z.array(parsed(parseAddressRange)).max(64).default([]), {
    expects: "a list of at most 64 addresses and CIDR ranges",
    meaning:
      "Proxies whose X-Forwarded-For tells the caller's address. From anybody else the header is ignored.",
  }),
  connectionsMax: key(integer(1, 1_000_000).default(10_000), {
    expects: "an integer 1 to 1000000",
    unit: "sockets",
    meaning: "Sockets at once, HTTP and WebSocket together; more are closed at once.",
  }),
});

export const data = z.strictObject({
  directory: key(z.string().min(1).max(4096).default("data"), {
    expects: "a path, relative to the configuration file",
    meaning:
      "Folder of the database: accounts, keys, submissions. Made when it is not there, for its owner only.",
  }),
  node: key(name().exactOptional(), {
    expects: nameExpects("node name"),
    meaning:
      "Name of this node among those that share a PostgreSQL; each once, and the same after a restart. Of no " +
      "use with a file.",
    absent: "the machine's host name",
  }),
  postgres: key(parsed(parsePostgresUrl).exactOptional(), {
    expects: "a URL of postgres",
    meaning:
      "PostgreSQL that keeps everything instead of a file in `directory`, see docs/postgres.md. Masked by " +
      "`--print-config`, for it may hold a password.",
    absent: "SQLite in `directory`",
  }),
  historyHours: key(integer(1, 8760).default(24), {
    expects: "an integer 1 to 8760",
    unit: "hours",
    meaning: "So long the timeline of an ended submission can be asked for.",
  }),
});

export const tips = z.strictObject({
  addresses: key(pubkeys(addressesMax), {
    expects: pubkeysExpects(addressesMax),
    meaning: "Where tips of submissions are paid to, in regions without addresses of their own.",
  }),
  shredAddresses: key(pubkeys(addressesMax), {
    expects: pubkeysExpects(addressesMax),
    meaning: "Where tips for shreds are paid to, in regions without addresses of their own.",
  }),
  minimumLamports: key(lamports().default(10_000), {
    expects: "an integer 0 to 2^53 - 1",
    unit: "lamports",
    meaning: "Least tip of a submission. Routes may ask for more.",
  }),
});

export const region = z.strictObject({
  name: key(name(), { expects: nameExpects("region name"), meaning: "Name of the region." }),
  url: key(parsed(parseOpenHttpUrl).exactOptional(), {
    expects: "a URL of http or https without user and password",
    meaning: "Where its gateway is reached; told to callers.",
    absent: "not told",
  }),
  tipAddresses: key(pubkeys(addressesMax), {
    expects: pubkeysExpects(addressesMax),
    meaning: "Tip addresses of this region for submissions. Empty: `tips.addresses`.",
  }),
  shredTipAddresses: key(pubkeys(addressesMax), {
    expects: pubkeysExpects(addressesMax),
    meaning: "Tip addresses of this region for shreds. Empty: `tips.shredAddresses`.",
  }),
});

export const gateway = z.strictObject({
  requestsPerSecond: key(integer(1, 1_000_000).default(50), {
    expects: "an integer 1 to 1000000",
    unit: "calls/s",
    meaning: "Calls that a key without a limit of its own may make. More: HTTP 429.",
  }),
  burst: key(integer(1, 1_000_000).default(100), {
    expects: "an integer 1 to 1000000",
    unit: "calls",
    meaning: "Calls that such a key may make at once after a pause.",
  }),
  openMax: key(integer(1, 1_000_000).default(50_000), {
    expects: "an integer 1 to 1000000",
    unit: "transactions",
    meaning: "Transactions whose end is awaited at once; more are refused with `overloaded`.",
  }),
  openPerAccountMax: key(integer(1, 1_000_000).default(10_000), {
    expects: "an integer 1 to 1000000",
    unit: "transactions",
    meaning: "The same of one account, so that nobody takes the room of all the others.",
  }),
  checkThreads: key(integer(1, 64).default(2), {
    expects: "an integer 1 to 64",
    unit: "threads",
    meaning: "Threads that verify signatures, 50 to 100 µs each.",
  }),
  checkQueueMax: key(integer(1, 65_536).default(2048), {
    expects: "an integer 1 to 65536",
    unit: "transactions",
    meaning: "Transactions that may wait for them; more are refused with `overloaded`.",
  }),
  resendMs: key(integer(50, 600_000).default(2000), {
    expects: "an integer 50 to 600000",
    unit: "ms",
    meaning: "Between two sendings of a transaction that has not landed.",
  }),
  partnerUnitLamports: key(integer(0, 1_000_000).default(10), {
    expects: "an integer 0 to 1000000",
    unit: "lamports per compute unit",
    meaning: "Least priority fee of what goes to alternative partners.",
  }),
  denyLeaders: key(pubkeys(4096), {
    expects: pubkeysExpects(4096),
    meaning:
      "Identities of leaders that protected submissions keep away from: held back while one of them is " +
      "current or next.",
  }),
  frontKeyPrefixes: key(
    z
      .array(z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{4,32}$/))
      .max(16)
      .default(["jitodontfront", "dontbund1e"]),
    {
      expects: "a list of at most 16 texts of 4 to 32 base58 characters",
      meaning:
        "A transaction with an account whose key begins so may stand in a bundle at its front only.",
    },
  ),
});

export const route = z.strictObject({
  name: key(name(), {
    expects: nameExpects("route name"),
    meaning: "Name of the route in timelines, counters and logs. Each once.",
  }),
  kind: key(z.enum(["swqos", "block-builder", "scheduler", "alt-partner", "tpu"]), {
    expects: "swqos, block-builder, scheduler, alt-partner or tpu",
    meaning:
      "`swqos`: sendTransaction of a staked partner. `block-builder`: sendBundle and sendTransaction of a " +
      "block engine (`/api/v1/…`). `scheduler`: any HTTP service that takes transactions. `alt-partner`: " +
      "the transaction ports of the leaders in `leaders`, each in its own slots. `tpu`: the leaders " +
      "themselves over QUIC, with the stake of the identity in `identityFile`.",
  }),
  url: key(parsed(parseHttpUrl).exactOptional(), {
    expects: "a URL of http or https",
    meaning: "Where it is reached. Masked by `--print-config`, for it may hold a key.",
    absent: "only with `leaders`",
  }),
  leaders: key(z.record(parsed(parsePubkey), parsed(parseHttpUrl)).exactOptional(), {
    expects: "a mapping from identities in base58 to URLs of http or https",
    meaning: "Of an alt-partner: the port of each leader.",
    absent: "`url` reaches every leader",
  }),
  headers: key(
    z.record(z.string().regex(/^[A-Za-z0-9-]{1,64}$/), z.string().max(4096)).default({}),
    {
      expects: "a mapping from header names to texts",
      meaning: "Sent with every request, e.g. the partner's key. Masked by `--print-config`.",
    },
  ),
  format: key(z.enum(["json-rpc", "base64", "bytes"]).default("json-rpc"), {
    expects: "json-rpc, base64 or bytes",
    meaning:
      "Of a scheduler: body of a request. `json-rpc`: sendTransaction; `base64`, `bytes`: the transaction itself.",
  }),
  bundles: key(z.boolean().default(true), {
    expects: "true or false",
    meaning: "Of a block builder: it takes bundles.",
  }),
  transactions: key(z.boolean().default(true), {
    expects: "true or false",
    meaning: "It takes single transactions.",
  }),
  mevSafe: key(z.boolean().default(false), {
    expects: "true or false",
    meaning:
      "It keeps what it gets from those who would front-run; `mevProtect` goes nowhere else.",
  }),
  minimumTipLamports: key(lamports().default(0), {
    expects: "an integer 0 to 2^53 - 1",
    unit: "lamports",
    meaning: "Submissions with a lower tip do not take this route.",
  }),
  transactionBytesMax: key(integer(1, 4096).exactOptional(), {
    expects: "an integer 1 to 4096",
    unit: "bytes",
    meaning: "Larger transactions do not take this route.",
    absent: "1232 for a block builder, 4096 for all others",
  }),
  callsPerRequest: key(integer(1, 64).default(1), {
    expects: "an integer 1 to 64",
    unit: "calls",
    meaning:
      "With `json-rpc`: what waits may leave as one array of so many calls. 1 for those who do not know arrays.",
  }),
  connections: key(integer(1, 256).default(8), {
    expects: "an integer 1 to 256",
    unit: "sockets",
    meaning: "Kept-alive connections, each with one request under way.",
  }),
  queueMax: key(integer(1, 100_000).default(1024), {
    expects: "an integer 1 to 100000",
    unit: "transactions",
    meaning: "What may wait for a connection; when it is full, the route takes no more.",
  }),
  identityFile: key(z.string().min(1).max(4096).exactOptional(), {
    expects: "a path, relative to the configuration file",
    meaning:
      "Of a tpu, and of an alt-partner with `quicPorts`: key pair whose stake the leaders weigh, a JSON array " +
      "of 64 numbers, readable by its owner only. A changed file is taken over without a restart.",
    absent: "a key pair of the moment, without stake",
  }),
  connectAheadSlots: key(integer(0, 128).default(16), {
    expects: "an integer 0 to 128",
    unit: "slots",
    meaning: "Of a tpu: leaders so near are connected to before they lead.",
  }),
  fanout: key(integer(1, 8).default(2), {
    expects: "an integer 1 to 8",
    unit: "leaders",
    meaning:
      "Of a tpu: how many leaders get each transaction: the present one, and those after it when its window ends.",
  }),
  quicAddresses: key(z.record(parsed(parsePubkey), parsed(parseEndpoint)).exactOptional(), {
    expects: "a mapping from identities in base58 to addresses and ports",
    meaning: "Of a tpu: where leaders take transactions, instead of what the cluster tells.",
    absent: "as the node's getClusterNodes tells (tpuQuic)",
  }),
  quicPorts: key(
    z
      .strictObject({
        plain: key(integer(1, 65_535), { expects: "a port", meaning: "For all transactions." }),
        protected: key(integer(1, 65_535), {
          expects: "a port",
          meaning: "For those that must not land as failed.",
        }),
      })
      .exactOptional(),
    {
      expects: "a mapping with the keys plain and protected",
      meaning: "Of an alt-partner: its leaders' ports over QUIC, at the addresses of their TPU.",
      absent: "the partner speaks HTTP: `url` or `leaders`",
    },
  ),
  timeoutMs: key(integer(10, 60_000).default(2000), {
    expects: "an integer 10 to 60000",
    unit: "ms",
    meaning: "For connection and answer of one request.",
  }),
});
