// Configuration of the relay: its keys, with their ranges, units, defaults and meanings.
//
// A part of config-schema.ts.

import { z } from "zod";
import { parseAddress, parseAddressRange, parseEndpoint } from "../addresses/addresses.ts";
import { integer, key, name, nameExpects, parsed, parseEndpointOrPortZero } from "./schema-keys.ts";

/** Limits of the data plane (native/relay/source_table.h, fanout_table.h, relay.h). */
const configLimits = {
  workers: 64,
  tiers: 8,
  sources: 256,
  destinations: 4096,
  listenAddresses: 16,
} as const;

const bufferMin = 65_536;
// The kernel doubles the wish and counts in an int.
const bufferMax = 1_073_741_823;
const bufferExpects = `an integer ${bufferMin} to ${bufferMax}`;

const source = z.strictObject({
  name: key(name(), {
    expects: nameExpects("source name"),
    meaning: "Name of the source in counters, logs and the table of lead times. Each once.",
  }),
  address: key(parsed(parseAddressRange).exactOptional(), {
    expects: "an IP address or a CIDR range such as 192.0.2.0/24 or 2001:db8::/32",
    meaning:
      "Sender address or range. Where ranges overlap, the longest prefix wins. Packets from anybody " +
      "else are counted and dropped.",
    absent: "any address; then `port` must be given",
  }),
  port: key(integer(1, 65_535).exactOptional(), {
    expects: "an integer 1 to 65535 that is a port of relay.listen",
    meaning: "Own listening port that this source sends to.",
    absent: "any port of `relay.listen`",
  }),
  tier: key(name(), {
    expects: "a tier of relay.tiers",
    meaning: "Tier that this source feeds: its shreds go to this tier and to every wider one.",
  }),
});

const destination = z.strictObject({
  name: key(name().exactOptional(), {
    expects: nameExpects("destination name"),
    meaning: "Name of the destination in counters and logs. Each once.",
    absent: "its address",
  }),
  address: key(parsed(parseEndpoint), {
    expects: "an address and port such as 192.0.2.1:9000 or [2001:db8::1]:9000",
    meaning:
      "Where the shreds are sent. Each once. Never an address that the relay itself listens on; where " +
      "it listens on 0.0.0.0 or [::], that is every own address with the same port.",
  }),
  tier: key(name(), {
    expects: "a tier of relay.tiers",
    meaning: "Tier whose shreds this destination receives.",
  }),
  recovered: key(z.boolean().default(false), {
    expects: "true or false",
    meaning:
      "Experimental. Shreds that the relay could compute from 32 others of their FEC set are sent before " +
      "they come, and not again when they do. Needs `relay.deshred`. Counted apart.",
  }),
});

const receive = z.strictObject({
  bufferBytes: key(integer(bufferMin, bufferMax).default(67_108_864), {
    expects: bufferExpects,
    unit: "bytes",
    meaning:
      "Receive buffer asked for per socket. The kernel grants it whole only with CAP_NET_ADMIN or " +
      "when net.core.rmem_max allows; `shredway doctor` tells.",
  }),
  wait: key(z.enum(["block", "spin", "busy"]).default("block"), {
    expects: "block, spin or busy",
    meaning:
      "How a worker waits for packets: `block` sleeps in the kernel, `spin` polls for " +
      "spinMicroseconds first, `busy` never sleeps and needs a core of its own per worker.",
  }),
  spinMicroseconds: key(integer(1, 100_000).default(150), {
    expects: "an integer 1 to 100000",
    unit: "µs",
    meaning: "With `wait: spin`: how long to poll before sleeping.",
  }),
  busyPollMicroseconds: key(integer(0, 1_000_000).default(0), {
    expects: "an integer 0 to 1000000",
    unit: "µs",
    meaning: "SO_BUSY_POLL of the receive sockets: the kernel polls the network card; 0: off.",
  }),
});

const send = z.strictObject({
  source: key(parsed(parseAddress).exactOptional(), {
    expects: "an IP address such as 192.0.2.1 or 2001:db8::1",
    meaning: "Own address that shreds are sent from, to destinations of the same family.",
    absent: "the kernel chooses by route",
  }),
  bufferBytes: key(integer(bufferMin, bufferMax).default(16_777_216), {
    expects: bufferExpects,
    unit: "bytes",
    meaning: "Send buffer asked for per socket.",
  }),
  gso: key(z.boolean().default(true), {
    expects: "true or false",
    meaning:
      "Send several equal-sized shreds to a destination as one message (UDP GSO) where the kernel can.",
  }),
  ttl: key(integer(1, 255).default(64), {
    expects: "an integer 1 to 255",
    unit: "hops",
    meaning: "Time to live (IPv4) or hop limit (IPv6) of what is sent.",
  }),
  dscp: key(integer(0, 63).default(0), {
    expects: "an integer 0 to 63",
    meaning: "Differentiated services code point of what is sent, for networks that look at it.",
  }),
});

