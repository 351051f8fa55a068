// Configuration of the relay: its keys, with their ranges, units, defaults and meanings.
//
// A part of schema.ts.

import { z } from "zod";
import { parseAddress, parseAddressRange, parseEndpoint } from "../addresses/addresses.ts";
import { parseGroup } from "../addresses/multicast-addresses.ts";
import { defaultGroupInterface, defaultGroupPort } from "./relay-sources.ts";
import { discovery } from "./schema-discovery.ts";
import { integer, key, name, nameExpects, parsed, parseEndpointOrPortZero } from "./schema-keys.ts";
import { shredstream } from "./schema-shredstream.ts";

/** Limits of the data plane (native/relay/source_table.h, fanout_table.h, relay.h, sender_threads.h; xdp/xdp_plane.h). */
const configLimits = {
  workers: 64,
  senderThreads: 15,
  tiers: 8,
  sources: 256,
  destinations: 4096,
  listenAddresses: 16,
  xdpInterfaces: 8,
  groups: 20, // per socket: net.ipv4.igmp_max_memberships
} as const;

const sourceKinds = ["udp", "shredstream", "multicast"] as const;

export const defaultTiers = ["tier-1", "tier-2"];

const interfacePattern = /^[^\s/:]{1,15}$/;

const bufferMin = 65_536;
// The kernel doubles the requested value and stores it in an int.
const bufferMax = 1_073_741_823;
const bufferExpects = `an integer ${bufferMin} to ${bufferMax}`;

const source = z.strictObject({
  name: key(name(), {
    expects: nameExpects("source name"),
    meaning: "Unique name of the source in metrics, logs and the table of lead times.",
  }),
  kind: key(z.enum(sourceKinds).exactOptional(), {
    expects: `one of ${sourceKinds.join(", ")}`,
    meaning:
      "How the shreds are obtained. `udp`: senders that the relay knows by address or port. " +
      "`shredstream`: the relay subscribes at a block engine (docs/sources.md). `multicast`: multicast " +
      "groups of an interface, for example DoubleZero's, with any number of senders (docs/multicast.md).",
    absent: "udp",
  }),
  shredstream: key(shredstream.exactOptional(), {
    expects: "a mapping with url, keyFile and regions",
    meaning: "The block engine of a source of kind `shredstream`.",
    absent: "the source has another kind",
  }),
  groups: key(z.array(parsed(parseGroup)).min(1).max(configLimits.groups).exactOptional(), {
    expects: `a list of 1 to ${configLimits.groups} multicast addresses such as 233.84.178.1 or ff0e::1`,
    meaning: "With `kind: multicast`: the groups of this source.",
    absent: "every group that has a route through the interface, except those of other sources",
  }),
  interface: key(z.string().regex(interfacePattern).exactOptional(), {
    expects: "a name of a network interface, at most 15 characters",
    meaning: "With `kind: multicast`: the interface on which the groups are joined.",
    absent: defaultGroupInterface,
  }),
  address: key(parsed(parseAddressRange).exactOptional(), {
    expects: "an IP address or a CIDR range such as 192.0.2.0/24 or 2001:db8::/32",
    meaning:
      "Sender address or range. If ranges overlap, the longest prefix applies. Packets " +
      "from all other addresses are counted and dropped.",
    absent: "any address; then `port` must be given, or `kind` is not `udp`",
  }),
  port: key(integer(1, 65_535).exactOptional(), {
    expects:
      "an integer 1 to 65535 that is a port of relay.listen, or with kind: multicast none of its ports",
    meaning:
      "Local port of `relay.listen` to which this source sends. With `kind: multicast`: the port of " +
      "its groups, which needs a restart if no group had it at the start.",
    absent: `any port of \`relay.listen\`; with \`kind: shredstream\` its only port; with \`kind: multicast\` ${defaultGroupPort}`,
  }),
  tier: key(name(), {
    expects: "a tier of relay.tiers",
    meaning: "Tier of this source. Its shreds go to this tier and to every wider one.",
  }),
  forward: key(z.boolean().exactOptional(), {
    expects: "true or false",
    meaning:
      "`false`: for own use only. Shreds that only such sources delivered are decoded, compared " +
      "and counted, but never leave to a destination. A shred that another source delivers too " +
      "leaves when that source delivers it, to the tiers of that source (docs/own-use.md).",
    absent:
      "true; false with `kind: multicast`, because DoubleZero's terms, section 2(e), forbid retransmission",
  }),
});

const destination = z.strictObject({
  name: key(name().exactOptional(), {
    expects: nameExpects("destination name"),
    meaning: "Unique name of the destination in metrics and logs.",
    absent: "its address",
  }),
  address: key(parsed(parseEndpoint), {
    expects: "an address and port such as 192.0.2.1:9000 or [2001:db8::1]:9000",
    meaning:
      "Unique address of the destination. It must not be an address of `relay.listen`. " +
      "With 0.0.0.0 or [::] there, no local address with the same port is permitted.",
  }),
  tier: key(name(), {
    expects: "a tier of relay.tiers",
    meaning: "Tier whose shreds this destination receives.",
  }),
  recovered: key(z.boolean().default(false), {
    expects: "true or false",
    meaning:
      "Experimental. Sends shreds that the relay recovered from 32 others of their FEC " +
      "set before they arrive, and does not send them again on arrival. Requires " +
      "`relay.deshred`. Counted separately.",
  }),
});

