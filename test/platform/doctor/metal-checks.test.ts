// The bare-metal checks: CPUs, NICs, losses in the kernel. Each fact in both states.

import { describe, expect, it } from "vitest";
import { checkMachine } from "../../../src/platform/doctor/checks.ts";
import type { CpuFacts } from "../../../src/platform/doctor/cpu-facts.ts";
import { readFacts, type SystemFacts } from "../../../src/platform/doctor/facts.ts";
import { levels } from "../../../src/platform/doctor/finding.ts";
import type { ConfiguredSettings, Probes } from "../../../src/platform/doctor/input.ts";
import type { KernelFacts } from "../../../src/platform/doctor/kernel-facts.ts";
import { measures } from "../../../src/platform/doctor/measures.ts";
import type { NicDetails } from "../../../src/platform/doctor/nic-facts.ts";

const blank = readFacts({ readText: () => null, list: () => [], run: () => null });
const configured: ConfiguredSettings = {
  workers: 2,
  cpus: [2, 3],
  placesWorkers: true,
  senderThreads: "auto",
  lockMemory: false,
  wait: "busy",
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
const probes: Probes = {
  grantedReceiveBufferBytes: 67_108_864,
  cloneRefusal: null,
  xdp: { refusal: null, receiveRefusal: null, interfaces: [] },
  priorityRefusal: null,
  memoryLockRefusal: null,
  addonError: null,
  ed25519: "libsodium",
  sha256Accelerated: true,
  kernelClock: null,
  nodeVersion: "22.14.0",
};
const healthyNic: NicDetails = {
  name: "eth0",
  driver: "ice",
  node: 0,
  interrupts: [
    { number: 40, cpus: [0] },
    { number: 41, cpus: [1] },
  ],
  rings: { receive: 4096, receiveMax: 4096, transmit: 4096, transmitMax: 4096 },
  queuesMax: 8,
  segmentsUdp: { isOn: true, isFixed: false },
  adaptiveCoalescing: false,
  coalescingUs: 0,
  received: 10_000_000,
  missed: 0,
  deferredInterrupts: 0,
  flushTimeoutNs: 0,
  steersInSoftware: false,
};

interface Change {
  cpu?: Partial<CpuFacts>;
  nic?: Partial<NicDetails>;
  kernel?: Partial<KernelFacts>;
  facts?: Partial<SystemFacts>;
  configured?: Partial<ConfiguredSettings>;
  probes?: Partial<Probes>;
}

function find(check: string, change: Change) {
  const facts: SystemFacts = {
    ...blank,
    kernel: "6.1.0",
    cpuCount: 4,
    cpu: { ...blank.cpu, ...change.cpu },
    nic: { hasEthtool: true, details: change.nic ? [{ ...healthyNic, ...change.nic }] : [] },
    kernelPart: { ...blank.kernelPart, ...change.kernel },
    ...change.facts,
  };
  const all = checkMachine(
    facts,
    { ...configured, ...change.configured },
    { ...probes, ...change.probes },
  );
  return all.find((finding) => finding.check === check);
}

const idle = (latencyUs: number, isDisabled = false) => [
  { name: "POLL", latencyUs: 0, isDisabled: false },
  { name: "C6", latencyUs, isDisabled },
];
const pinnedTo = (...threads: [cpu: number, pid: number, name: string][]) => ({
  facts: {
    workerCpus: {
      ...blank.workerCpus,
      allowed: [0, 1, 2, 3],
      pinned: threads.map(([cpu, pid, name]) => ({ cpu, pid, name })),
    },
  },
});
const twoNodes = [
  { node: 0, cpus: [0, 1] },
  { node: 1, cpus: [2, 3] },
];
const ring = (receive: number) => ({
  receive,
  receiveMax: 4096,
  transmit: 4096,
  transmitMax: 4096,
});
const clock = { synchronised: true, offsetNs: 0, estimatedErrorUs: 5000, maximumErrorUs: 9000 };

describe("bare-metal checks", () => {
  it.each<[string, Change, string, string | null]>([
    [
      "cpu-siblings",
      { cpu: { siblings: [[2, 6]] } },
      "warn",
      "echo 0 > /sys/devices/system/cpu/cpu6/online",
    ],
    [
      "cpu-siblings",
      { cpu: { siblings: [[2, 3]] }, configured: { wait: "block" } },
      "warn",
      "cpu3/online",
    ],
    ["cpu-siblings", { cpu: { siblings: [[2, 6]] }, configured: { wait: "block" } }, "ok", null],
    ["cpu-siblings", { cpu: { siblings: [[2, 6]] }, facts: { isolatedCpus: "2-3,6" } }, "ok", null],
    ["cpu-siblings", { cpu: { siblings: [[2, 6]] }, configured: { cpus: [] } }, "ok", null],
    ["worker-cpus", pinnedTo(), "ok", null],
    ["worker-cpus", pinnedTo([2, 7, "shredway-0"], [3, 7, "shredway-1"]), "ok", null],
    ["worker-cpus", pinnedTo([1, 9, "other"]), "ok", null],
    ["worker-cpus", pinnedTo([2, 9, "other"]), "warn", "set relay.cpus to other CPUs"],
    [
      "worker-cpus",
      { ...pinnedTo([1, 7, "shredway-0"], [1, 9, "other"]), configured: { cpus: [] } },
      "warn",
      "set relay.cpus to other CPUs",
    ],
    [
      "worker-cpus",
      { ...pinnedTo([1, 7, "shredway-0"], [1, 8, "shredway-0"]), configured: { cpus: [] } },
      "warn",
      "set relay.cpus to other CPUs",
    ],
    ["cpu-idle", { cpu: { idleStates: idle(133) } }, "warn", "[ $(cat $s/latency) -gt 10 ]"],
    ["cpu-idle", { cpu: { idleStates: idle(133, true) } }, "ok", null],
    ["cpu-idle", { cpu: { idleStates: idle(2) } }, "ok", null],
    ["cpu-ticks", { cpu: { nohzFull: "2" } }, "warn", "nohz_full=2,3"],
    ["cpu-ticks", { cpu: { nohzFull: "(null)" } }, "warn", "nohz_full=2,3"],
    ["cpu-ticks", { cpu: { nohzFull: "2-3" } }, "ok", null],
    ["cpu-ticks", { cpu: { nohzFull: "" }, configured: { wait: "spin" } }, "ok", null],
    ["cpu-node", { cpu: { nodes: twoNodes }, nic: {} }, "warn", "CPUs of node 0: 0, 1"],
    ["cpu-node", { cpu: { nodes: twoNodes }, nic: { node: 1 } }, "ok", null],
    ["cpu-node", { cpu: { nodes: twoNodes.slice(0, 1) }, nic: {} }, "ok", null],
    ["irq-balance", { cpu: { hasIrqBalance: true } }, "warn", "IRQBALANCE_BANNED_CPULIST=2,3"],
    ["irq-balance", { cpu: { hasIrqBalance: true }, configured: { cpus: [] } }, "ok", null],
    ["irq-balance", {}, "ok", null],
    [
      "ethtool",
      { facts: { nic: { hasEthtool: false, details: [healthyNic] } } },
      "warn",
      "apt-get install -y ethtool",
    ],
    ["ethtool", { nic: {} }, "ok", null],
    ["nic-rings", { nic: { rings: ring(512) } }, "warn", "ethtool -G eth0 rx 4096 tx 4096"],
    ["nic-rings", { nic: {} }, "ok", null],
    ["nic-rings", { nic: { rings: null } }, "ok", null],
    [
      "nic-interrupts",
      { nic: { interrupts: [{ number: 40, cpus: [2] }] } },
      "warn",
      "echo 0,1 > /proc/irq/40/smp_affinity_list",
    ],
    [
      "nic-interrupts",
      { nic: { interrupts: [{ number: 40, cpus: [2] }] }, configured: { wait: "block" } },
      "ok",
      null,
    ],
    ["nic-interrupts", { nic: {} }, "ok", null],
    [
      "nic-segmentation",
      { nic: { segmentsUdp: { isOn: false, isFixed: false } } },
      "warn",
      "ethtool -K eth0 tx-udp-segmentation on",
    ],
    ["nic-segmentation", { nic: { segmentsUdp: { isOn: false, isFixed: true } } }, "ok", null],
    ["nic-segmentation", { nic: {} }, "ok", null],
    ["nic-coalescing", { nic: { coalescingUs: 50 } }, "warn", "ethtool -C eth0 rx-usecs 8"],
    [
      "nic-coalescing",
      { nic: { adaptiveCoalescing: true } },
      "warn",
      "ethtool -C eth0 adaptive-rx off rx-usecs 8",
    ],
    ["nic-coalescing", { nic: {} }, "ok", null],
    ["nic-drops", { nic: { missed: 1000, rings: ring(512) } }, "warn", "ethtool -G eth0 rx 4096"],
    ["nic-drops", { nic: { missed: 1000 } }, "warn", "/proc/interrupts"],
    ["nic-drops", { nic: { missed: 5 } }, "ok", null],
    [
      "busy-poll",
      { kernel: { busyPoll: 0 }, configured: { wait: "block", busyPollMicroseconds: 50 } },
      "warn",
      "sysctl -w net.core.busy_poll=50",
    ],
    [
      "busy-poll",
      { kernel: { busyPoll: 50 }, configured: { wait: "block", busyPollMicroseconds: 50 } },
      "ok",
      null,
    ],
    ["busy-poll", { kernel: { busyPoll: 0 } }, "ok", null],
    [
      "softnet",
      { kernel: { softnet: { taken: 1e6, dropped: 3, squeezed: 0 } } },
      "warn",
      "netdev_max_backlog=16384",
    ],
    [
      "softnet",
      { kernel: { softnet: { taken: 1e6, dropped: 0, squeezed: 2000 } } },
      "warn",
      "netdev_budget=600",
    ],
    ["softnet", { kernel: { softnet: { taken: 1e6, dropped: 0, squeezed: 500 } } }, "ok", null],
    [
      "udp-drops",
      { kernel: { udp: { delivered: 1e6, bufferFull: 50 } } },
      "warn",
      "net.core.rmem_max=67108864",
    ],
    ["udp-drops", { kernel: { udp: { delivered: 1e6, bufferFull: 5 } } }, "ok", null],
    ["busy-poll-irqs", {}, "ok", null],
    [
      "busy-poll-irqs",
      { nic: {}, configured: { busyPollMicroseconds: 50 } },
      "warn",
      "echo 2 > /sys/class/net/eth0/napi_defer_hard_irqs && echo 200000 > /sys/class/net/eth0/gro_flush_timeout",
    ],
    [
      "busy-poll-irqs",
      {
        nic: { deferredInterrupts: 2, flushTimeoutNs: 200_000 },
        configured: { busyPollMicroseconds: 50 },
      },
      "ok",
      null,
    ],
    ["swap", { kernel: { swappiness: 60 } }, "warn", "vm.swappiness=1"],
    ["swap", { kernel: { swappiness: 1 } }, "ok", null],
    [
      "locked-memory",
      {
        facts: { kernel: "5.10.0" },
        kernel: { lockedMemoryMax: 65_536 },
        configured: { transmit: "clone" },
      },
      "warn",
      "LimitMEMLOCK=infinity",
    ],
    [
      "locked-memory",
      { kernel: { lockedMemoryMax: 65_536 }, configured: { transmit: "clone" } },
      "ok",
      null,
    ],
    [
      "locked-memory",
      {
        kernel: { lockedMemoryMax: 8 << 20 },
        configured: { transmit: "xdp", workers: 2, xdpInterfaces: ["eth0"] },
      },
      "warn",
      "LimitMEMLOCK=infinity",
    ],
    [
      "locked-memory",
      {
        kernel: { lockedMemoryMax: 24 << 20 },
        configured: { transmit: "xdp", workers: 2, xdpInterfaces: ["eth0"] },
      },
      "ok",
      null,
    ],
    ...(
      [
        [{ queuesMax: 4 }, "warn", "ethtool -L eth0 combined 2"],
        [{ queuesMax: 1 }, "warn", "eth0 has no more than 1; distribute its packets in the kernel"],
        [{ queuesMax: 1, steersInSoftware: true }, "ok", null],
        [{ queuesMax: null }, "warn", "ethtool -l eth0 (shows the maximum)"],
      ] as const
    ).map(
      ([nic, level, remedy]) =>
        [
          "receive-queues",
          {
            nic,
            configured: { workers: 2 },
            facts: { nics: [{ name: "eth0", receiveQueues: 1, transmitQueueLength: 1000 }] },
          },
          level,
          remedy,
        ] as [string, Change, string, string | null],
    ),
    ["clock-offset", { kernel: { clockOffsetSeconds: 0.02 } }, "warn", "/etc/chrony/chrony.conf"],
    ["clock-offset", { probes: { kernelClock: clock } }, "warn", "/etc/chrony/chrony.conf"],
    [
      "clock-offset",
      { probes: { kernelClock: { ...clock, synchronised: false } } },
      "warn",
      "chrony",
    ],
    ["clock-offset", { kernel: { clockOffsetSeconds: 0.000_1 } }, "ok", null],
    ["clock-sync", { probes: { kernelClock: clock } }, "ok", null],
    [
      "clock-sync",
      { probes: { kernelClock: { ...clock, synchronised: false } } },
      "warn",
      "chrony",
    ],
    ["node", { probes: { nodeVersion: "20.18.3" } }, "fail", "20.19"],
    ["node", { probes: { nodeVersion: "20.19.0" } }, "ok", null],
  ])("%s %o is %s", (check, change, level, remedy) => {
    const finding = find(check, change);
    expect(finding?.level).toBe(level);
    if (remedy === null) expect(finding?.remedy).toBeNull();
    else expect(finding?.remedy).toContain(remedy);
    expect(finding?.measure === null).toBe(level === "ok");
    expect(finding?.finding).not.toMatch(/undefined|null/);
  });
});

describe("bare-metal facts", () => {
  const ringText =
    "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t\t2048\nCurrent hardware settings:\nRX:\t\t512\nRX Mini:\tn/a\nTX:\t\t256\n";
  const files: Record<string, string> = {
    "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list": "0,2\n",
    "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list": "1\n",
    "/sys/devices/system/cpu/cpu2/topology/thread_siblings_list": "0,2\n",
    "/sys/devices/system/cpu/nohz_full": "2\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C1\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state1/latency": "133\n",
    "/sys/devices/system/cpu/cpu0/cpuidle/state1/disable": "1\n",
    "/sys/devices/system/node/node1/cpulist": "2-3\n",
    "/proc/77/comm": "irqbalance\n",
    "/proc/sys/net/core/busy_poll": "50\n",
    "/proc/sys/vm/swappiness": "60\n",
    "/proc/net/softnet_stat": "00000010 00000001 00000002 0\n0000000a 00000002 00000003 0\n",
    "/proc/net/snmp":
      "Ip: Forwarding\nIp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 500 1 2 3 7\nUdpLite: InDatagrams\nUdpLite: 0\n",
    "/proc/self/limits": "Limit Soft Hard\nMax locked memory         65536   65536   bytes\n",
    "/sys/class/net/eth0/device/uevent": "DRIVER=ice\nPCI_ID=1\n",
    "/sys/class/net/eth0/device/numa_node": "1\n",
    "/sys/class/net/eth0/napi_defer_hard_irqs": "2\n",
    "/sys/class/net/eth0/gro_flush_timeout": "200000\n",
    "/sys/class/net/eth0/statistics/rx_packets": "1000\n",
    "/sys/class/net/eth0/statistics/rx_missed_errors": "3\n",
    "/sys/class/net/eth0/statistics/rx_fifo_errors": "4\n",
    "/sys/class/net/eth0/queues/rx-0/rps_cpus": "00000003\n",
    "/proc/irq/40/smp_affinity_list": "0-3\n",
    "/proc/irq/40/effective_affinity_list": "2\n",
  };
  const folders: Record<string, string[]> = {
    "/sys/devices/system/cpu": ["cpu0", "cpu1", "cpu2", "cpufreq"],
    "/sys/devices/system/cpu/cpu0/cpuidle": ["state1"],
    "/sys/devices/system/node": ["node1", "possible"],
    "/proc": ["1", "77", "net"],
    "/sys/class/net": ["eth0"],
    "/sys/class/net/eth0/device": ["driver"],
    "/sys/class/net/eth0/queues": ["rx-0", "tx-0"],
    "/sys/class/net/eth0/device/msi_irqs": ["40"],
  };
  const tools: Record<string, string> = {
    "--version": "ethtool version 6.1\n",
    "-g": ringText,
    "-l": "Pre-set maximums:\nRX:\tn/a\nCombined:\t16\nCurrent hardware settings:\nCombined:\t4\n",
    "-c": "Adaptive RX: on  TX: off\nrx-usecs:\t50\nrx-frames:\tn/a\n",
    "-k": "Features for eth0:\ntx-udp-segmentation: off [fixed]\n",
    "-n": "System time     : 0.000123456 seconds slow of NTP time\nLeap status     : Normal\n",
  };
  const facts = readFacts({
    readText: (path) => files[path] ?? null,
    list: (path) => folders[path] ?? [],
    run: (_command, option = "") => tools[option] ?? null,
  });

  it("are read from Linux and its tools", () => {
    expect(facts.cpu).toEqual({
      siblings: [[0, 2]],
      nohzFull: "2",
      idleStates: [{ name: "C1", latencyUs: 133, isDisabled: true }],
      nodes: [{ node: 1, cpus: [2, 3] }],
      hasIrqBalance: true,
    });
    expect(facts.kernelPart).toEqual({
      busyPoll: 50,
      softnet: { taken: 26, dropped: 3, squeezed: 5 },
      udp: { delivered: 500, bufferFull: 7 },
      swappiness: 60,
      lockedMemoryMax: 65_536,
      clockOffsetSeconds: 0.000_123_456,
    });
    expect(facts.nic).toEqual({
      hasEthtool: true,
      details: [
        {
          name: "eth0",
          driver: "ice",
          node: 1,
          interrupts: [{ number: 40, cpus: [2] }],
          rings: { receive: 512, receiveMax: 4096, transmit: 256, transmitMax: 2048 },
          queuesMax: 16,
          segmentsUdp: { isOn: false, isFixed: true },
          adaptiveCoalescing: true,
          coalescingUs: 50,
          received: 1000,
          missed: 7,
          deferredInterrupts: 2,
          flushTimeoutNs: 200_000,
          steersInSoftware: true,
        },
      ],
    });
  });

  it("are read on this machine, and every warning states how to measure", async () => {
    const { systemReader } = await import("../../../src/platform/doctor/system.ts");
    const found = checkMachine(readFacts(systemReader), configured, probes);
    expect(found.length).toBeGreaterThan(30);
    expect(new Set(found.map(({ check }) => check)).size).toBe(found.length);
    for (const { check, level, measure } of found) {
      expect(levels).toContain(level);
      expect(Object.keys(measures)).toContain(check);
      expect(measure === null).toBe(level === "ok");
    }
  });
});

describe("the check of the workers' CPUs", () => {
  it.each<[Partial<ConfiguredSettings>, string]>([
    [{}, "relay: workers on CPU 2, 3 (relay.cpus), other threads on CPU 0-1"],
    [{ cpus: [] }, "relay: workers on CPU 1, 2 (cores of their own), other threads on CPU 0,3"],
    [{ cpus: [], placesWorkers: false }, "relay: the kernel places the workers (relay.cpus: none)"],
  ])("says where they run, a running service left out: %j", (change, text) => {
    const own = pinnedTo([1, 7, "shredway-0"], [2, 7, "shredway-1"]);
    expect(find("worker-cpus", { ...own, configured: change })?.finding).toBe(text);
  });

  it("names the programs that share a CPU", () => {
    const change = pinnedTo([2, 7, "shredway-0"], [2, 9, "solPohTick"]);
    expect(find("worker-cpus", change)?.finding).toContain(
      "CPU 2: shredway-0 of process 7, solPohTick of process 9",
    );
  });
});