const transmitWays = z.enum(["socket", "clone", "auto"]);
const xdpRefused =
  "expected socket, clone or auto, got xdp: AF_XDP was measured and is not kept, for clones in the " +
  "kernel cost less and share the network card with everybody else; write clone";

const transmit = z.preprocess((value, context) => {
  if (value === "xdp") context.addIssue({ code: "custom", message: xdpRefused });
  return value;
}, transmitWays);

export const relay = z.strictObject({
  listen: key(
    z
      .preprocess(
        (value) => (typeof value === "string" ? [value] : value),
        z.array(parsed(parseEndpointOrPortZero)).min(1).max(configLimits.listenAddresses),
      )
      .default(["0.0.0.0:20000"]),
    {
      expects: `an address and port such as 0.0.0.0:20000 or [::]:20000, or a list of 1 to ${configLimits.listenAddresses}`,
      meaning:
        "Where shreds arrive; one address or a list. Every worker listens on each. Port 0 lets the " +
        "kernel choose and works with one worker only.",
    },
  ),
  workers: key(integer(1, configLimits.workers).default(1), {
    expects: `an integer 1 to ${configLimits.workers}`,
    unit: "threads",
    meaning: "Threads that receive, check and send. Each FEC set stays with one worker.",
  }),
  tiers: key(z.array(name()).min(1).max(configLimits.tiers).default(["tier-1", "tier-2"]), {
    expects: `a list of 1 to ${configLimits.tiers} tier names`,
    meaning:
      "Classes of sources, narrowest first. Destinations of a tier receive the shreds of its own " +
      "sources and of every tier before it.",
  }),
  authentication: key(z.enum(["leader-schedule", "off"]).default("leader-schedule"), {
    expects: "leader-schedule or off",
    meaning:
      "`leader-schedule`: only shreds that the slot's leader signed are remembered and passed on; " +
      "needs `leaders.file` or `solana.rpc`. `off`: everything that is formally a shred is passed on.",
  }),
  shredVersion: key(integer(1, 65_535), {
    expects: "an integer 1 to 65535",
    meaning:
      "Shred version of the cluster; others are dropped. It changes with hard forks; `shredVersion` of getClusterNodes tells it.",
  }),
  leaders: key(
    z
      .strictObject({
        file: key(z.string().min(1).max(4096), {
          expects: "a path, relative to the configuration file",
          meaning:
            '`{"firstSlot": N, "leaders": {"<base58 public key>": [0, 1, …]}}`, slots relative to ' +
            "firstSlot, as getLeaderSchedule answers them; at most 864,000 slots. Keys of small order are refused.",
        }),
      })
      .exactOptional(),
    {
      expects: "a mapping with the key file",
      meaning: "Who leads which slot.",
      absent: "from `solana.rpc`, which is asked again before each epoch",
    },
  ),
  sources: key(z.array(source).max(configLimits.sources).default([]), {
    expects: `a list of at most ${configLimits.sources} sources`,
    meaning: "Who may send shreds, and which tier they feed.",
  }),
  destinations: key(z.array(destination).max(configLimits.destinations).default([]), {
    expects: `a list of at most ${configLimits.destinations} destinations`,
    meaning: "Who receives the shreds of which tier.",
  }),
  allowPrivateDestinations: key(z.boolean().default(false), {
    expects: "true or false",
    meaning:
      "Allow destinations at private, loopback, link-local, multicast, broadcast and reserved addresses.",
  }),
  receive: key(receive.prefault({}), {
    expects: "a mapping",
    meaning: "How packets are taken from the kernel.",
  }),
  send: key(send.prefault({}), {
    expects: "a mapping",
    meaning: "How shreds are handed to the kernel.",
  }),
  transmit: key(transmit.default("socket"), {
    expects: "socket, clone or auto",
    meaning:
      "How shreds leave the machine. `socket`: through the network stack, one destination after the " +
      "other. `clone`: one send, cloned inside the kernel for every destination whose next hop is " +
      "known; needs CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and /dev/net/tun, and without them says so once and uses " +
      "sockets (docs/transmit.md). `auto`: the same, and `shredway doctor` finds nothing wrong with a " +
      "machine that has them not.",
  }),
  cpus: key(z.array(integer(0, 1023)).min(1).max(configLimits.workers).exactOptional(), {
    expects: "a list of CPU numbers 0 to 1023, as many as workers",
    meaning: "Worker i runs on cpus[i] only.",
    absent: "the kernel places the workers",
  }),
  deshred: key(z.boolean().default(true), {
    expects: "true or false",
    meaning:
      "Read entries and transactions from the shreds, on a thread beside the workers, so that " +
      "watched transactions are seen in the relay's own feed.",
  }),
  failedChecksPerSecond: key(integer(1, 1_000_000).default(1000), {
    expects: "an integer 1 to 1000000",
    unit: "checks/s",
    meaning:
      "Failed signature checks that each source may cause per worker while packets wait for it; " +
      "what it sends unverified beyond that is dropped unchecked until the next second.",
  }),
});
