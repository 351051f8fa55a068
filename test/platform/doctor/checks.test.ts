import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { checkMachine } from "../../../src/platform/doctor/checks.ts";
import {
  checkConfiguration,
  configuredSettingsOf,
} from "../../../src/platform/doctor/config-checks.ts";
import type { SystemFacts } from "../../../src/platform/doctor/facts.ts";
import { countLevels, type Finding } from "../../../src/platform/doctor/finding.ts";
import type { ConfiguredSettings, Probes } from "../../../src/platform/doctor/input.ts";

const healthyFacts: SystemFacts = {
  kernel: "6.1.0",
  cpuCount: 8,
  isolatedCpus: "",
  governors: ["performance"],
  clockSource: "tsc",
  clockSynchronized: true,
  rmemMax: 67_108_864,
  wmemMax: 67_108_864,
  netdevMaxBacklog: 16_384,
  capNetAdmin: false,
  capBpf: false,
  capPerfmon: false,
  hasTun: true,
  bpfJit: 1,
  openFilesMax: 65_536,
  memoryAvailableBytes: 8 * 2 ** 30,
  hugePages: "madvise",
  ipv6: true,
  nics: [{ name: "eth0", receiveQueues: 8, transmitQueueLength: 1000 }],
  cpu: { siblings: [], nohzFull: "", idleStates: [], nodes: [], hasIrqBalance: false },
  workerCpus: {
    allowed: [0, 1, 2, 3, 4, 5, 6, 7],
    isolated: [],
    siblings: [],
    nearNic: [],
    pinned: [],
    hasQuota: false,
  },
  nic: { hasEthtool: true, details: [] },
  kernelPart: {
    busyPoll: 0,
    softnet: { taken: 1_000_000, dropped: 0, squeezed: 0 },
    udp: { delivered: 1_000_000, bufferFull: 0 },
    swappiness: 1,
    lockedMemoryMax: 8_388_608,
    clockOffsetSeconds: 0.000_02,
  },
};
const healthyWishes: ConfiguredSettings = {
  workers: 2,
  cpus: [],
  placesWorkers: true,
  senderThreads: "auto",
  lockMemory: false,
  wait: "block",
  busyPollMicroseconds: 0,
  receiveBufferBytes: 67_108_864,
  sendBufferBytes: 16_777_216,
  listenAddresses: 1,
  connectionsMax: 0,
  usesIpv6: false,
  transmit: "socket",
  receive: "socket",
  xdpInterfaces: [],
};
const healthyProbes: Probes = {
  grantedReceiveBufferBytes: 67_108_864,
  cloneRefusal: null,
  xdp: { refusal: null, receiveRefusal: null, interfaces: [] },
  priorityRefusal: null,
  memoryLockRefusal: null,
  addonError: null,
  ed25519: "libsodium",
  sha256Accelerated: true,
  kernelClock: null,
  nodeVersion: "20.19.0",
};

function find(
  check: string,
  change: {
    facts?: Partial<SystemFacts>;
    configured?: Partial<ConfiguredSettings>;
    probes?: Partial<Probes>;
  },
): Finding | undefined {
  return checkMachine(
    { ...healthyFacts, ...change.facts },
    { ...healthyWishes, ...change.configured },
    { ...healthyProbes, ...change.probes },
  ).find((finding) => finding.check === check);
}

