import { describe, expect, it } from "vitest";
import { readFacts, type SystemReader } from "../../../src/platform/doctor/facts.ts";

function reader(
  files: Record<string, string>,
  options: { folders?: Record<string, string[]>; tools?: Record<string, string> } = {},
): SystemReader {
  return {
    readText: (path) => files[path] ?? null,
    list: (path) => options.folders?.[path] ?? [],
    run: (command) => options.tools?.[command] ?? null,
  };
}

describe("readFacts", () => {
  it("returns unknown values on a machine without information, and does not fail", () => {
    expect(readFacts(reader({}))).toEqual({
      kernel: null,
      cpuCount: 1,
      isolatedCpus: null,
      governors: [],
      clockSource: null,
      clockSynchronized: null,
      rmemMax: null,
      wmemMax: null,
      netdevMaxBacklog: null,
      capNetAdmin: null,
      capBpf: null,
      capPerfmon: null,
      hasTun: false,
      bpfJit: null,
      openFilesMax: null,
      memoryAvailableBytes: null,
      hugePages: null,
      ipv6: false,
      nics: [],
      cpu: { siblings: [], nohzFull: null, idleStates: [], nodes: [], hasIrqBalance: false },
      workerCpus: {
        allowed: [],
        isolated: [],
        siblings: [],
        nearNic: [],
        pinned: [],
        hasQuota: false,
      },
      nic: { hasEthtool: false, details: [] },
      kernelPart: {
        busyPoll: null,
        softnet: null,
        udp: null,
        swappiness: null,
        lockedMemoryMax: null,
        clockOffsetSeconds: null,
      },
    });
  });

  it("reads the values of Linux", () => {
    const cpufreq = "/sys/devices/system/cpu/cpufreq";
    const facts = readFacts(
      reader(
        {
          "/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
          "/sys/devices/system/cpu/online": "0-7\n",
          "/sys/devices/system/cpu/isolated": "2-3,6\n",
          [`${cpufreq}/policy0/scaling_governor`]: "powersave\n",
          [`${cpufreq}/policy1/scaling_governor`]: "performance\n",
          "/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
          "/proc/sys/net/core/rmem_max": "212992\n",
          "/proc/sys/net/core/wmem_max": "4194304\n",
          "/proc/sys/net/core/netdev_max_backlog": "1000\n",
          "/proc/sys/net/core/bpf_jit_enable": "1\n",
          "/sys/class/net/eth0/tx_queue_len": "1000\n",
          "/proc/self/status": "Name:\tnode\nCapEff:\t0000000000001000\nSeccomp:\t0\n",
          "/proc/self/limits":
            "Limit  Soft  Hard\nMax open files            1024      4096    files\n",
          "/proc/meminfo": "MemTotal:  100 kB\nMemAvailable:    2048 kB\n",
          "/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
          "/proc/net/if_inet6": "00000000000000000000000000000001 01 80 10 80 lo\n",
        },
        {
          folders: {
            [cpufreq]: ["policy0", "policy1"],
            "/dev/net": ["tun"],
            "/sys/class/net": ["lo", "eth0", "veth1"],
            "/sys/class/net/eth0/device": ["driver", "vendor"],
            "/sys/class/net/veth1/queues": ["rx-0"],
            "/sys/class/net/eth0/queues": ["rx-0", "rx-1", "tx-0"],
          },
          tools: { timedatectl: "yes\n" },
        },
      ),
    );
    expect(facts).toMatchObject({
      kernel: "6.1.0-18-amd64",
      cpuCount: 8,
      isolatedCpus: "2-3,6",
      governors: ["performance", "powersave"],
      clockSource: "tsc",
      clockSynchronized: true,
      rmemMax: 212_992,
      wmemMax: 4_194_304,
      netdevMaxBacklog: 1000,
      capNetAdmin: true,
      capBpf: false,
      capPerfmon: false,
      hasTun: true,
      bpfJit: 1,
      openFilesMax: 1024,
      memoryAvailableBytes: 2_097_152,
      hugePages: "always",
      ipv6: true,
      nics: [{ name: "eth0", receiveQueues: 2, transmitQueueLength: 1000 }],
    });
  });

  it.each([
    ["0000008000000000", true, false],
    ["0000004000000000", false, true],
    ["0000000000200000", true, true],
    ["0000000000001000", false, false],
  ])(
    "derives from capabilities %s whether BPF programs may be loaded",
    (bits, capBpf, capPerfmon) => {
      const facts = readFacts(reader({ "/proc/self/status": `CapEff:\t${bits}\n` }));
      expect(facts).toMatchObject({ capBpf, capPerfmon });
    },
  );

  it("queries chrony before systemd", () => {
    const tracking = (leap: string) => `Reference ID : 0\nLeap status     : ${leap}\n`;
    const synchronized = (tools: Record<string, string>) =>
      readFacts(reader({}, { tools })).clockSynchronized;
    expect(synchronized({ chronyc: tracking("Normal"), timedatectl: "no\n" })).toBe(true);
    expect(synchronized({ chronyc: tracking("Not synchronised") })).toBe(false);
    expect(synchronized({ timedatectl: "no\n" })).toBe(false);
    expect(synchronized({ timedatectl: "\n" })).toBeNull();
  });
});
