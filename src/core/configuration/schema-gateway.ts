// Configuration of the gateway: its keys, with their ranges, units, defaults and meanings.
//
// A part of schema.ts.

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
  tlsFiles,
} from "./schema-keys.ts";

const listenAddressesMax = 16;
/** Endpoint groups that a listener of HTTP may serve. */
const endpointGroupNames = ["gateway", "tips", "tracker", "portal"] as const;
const endpointGroupsExpected = "a list of 1 to 4 of gateway, tips, tracker and portal";

const split = z.strictObject({
  listen: key(oneOrMany(parsed(parseEndpointOrPortZero)), {
    expects: "an address and port such as 127.0.0.1:8790 or [::]:8790, or a list of 1 to 16",
    meaning: "Addresses of this listener.",
  }),
  serves: key(z.array(z.enum(endpointGroupNames)).min(1).max(endpointGroupNames.length), {
    expects: endpointGroupsExpected,
    meaning:
      "Endpoint groups of this listener. It answers other paths with 404, except " +
      "`/gethealth` and the paths that `operations` allows.",
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

const tls = z.strictObject({
  ...tlsFiles("A change is picked up within two seconds, without a restart."),
  listen: key(oneOrMany(parsed(parseEndpointOrPortZero)).default(["0.0.0.0:8443"]), {
    expects: "an address and port such as 0.0.0.0:443 or [::]:443, or a list of 1 to 16",
    meaning:
      "Addresses for HTTPS and secure WebSockets. The next higher port after the first one " +
      "serves the same endpoints, for the WebSocket of @solana/web3.js.",
  }),
});

export const http = z.strictObject({
  listen: key(oneOrMany(parsed(parseEndpointOrPortZero)).default(["127.0.0.1:8780"]), {
    expects: "an address and port such as 127.0.0.1:8780 or [::]:8780, or a list of 1 to 16",
    meaning: "Addresses for HTTP and WebSocket without TLS.",
  }),
  tls: key(tls.exactOptional(), {
    expects: "a mapping with the keys certificate and key",
    meaning: "Additional addresses with TLS 1.2 and 1.3 and the same endpoints.",
    absent: "no TLS",
  }),
  webSocketListen: key(z.array(parsed(parseEndpoint)).max(listenAddressesMax).exactOptional(), {
    expects: "a list of at most 16 addresses and ports",
    meaning:
      "Additional addresses with the same endpoints. If the URL contains a port, " +
      "@solana/web3.js opens its WebSocket at the next higher port.",
    absent:
      "the next higher port after the first of `listen`, unless another listener has it; `[]` disables this",
  }),
  serves: key(
    z
      .array(z.enum(endpointGroupNames))
      .min(1)
      .max(endpointGroupNames.length)
      .default([...endpointGroupNames]),
    {
      expects: endpointGroupsExpected,
      meaning:
        "Endpoint groups of `listen`: submissions and methods (gateway), `/tip_floor` and " +
        "`/tip_stream` (tips), `/api/…` of alternative partners (tracker), and the portal.",
    },
  ),
  split: key(z.array(split).max(8).default([]), {
    expects: "a list of at most 8 mappings with the keys listen and serves",
    meaning:
      "Additional listeners, each with its own endpoint groups. `connectionsMax` applies " +
      "to each entry separately.",
  }),
  trustedProxies: key(z.array(parsed(parseAddressRange)).max(64).default([]), {
    expects: "a list of at most 64 addresses and CIDR ranges",
    meaning:
      "Proxies whose X-Forwarded-For header gives the caller's address. The header is " +
      "ignored if it comes from any other address.",
  }),
  connectionsMax: key(integer(1, 1_000_000).default(10_000), {
    expects: "an integer 1 to 1000000",
    unit: "sockets",
    meaning:
      "Maximum number of concurrent sockets, HTTP and WebSocket together. For each further one, an idle " +
      "one of the address with the most is closed; if it has none, and with `uws`, the new one. The start lowers " +
      "it if the limit of open files is too low, and warns.",
  }),
  engine: key(z.enum(["node", "uws"]).default("node"), {
    expects: "node or uws",
    meaning:
      "Web server: `node` uses the sockets of Node.js, `uws` is uWebSockets.js. `uws` answers more " +
      "requests per core, but closes idle connections after 10 s. It has no binary for Node 24 " +
      "and 26.",
  }),
  keepAliveSeconds: key(integer(1, 3600).exactOptional(), {
    expects: "an integer 1 to 3600",
    unit: "seconds",
    meaning: "A connection without a request for this long is closed.",
    absent: "90; 10 with `engine: uws`, which cannot change it",
  }),
});

export const data = z.strictObject({
  directory: key(z.string().min(1).max(4096).default("data"), {
    expects: "a path, relative to the configuration file",
    meaning:
      "Folder of the SQLite database (accounts, keys, submissions) and of the relay's highest slot. If it does not exist, " +
      "it is created with access for its owner only.",
  }),
  node: key(name().exactOptional(), {
    expects: nameExpects("node name"),
    meaning:
      "Unique name of this node among the nodes on one PostgreSQL. It must be the same " +
      "after a restart. SQLite ignores it.",
    absent: "the machine's host name",
  }),
  postgres: key(parsed(parsePostgresUrl).exactOptional(), {
    expects: "a URL of postgres",
    meaning:
      "PostgreSQL database that replaces the SQLite file in `directory`, see " +
      "docs/postgres.md. `--print-config` masks it, because it may contain a password.",
    absent: "SQLite in `directory`",
  }),
  durableSubmissions: key(z.boolean().exactOptional(), {
    expects: "true or false",
    meaning:
      "Whether a submission is acknowledged only after it has reached the disk. Sending never waits for it. " +
      "`false` saves this wait: a submission then survives a kill of the process, but the newest ones may be " +
      "lost with the power, or with the PostgreSQL server.",
    absent: "true with `postgres`, otherwise false",
  }),
  historyHours: key(integer(1, 8760).default(24), {
    expects: "an integer 1 to 8760",
    unit: "hours",
    meaning: "Retention of the timelines of completed submissions.",
  }),
});

const minimumOf = (method: string) =>
  key(lamports().exactOptional(), {
    expects: "an integer 0 to 2^53 - 1",
    unit: "lamports",
    meaning: `Minimum tip of ${method}.`,
    absent: "`tips.minimumLamports`",
  });

const minimumLamportsByMethod = z.strictObject({
  sendTransaction: minimumOf("sendTransaction"),
  sendBundle: minimumOf("sendBundle, for the whole bundle"),
  sendBatch: minimumOf("each transaction of sendBatch"),
  sendIdeal: minimumOf("each transaction of sendIdeal"),
  sendAlt: minimumOf("sendAlt"),
});

export const tips = z.strictObject({
  addresses: key(pubkeys(addressesMax), {
    expects: pubkeysExpects(addressesMax),
    meaning: "Tip addresses for submissions, for regions without their own addresses.",
  }),
  shredAddresses: key(pubkeys(addressesMax), {
    expects: pubkeysExpects(addressesMax),
    meaning: "Tip addresses for shreds, for regions without their own addresses.",
  }),
  minimumLamports: key(lamports().default(10_000), {
    expects: "an integer 0 to 2^53 - 1",
    unit: "lamports",
    meaning: "Minimum tip of a submission. Routes may require more.",
  }),
  minimumLamportsByMethod: key(minimumLamportsByMethod.prefault({}), {
    expects:
      "a mapping with the optional keys sendTransaction, sendBundle, sendBatch, sendIdeal and sendAlt",
    meaning: "Minimum tips of single methods, higher or lower than `minimumLamports`.",
  }),
});

export const region = z.strictObject({
  name: key(name(), { expects: nameExpects("region name"), meaning: "Name of the region." }),
  url: key(parsed(parseOpenHttpUrl).exactOptional(), {
    expects: "a URL of http or https without user and password",
    meaning: "Public URL of the region's gateway, reported to callers.",
    absent: "not reported",
  }),
  tipAddresses: key(pubkeys(addressesMax), {
    expects: pubkeysExpects(addressesMax),
    meaning: "Tip addresses of this region for submissions. If empty, `tips.addresses` apply.",
  }),
  shredTipAddresses: key(pubkeys(addressesMax), {
    expects: pubkeysExpects(addressesMax),
    meaning: "Tip addresses of this region for shreds. If empty, `tips.shredAddresses` apply.",
  }),
});

const methodNames = (document: string) =>
  key(
    z
      .array(z.string().regex(/^[A-Za-z][A-Za-z0-9_]{0,63}$/))
      .max(64)
      .default([]),
    { expects: "a list of at most 64 names of JSON-RPC methods", meaning: document },
  );

const readMethods = z.strictObject({
  add: methodNames(
    "Further methods of the node, for example getBlock. Checking an answer of several MB " +
      "delays all other calls. Names of the gateway's own methods are refused.",
  ),
  remove: methodNames("Methods of the default list that are refused with `method_unknown`."),
});

export const gateway = z.strictObject({
  requestsPerSecond: key(integer(1, 1_000_000).default(50), {
    expects: "an integer 1 to 1000000",
    unit: "calls/s",
    meaning: "Rate limit of an API key without its own limit. Further calls receive HTTP 429.",
  }),
  burst: key(integer(1, 1_000_000).default(100), {
    expects: "an integer 1 to 1000000",
    unit: "calls",
    meaning: "Burst size of such a key.",
  }),
  openMax: key(integer(1, 1_000_000).default(50_000), {
    expects: "an integer 1 to 1000000",
    unit: "transactions",
    meaning: "Maximum number of open transactions. Further ones are refused with `overloaded`.",
  }),
  openPerAccountMax: key(integer(1, 1_000_000).default(10_000), {
    expects: "an integer 1 to 1000000",
    unit: "transactions",
    meaning:
      "Maximum number of open transactions per account, so that one account cannot " +
      "exhaust `openMax`.",
  }),
  checkThreads: key(integer(1, 64).default(2), {
    expects: "an integer 1 to 64",
    unit: "threads",
    meaning: "Threads that verify transaction signatures. One signature takes 50 to 100 µs.",
  }),
  checkQueueMax: key(integer(1, 65_536).default(2048), {
    expects: "an integer 1 to 65536",
    unit: "transactions",
    meaning:
      "Maximum number of transactions that wait for these threads. Further ones are " +
      "refused with `overloaded`.",
  }),
  fastPath: key(z.boolean().default(true), {
    expects: "true or false",
    meaning:
      "Sends transactions of repeated `sendTransaction` requests, and of QUIC connections, to partners without TLS " +
      "before JavaScript reads them (docs/fast-path.md).",
  }),
  warmUpSubmissions: key(integer(0, 100_000).default(4000), {
    expects: "an integer 0 to 100000",
    unit: "submissions",
    meaning:
      "Synthetic submissions at the start, so that the first transactions of customers take no " +
      "longer than later ones. They never leave the process. 0: none.",
  }),
  resendMs: key(integer(50, 600_000).default(2000), {
    expects: "an integer 50 to 600000",
    unit: "ms",
    meaning: "Interval at which a transaction that has not landed is sent again.",
  }),
  partnerUnitLamports: key(integer(0, 1_000_000).default(10), {
    expects: "an integer 0 to 1000000",
    unit: "lamports per compute unit",
    meaning: "Minimum priority fee of transactions to alternative partners.",
  }),
  readMethods: key(readMethods.prefault({}), {
    expects: "a mapping with the optional keys add and remove",
    meaning:
      "Changes to the list of read methods that are passed on to the node of `solana.rpc` " +
      "(docs/gateway.md has the default list).",
  }),
  denyLeaders: key(pubkeys(4096), {
    expects: pubkeysExpects(4096),
    meaning:
      "Identities of leaders that protected submissions avoid. A protected submission " +
      "waits while one of them is the current or next leader.",
  }),
  dontFrontPrefixes: key(
    z
      .array(z.string().regex(/^[1-9A-HJ-NP-Za-km-z]{4,32}$/))
      .max(16)
      .default(["jitodontfront", "dontbund1e"]),
    {
      expects: "a list of at most 16 texts of 4 to 32 base58 characters",
      meaning:
        "Prefixes of don't-front markers. A transaction with an account whose public key " +
        "begins with one of them must be the first of its bundle.",
    },
  ),
});

export const route = z.strictObject({
  name: key(name(), {
    expects: nameExpects("route name"),
    meaning: "Unique name of the route in timelines, metrics and logs.",
  }),
  kind: key(z.enum(["swqos", "block-builder", "scheduler", "alt-partner", "tpu"]), {
    expects: "swqos, block-builder, scheduler, alt-partner or tpu",
    meaning:
      "`swqos`: sendTransaction of a staked partner. `block-builder`: sendBundle and " +
      "sendTransaction of a block engine (`/api/v1/…`). `scheduler`: any HTTP service " +
      "that accepts transactions. `alt-partner`: the transaction ports of the leaders in " +
      "`leaders`, each in its own slots. `tpu`: the leaders' TPU ports over QUIC, with " +
      "the stake of the identity in `identityFile`.",
  }),
  url: key(parsed(parseHttpUrl).exactOptional(), {
    expects: "a URL of http or https",
    meaning: "URL of the partner. `--print-config` masks it, because it may contain a key.",
    absent: "only with `leaders`",
  }),
  leaders: key(z.record(parsed(parsePubkey), parsed(parseHttpUrl)).exactOptional(), {
    expects: "a mapping from identities in base58 to URLs of http or https",
    meaning: "For `alt-partner`: the URL of each leader's transaction port.",
    absent: "`url` applies to every leader",
  }),
  headers: key(
    z.record(z.string().regex(/^[A-Za-z0-9-]{1,64}$/), z.string().max(4096)).default({}),
    {
      expects: "a mapping from header names to texts",
      meaning:
        "Headers of every request, for example the partner's key. `--print-config` masks " +
        "them.",
    },
  ),
  format: key(z.enum(["json-rpc", "base64", "bytes"]).default("json-rpc"), {
    expects: "json-rpc, base64 or bytes",
    meaning:
      "For `scheduler`: format of the request body. `json-rpc`: a sendTransaction call; " +
      "`base64` and `bytes`: the transaction itself.",
  }),
  bundles: key(z.boolean().default(true), {
    expects: "true or false",
    meaning: "For `block-builder`: whether it accepts bundles.",
  }),
  transactions: key(z.boolean().default(true), {
    expects: "true or false",
    meaning: "Whether the partner accepts single transactions.",
  }),
  mevSafe: key(z.boolean().default(false), {
    expects: "true or false",
    meaning:
      "Whether the partner protects transactions against front-running. Submissions with " +
      "`mevProtect` use only such routes.",
  }),
  minimumTipLamports: key(lamports().default(0), {
    expects: "an integer 0 to 2^53 - 1",
    unit: "lamports",
    meaning: "Minimum tip of submissions on this route.",
  }),
  transactionBytesMax: key(integer(1, 4096).exactOptional(), {
    expects: "an integer 1 to 4096",
    unit: "bytes",
    meaning: "Maximum transaction size on this route.",
    absent: "1232 for a block builder, 4096 for all others",
  }),
  callsPerRequest: key(integer(1, 64).default(1), {
    expects: "an integer 1 to 64",
    unit: "calls",
    meaning:
      "With `json-rpc`: maximum number of queued calls in one JSON-RPC batch. Use 1 for " +
      "partners that do not support batches.",
  }),
  connections: key(integer(1, 256).default(8), {
    expects: "an integer 1 to 256",
    unit: "sockets",
    meaning: "Number of keep-alive connections. Each has at most one pending request.",
  }),
  queueMax: key(integer(1, 100_000).default(1024), {
    expects: "an integer 1 to 100000",
    unit: "transactions",
    meaning:
      "Maximum number of transactions that wait for a connection. A full queue accepts no " +
      "more.",
  }),
  identityFile: key(z.string().min(1).max(4096).exactOptional(), {
    expects: "a path, relative to the configuration file",
    meaning:
      "For `tpu`, and for `alt-partner` with `quicPorts`: key pair whose stake the leaders weigh, a JSON array " +
      "of 64 numbers, readable by its owner only. A changed file applies without a restart.",
    absent: "an ephemeral key pair without stake",
  }),
  connectAheadSlots: key(integer(0, 128).default(16), {
    expects: "an integer 0 to 128",
    unit: "slots",
    meaning:
      "For `tpu`: number of slots before a leader's window at which the route connects to " +
      "the leader.",
  }),
  fanout: key(integer(1, 8).default(2), {
    expects: "an integer 1 to 8",
    unit: "leaders",
    meaning:
      "For `tpu`: number of leaders that receive each transaction: the current leader, " +
      "and the following ones when its window ends.",
  }),
  quicAddresses: key(z.record(parsed(parsePubkey), parsed(parseEndpoint)).exactOptional(), {
    expects: "a mapping from identities in base58 to addresses and ports",
    meaning:
      "For `tpu`: addresses of the leaders' TPU ports, instead of those in the cluster's " +
      "gossip.",
    absent: "`tpuQuic` of the node's getClusterNodes",
  }),
  quicPorts: key(
    z
      .strictObject({
        plain: key(integer(1, 65_535), {
          expects: "a port",
          meaning: "Port for all transactions.",
        }),
        protected: key(integer(1, 65_535), {
          expects: "a port",
          meaning: "Port for transactions that must not land as failed.",
        }),
      })
      .exactOptional(),
    {
      expects: "a mapping with the keys plain and protected",
      meaning: "For `alt-partner`: QUIC ports of its leaders, at their TPU addresses.",
      absent: "the partner uses HTTP: `url` or `leaders`",
    },
  ),
  timeoutMs: key(integer(10, 60_000).default(2000), {
    expects: "an integer 10 to 60000",
    unit: "ms",
    meaning: "Time-out of one request, including the connection.",
  }),
});