describe("checkMachine", () => {
  it("reports no finding on a well-configured machine", () => {
    const findings = checkMachine(healthyFacts, healthyWishes, healthyProbes);
    expect(findings.filter(({ level }) => level !== "ok")).toEqual([]);
    expect(new Set(findings.map(({ check }) => check)).size).toBe(findings.length);
  });

  it.each([
    ["addon", { probes: { addonError: "cannot load" } }, "fail", "npm rebuild"],
    [
      "receive-buffer",
      { probes: { grantedReceiveBufferBytes: 8_388_608 } },
      "warn",
      "sysctl -w net.core.rmem_max=67108864",
    ],
    [
      "receive-buffer",
      { probes: { grantedReceiveBufferBytes: 212_992 } },
      "fail",
      "net.core.rmem_max",
    ],
    [
      "send-buffer",
      { facts: { wmemMax: 212_992 } },
      "warn",
      "sysctl -w net.core.wmem_max=16777216",
    ],
    [
      "backlog",
      { facts: { netdevMaxBacklog: 1000 } },
      "warn",
      "sysctl -w net.core.netdev_max_backlog=16384",
    ],
    ["cores", { facts: { cpuCount: 2 } }, "warn", "relay.workers to 1"],
    ["cores", { facts: { cpuCount: 1 } }, "fail", "relay.workers to 1"],
    ["cores", { configured: { cpus: [3, 8] } }, "fail", "below 8"],
    ["isolated-cpus", { configured: { wait: "busy" } }, "warn", "relay.cpus"],
    [
      "isolated-cpus",
      { configured: { wait: "busy", cpus: [2, 3] }, facts: { isolatedCpus: "2" } },
      "warn",
      "isolcpus=2,3",
    ],
    [
      "isolated-cpus",
      { configured: { wait: "busy", cpus: [2, 3] }, facts: { isolatedCpus: "2-3" } },
      "ok",
      null,
    ],
    ["cpu-governor", { facts: { governors: ["performance", "schedutil"] } }, "warn", "performance"],
    ["clock-source", { facts: { clockSource: "hpet" } }, "warn", "tsc"],
    ["clock-sync", { facts: { clockSynchronized: false } }, "warn", "chrony"],
    ["clock-sync", { facts: { clockSynchronized: null } }, "warn", "chrony"],
    [
      "capabilities",
      { configured: { busyPollMicroseconds: 50 } },
      "warn",
      "AmbientCapabilities=CAP_NET_ADMIN",
    ],
    ["ed25519", { probes: { ed25519: "openssl" } }, "warn", "libsodium"],
    ["ed25519", { probes: { ed25519: "none" } }, "fail", "libsodium"],
    ["sha256", { probes: { sha256Accelerated: false } }, "warn", "SHA-NI"],
    ["open-files", { facts: { openFilesMax: 255 } }, "fail", "ulimit -n"],
    ["open-files", { facts: { openFilesMax: 256 } }, "ok", null],
    [
      "open-files",
      { facts: { openFilesMax: 256 }, configured: { workers: 49 } },
      "fail",
      "ulimit -n",
    ],
    [
      "open-files",
      { facts: { openFilesMax: 10_255 }, configured: { connectionsMax: 10_000 } },
      "warn",
      "ulimit -n 65536 (in the systemd unit: LimitNOFILE=65536), or a smaller http.connectionsMax",
    ],
    [
      "open-files",
      { facts: { openFilesMax: 100_255 }, configured: { connectionsMax: 100_000 } },
      "warn",
      "ulimit -n 100256",
    ],
    [
      "open-files",
      { facts: { openFilesMax: 10_256 }, configured: { connectionsMax: 10_000 } },
      "ok",
      null,
    ],
    ["gso", { facts: { kernel: "4.17.9" } }, "warn", "4.18"],
    ["gso", { facts: { kernel: "4.18.0" } }, "ok", null],
    ["ipv6", { facts: { ipv6: false } }, "ok", null],
    ["ipv6", { facts: { ipv6: false }, configured: { usesIpv6: true } }, "fail", "disable_ipv6"],
    ["worker-priority", {}, "ok", null],
    [
      "worker-priority",
      { probes: { priorityRefusal: "Permission denied" } },
      "warn",
      "LimitNICE=-15",
    ],
    ["sender-threads", {}, "ok", null],
    ["sender-threads", { configured: { senderThreads: 2 } }, "ok", null],
    [
      "sender-threads",
      { configured: { senderThreads: 3 } },
      "warn",
      "set relay.senderThreads to auto, or give the machine more CPUs",
    ],
    ["sender-threads", { configured: { senderThreads: 3, transmit: "auto" } }, "ok", null],
    ["worker-memory", { probes: { memoryLockRefusal: "no memory" } }, "ok", null],
    ["worker-memory", { configured: { lockMemory: true } }, "ok", null],
    [
      "worker-memory",
      { configured: { lockMemory: true }, probes: { memoryLockRefusal: "no memory" } },
      "warn",
      "LimitMEMLOCK=infinity",
    ],
    ["huge-pages", { facts: { hugePages: "always" } }, "warn", "madvise"],
    ["memory", { facts: { memoryAvailableBytes: 2 ** 28 } }, "warn", "relay.workers"],
    [
      "receive-queues",
      { facts: { nics: [{ name: "eth0", receiveQueues: 1, transmitQueueLength: 1000 }] } },
      "warn",
      "ethtool -l eth0 (shows the maximum), then ethtool -L eth0 combined NUMBER, at most 2",
    ],
    ["transmit", { configured: { transmit: "clone" } }, "ok", null],
    [
      "transmit",
      { configured: { transmit: "clone" }, probes: { cloneRefusal: "bpf: not permitted" } },
      "warn",
      "AmbientCapabilities=CAP_NET_ADMIN CAP_BPF CAP_PERFMON (",
    ],
    [
      "transmit",
      {
        facts: { capNetAdmin: true },
        configured: { transmit: "clone" },
        probes: { cloneRefusal: "bpf: not permitted" },
      },
      "warn",
      "AmbientCapabilities=CAP_BPF CAP_PERFMON (",
    ],
    [
      "transmit",
      {
        facts: { capNetAdmin: true, capBpf: true, capPerfmon: true, hasTun: false },
        configured: { transmit: "clone" },
        probes: { cloneRefusal: "/dev/net/tun: no such file" },
      },
      "warn",
      "modprobe tun",
    ],
    [
      "transmit",
      {
        facts: { kernel: "5.9.16" },
        configured: { transmit: "clone" },
        probes: { cloneRefusal: "bpf: invalid argument" },
      },
      "warn",
      "5.10",
    ],
    [
      "transmit",
      { configured: { transmit: "auto" }, probes: { cloneRefusal: "bpf: not permitted" } },
      "ok",
      null,
    ],
    [
      "transmit",
      { facts: { bpfJit: 0 }, configured: { transmit: "clone" } },
      "warn",
      "bpf_jit_enable=1",
    ],
    [
      "transmit-queue",
      {
        facts: { nics: [{ name: "eth0", receiveQueues: 2, transmitQueueLength: 500 }] },
        configured: { transmit: "clone" },
      },
      "warn",
      "ip link set dev eth0 txqueuelen",
    ],
    [
      "transmit-queue",
      { facts: { nics: [{ name: "eth0", receiveQueues: 2, transmitQueueLength: 500 }] } },
      "ok",
      null,
    ],
  ] as const)("%s %o is %s", (check, change, level, remedy) => {
    const finding = find(check, change);
    expect(finding?.level).toBe(level);
    if (remedy === null) expect(finding?.remedy).toBeNull();
    else expect(finding?.remedy).toContain(remedy);
    expect(finding?.why).not.toBe("");
    expect(finding?.measure === null).toBe(level === "ok");
  });

  it("counts CAP_NET_ADMIN as raised limits", () => {
    const facts = { capNetAdmin: true, wmemMax: 212_992, rmemMax: 212_992 };
    expect(find("send-buffer", { facts })?.level).toBe("ok");
    expect(find("receive-buffer", { facts })?.level).toBe("ok");
  });

  it("reports nothing about libraries that could not be checked", () => {
    const probes = { addonError: "cannot load", ed25519: "none", grantedReceiveBufferBytes: null };
    expect(find("transmit", { probes })).toBeUndefined();
    expect(find("ed25519", { probes })).toBeUndefined();
    expect(find("sha256", { probes })).toBeUndefined();
    expect(find("receive-buffer", { probes, facts: { rmemMax: 212_992 } })?.level).toBe("fail");
  });
});