const receive = z.strictObject({
  mode: key(z.enum(["socket", "xdp"]).default("socket"), {
    expects: "socket or xdp",
    meaning:
      "How shreds arrive. `xdp`: by AF_XDP on xdpInterfaces, and by socket everywhere else. It takes all " +
      "receive queues, requires CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, and bypasses firewall rules; the " +
      "relay does not start without it (docs/af-xdp.md).",
  }),
  bufferBytes: key(integer(bufferMin, bufferMax).default(67_108_864), {
    expects: bufferExpects,
    unit: "bytes",
    meaning:
      "Requested receive buffer per socket. The kernel grants the full size only with " +
      "CAP_NET_ADMIN or a sufficient net.core.rmem_max. `shredway doctor` reports the " +
      "granted size.",
  }),
  wait: key(z.enum(["block", "spin", "busy"]).default("block"), {
    expects: "block, spin or busy",
    meaning:
      "How a worker waits for packets. `block` sleeps in the kernel, `spin` polls for " +
      "spinMicroseconds first, `busy` never sleeps and needs a dedicated core per worker.",
  }),
  spinMicroseconds: key(integer(1, 100_000).default(150), {
    expects: "an integer 1 to 100000",
    unit: "µs",
    meaning: "With `wait: spin`: polling time before the worker sleeps.",
  }),
  busyPollMicroseconds: key(integer(0, 1_000_000).default(0), {
    expects: "an integer 0 to 1000000",
    unit: "µs",
    meaning:
      "SO_BUSY_POLL and SO_PREFER_BUSY_POLL of the receive sockets: the kernel polls the NIC. " +
      "0 disables it.",
  }),
});

const send = z.strictObject({
  source: key(parsed(parseAddress).exactOptional(), {
    expects: "an IP address such as 192.0.2.1 or 2001:db8::1",
    meaning: "Local address that sends shreds, for destinations of the same address family.",
    absent: "the kernel chooses by route",
  }),
  bufferBytes: key(integer(bufferMin, bufferMax).default(16_777_216), {
    expects: bufferExpects,
    unit: "bytes",
    meaning: "Requested send buffer per socket.",
  }),
  gso: key(z.boolean().default(true), {
    expects: "true or false",
    meaning:
      "Sends several equal-sized shreds to a destination as one message (UDP GSO) if the " +
      "kernel supports it.",
  }),
  ttl: key(integer(1, 255).default(64), {
    expects: "an integer 1 to 255",
    unit: "hops",
    meaning: "Time to live (IPv4) or hop limit (IPv6) of sent shreds.",
  }),
  dscp: key(integer(0, 63).default(0), {
    expects: "an integer 0 to 63",
    meaning: "Differentiated services code point of sent shreds, for networks that use it.",
  }),
});

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
        "Addresses on which the relay receives shreds: one address or a list. Every worker " +
        "listens on each. [::] receives IPv6 only; list 0.0.0.0 too for IPv4. Port 0 lets the kernel choose " +
        "and requires a single worker.",
    },
  ),
  workers: key(integer(1, configLimits.workers).default(1), {
    expects: `an integer 1 to ${configLimits.workers}`,
    unit: "threads",
    meaning:
      "Threads that receive, verify and send shreds. One worker processes all shreds of a " +
      "FEC set.",
  }),
  tiers: key(z.array(name()).min(1).max(configLimits.tiers).default(defaultTiers), {
    expects: `a list of 1 to ${configLimits.tiers} tier names`,
    meaning:
      "Tiers, narrowest first. Destinations of a tier receive the shreds of its own " +
      "sources and of all narrower tiers.",
  }),
  authentication: key(z.enum(["leader-schedule", "off"]).default("leader-schedule"), {
    expects: "leader-schedule or off",
    meaning:
      "`leader-schedule`: the relay forwards only shreds that the slot's leader signed; " +
      "requires `leaders.file` or `solana.rpc`. `off`: the relay forwards every " +
      "well-formed shred.",
  }),
  shredVersion: key(integer(1, 65_535), {
    expects: "an integer 1 to 65535",
    meaning:
      "Shred version of the cluster. Shreds of other versions are dropped. It changes " +
      "with hard forks; see `shredVersion` of getClusterNodes.",
  }),
  leaders: key(
    z
      .strictObject({
        file: key(z.string().min(1).max(4096), {
          expects: "a path, relative to the configuration file",
          meaning:
            '`{"firstSlot": N, "leaders": {"<base58 public key>": [0, 1, …]}}` with slots ' +
            "relative to firstSlot, as in the result of getLeaderSchedule; at most 864,000 " +
            "slots. Public keys of small order are refused.",
        }),
      })
      .exactOptional(),
    {
      expects: "a mapping with the key file",
      meaning: "Leader schedule.",
      absent: "from `solana.rpc`, refreshed before each epoch",
    },
  ),
  sources: key(z.array(source).max(configLimits.sources).default([]), {
    expects: `a list of at most ${configLimits.sources} sources`,
    meaning: "Permitted senders of shreds, with their tiers.",
  }),
  destinations: key(z.array(destination).max(configLimits.destinations).default([]), {
    expects: `a list of at most ${configLimits.destinations} destinations`,
    meaning: "Receivers of shreds, with their tiers.",
  }),
  discovery: key(discovery.exactOptional(), {
    expects: "a mapping with url and tier",
    meaning:
      "Further destinations from a URL. If a request fails or an answer contains an invalid " +
      "address, the last good answer stays in force.",
    absent: "no destination is discovered",
  }),
  allowPrivateDestinations: key(z.boolean().default(false), {
    expects: "true or false",
    meaning:
      "Permits destinations at private, shared (100.64.0.0/10), loopback, link-local, multicast, " +
      "broadcast, benchmarking and reserved addresses.",
  }),
  receive: key(receive.prefault({}), {
    expects: "a mapping",
    meaning: "Options of the receive sockets.",
  }),
  send: key(send.prefault({}), {
    expects: "a mapping",
    meaning: "Options of the send sockets.",
  }),
  transmit: key(z.enum(["socket", "clone", "auto", "xdp"]).default("auto"), {
    expects: "socket, clone, auto or xdp",
    meaning:
      "Transmit mode. `socket`: the network stack sends to one destination after the " +
      "other. `clone`: the kernel clones one send for every destination whose next hop is " +
      "known. It requires CAP_NET_ADMIN, CAP_BPF, CAP_PERFMON and /dev/net/tun; without " +
      "them the relay warns once and uses sockets (docs/transmit.md). `auto`: clones where " +
      "the machine allows it and clones lose nothing and bypass no rule, otherwise sockets. `xdp`: whole " +
      "frames by AF_XDP to destinations behind xdpInterfaces. It requires CAP_NET_RAW, takes transmit queues " +
      "and bypasses firewall rules; the relay does not start without it.",
  }),
  xdpInterfaces: key(
    z
      .array(z.string().regex(interfacePattern))
      .min(1)
      .max(configLimits.xdpInterfaces)
      .exactOptional(),
    {
      expects: `a list of 1 to ${configLimits.xdpInterfaces} names of network interfaces`,
      meaning:
        "With `transmit: xdp` or `receive.mode: xdp`, and required there: network interfaces. To send, each " +
        "worker takes one transmit queue of each.",
      absent: "none",
    },
  ),
  cpus: key(
    z
      .union([z.literal("none"), z.array(integer(0, 1023)).min(1).max(configLimits.workers)])
      .exactOptional(),
    {
      expects: "a list of CPU numbers 0 to 1023, as many as workers, or none",
      meaning:
        "CPU affinity: worker i runs only on cpus[i], and the other threads stay away from these CPUs " +
        "if two others remain. `none`: the kernel places the workers.",
      absent:
        "each worker gets a core of its own if enough CPUs remain (docs/tuning.md), otherwise as `none`",
    },
  ),
  senderThreads: key(
    z.union([z.literal("auto"), integer(0, configLimits.senderThreads)]).default("auto"),
    {
      expects: `auto or an integer 0 to ${configLimits.senderThreads}`,
      unit: "threads",
      meaning:
        "Threads that help each worker to send by socket to many destinations. `auto`: up to two, as far " +
        "as CPUs remain beside the workers and two others. Off while clones are in use (docs/transmit.md).",
    },
  ),
  lockMemory: key(z.boolean().default(false), {
    expects: "true or false",
    meaning:
      "Keeps the memory of the workers in RAM: no page of it is swapped out, and no code of the packet " +
      "path is read from a disk again. It needs a sufficient limit of locked memory (LimitMEMLOCK=); " +
      "without it the relay warns once and locks nothing (docs/tuning.md).",
  }),
  deshred: key(z.boolean().default(true), {
    expects: "true or false",
    meaning:
      "Parses entries and transactions from the shreds on a separate thread, so that the " +
      "service observes landed transactions in its own feed.",
  }),
  failedChecksPerSecond: key(integer(1, 1_000_000).default(1000), {
    expects: "an integer 1 to 1000000",
    unit: "checks/s",
    meaning:
      "Applies to a source whose signature checks fail: the checks per worker for FEC sets " +
      "with a single shred until now. Its other unverified shreds wait up to 100 ms for a " +
      "second shred of their set, which causes a check.",
  }),
  keepRetransmitterSignatures: key(z.boolean().default(false), {
    expects: "true or false",
    meaning:
      "Forwards the last 64 bytes of resigned shreds as the first source sent them. Nobody " +
      "can verify these bytes. By default they are zero, as the leader sends them.",
  }),
});