const configOf = (text: string) => parseConfig(`relay: { shredVersion: 1, ${text} }`, "test.yaml");
const relay = (text: string) => configOf(text).relay;
const good =
  'leaders: { file: leaders.json }, sources: [{ name: a, address: 10.0.0.1, tier: tier-1 }], destinations: [{ address: "8.8.8.8:9", tier: tier-1 }]';
const noFacts = { files: [], ports: [], leadersError: null, leadersCover: null };

describe("checkConfiguration", () => {
  it("reports no finding for a good configuration", () => {
    const facts = {
      files: [{ path: "a.yaml", mode: 0o644 }],
      ports: [
        { address: "0.0.0.0:20000", error: null, key: "relay.listen" },
        { address: "0.0.0.0:7000", error: null, key: "quic.listen" },
      ],
      leadersError: null,
      leadersCover: "the leader schedule covers slots 5 to 9",
    };
    const findings = checkConfiguration(relay(good), facts);
    expect(findings[0]?.finding).toContain("slots 5 to 9");
    const tables = findings.find(({ check }) => check === "tables");
    expect(tables?.finding).toBe("1 source, 1 destination");
    expect(countLevels(findings)).toEqual({ ok: 5, warn: 0, fail: 0 });
  });

  it("always reports that authentication is off", () => {
    const [finding] = checkConfiguration(relay("authentication: off"), noFacts);
    expect(finding?.level).toBe("warn");
    expect(finding?.finding).toContain("AUTHENTICATION IS OFF");
  });

  it("fails for an unreadable schedule, files writable by others, and ports in use", () => {
    const findings = checkConfiguration(relay(good), {
      files: [
        { path: "a.yaml", mode: 0o666 },
        { path: "gone.json", mode: null },
      ],
      ports: [
        { address: "[::]:20000", error: "bind EADDRINUSE", key: "relay.listen" },
        { address: "[::]:9000", error: "in use", key: "quic.protectedListen" },
        { address: "0.0.0.0:20001", error: "in use", key: "delivery.proof.listen" },
        { address: "192.0.2.1:0", error: "another machine's", key: "streams.push.from" },
        {
          address: "[2001:db8::1]:7000",
          error: "bind EADDRNOTAVAIL",
          key: "quic.listen",
          ownAddresses: [],
        },
      ],
      leadersError: "leaders.json: cannot be read",
      leadersCover: null,
    });
    expect(findings.map(({ check, level }) => `${check} ${level}`)).toEqual([
      "authentication fail",
      "file-mode fail",
      "file-mode warn",
      "listen fail",
      "listen fail",
      "listen fail",
      "listen fail",
      "listen fail",
      "tables ok",
    ]);
    expect(findings[1]?.remedy).toBe("chmod go-w a.yaml");
    expect(findings[3]).toMatchObject({
      why: "Shreds arrive here.",
      remedy: "ss -ulpn 'sport = :20000' (shows the process that uses it), or change relay.listen",
    });
    expect(findings[4]?.remedy).toContain("or change quic.protectedListen");
    expect(findings[5]).toMatchObject({
      why: expect.stringContaining("challenges"),
      remedy: expect.stringContaining("or change delivery.proof.listen"),
    });
    expect(findings[6]).toMatchObject({
      why: "Transaction pushes are sent from here.",
      remedy: "change streams.push.from",
    });
    expect(findings[7]).toMatchObject({
      finding: "[2001:db8::1]:7000: no interface of this machine has the address 2001:db8::1",
      remedy:
        "set quic.listen to an address of this machine: none of this family (ip -brief address lists them)",
    });
  });

  it("warns of empty tables", () => {
    expect(checkConfiguration(relay("authentication: off"), noFacts).at(-1)).toMatchObject({
      level: "warn",
      remedy: "add entries to relay.sources",
    });
  });

  it("derives the required settings from the configuration", () => {
    expect(
      configuredSettingsOf(configOf(`${good}, workers: 3, listen: "[::]:20000", cpus: [1, 2, 3]`)),
    ).toEqual({
      workers: 3,
      cpus: [1, 2, 3],
      placesWorkers: true,
      senderThreads: "auto",
      lockMemory: false,
      wait: "block",
      busyPollMicroseconds: 0,
      receiveBufferBytes: 67_108_864,
      sendBufferBytes: 16_777_216,
      listenAddresses: 1,
      connectionsMax: 0,
      usesIpv6: true,
      transmit: "auto",
      receive: "socket",
      xdpInterfaces: [],
    });
  });
});
