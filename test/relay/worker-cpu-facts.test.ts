import { describe, expect, it } from "vitest";
import {
  fileReader,
  readPinnedThreads,
  readWorkerCpuFacts,
} from "../../src/relay/worker-cpu-facts.ts";

const cpuFolder = "/sys/devices/system/cpu";
const status = (name: string, cpus: string, memory = "VmRSS:\t 100 kB\n") =>
  `Name:\t${name}\n${memory}Cpus_allowed:\tff\nCpus_allowed_list:\t${cpus}\nThreads:\t1\n`;

/** The folders follow from the files. */
function reader(files: Readonly<Record<string, string>>) {
  return {
    readText: (path: string) => files[path] ?? null,
    list: (path: string) => {
      const inside = Object.keys(files).filter((file) => file.startsWith(`${path}/`));
      return [...new Set(inside.map((file) => file.slice(path.length + 1).split("/")[0] ?? ""))];
    },
  };
}

function card(name: string, node: string, state = "up") {
  return {
    [`/sys/class/net/${name}/operstate`]: `${state}\n`,
    [`/sys/class/net/${name}/device/numa_node`]: `${node}\n`,
  };
}

const nodes = {
  "/sys/devices/system/node/node0/cpulist": "0-3\n",
  "/sys/devices/system/node/node1/cpulist": "4-7\n",
};

const factsOf = (files: Readonly<Record<string, string>>) => readWorkerCpuFacts(reader(files), 1);

describe("readWorkerCpuFacts", () => {
  it("returns nothing on a machine without information, and does not fail", () => {
    expect(factsOf({})).toEqual({
      allowed: [],
      isolated: [],
      siblings: [],
      nearNic: [],
      pinned: [],
      hasQuota: false,
    });
  });

  it("reads the values of Linux", () => {
    const facts = factsOf({
      "/proc/self/status": status("node", "0-3,8"),
      [`${cpuFolder}/isolated`]: "2-3\n",
      [`${cpuFolder}/cpu0/topology/thread_siblings_list`]: "0,2\n",
      [`${cpuFolder}/cpu1/topology/thread_siblings_list`]: "1,3\n",
      [`${cpuFolder}/cpu2/topology/thread_siblings_list`]: "0,2\n",
      [`${cpuFolder}/cpu3/topology/thread_siblings_list`]: "1,3\n",
      [`${cpuFolder}/cpu8/topology/thread_siblings_list`]: "8\n",
    });
    expect(facts.allowed).toEqual([0, 1, 2, 3, 8]);
    expect(facts.isolated).toEqual([2, 3]);
    expect(facts.siblings).toEqual([
      [0, 2],
      [1, 3],
    ]);
  });

  it.each([
    [{ ...card("eth0", "1") }, [4, 5, 6, 7]],
    [{ ...card("eth0", "1"), ...card("eth1", "0", "down") }, [4, 5, 6, 7]],
    [{ ...card("eth0", "1"), ...card("eth1", "0") }, []],
    [{ ...card("eth0", "-1") }, []],
    [{ "/sys/class/net/lo/operstate": "up\n" }, []],
  ])("knows the CPUs of the card's node if there is one (%#)", (cards, cpus) => {
    expect(factsOf({ ...nodes, ...cards }).nearNic).toEqual(cpus);
  });

  it.each([
    ["/sys/fs/cgroup/system.slice/a.service/cpu.max", "200000 100000\n", true],
    ["/sys/fs/cgroup/system.slice/cpu.max", "200000 100000\n", true],
    ["/sys/fs/cgroup/cpu.max", "200000 100000\n", true],
    ["/sys/fs/cgroup/system.slice/a.service/cpu.max", "max 100000\n", false],
    ["/sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n", false],
  ])("finds a limit of CPU time in this group and those above: %s %j", (file, text, expected) => {
    const group = { "/proc/self/cgroup": "1:name=x:/y\n0::/system.slice/a.service\n" };
    expect(factsOf({ ...group, [file]: text }).hasQuota).toBe(expected);
  });

  it("reads this machine", () => {
    const { allowed, siblings } = readWorkerCpuFacts(fileReader, process.pid);
    expect(allowed.length).toBeGreaterThan(0);
    expect(siblings.every((core) => core.some((cpu) => allowed.includes(cpu)))).toBe(true);
  });
});

describe("readPinnedThreads", () => {
  it("finds threads of other programs that may run on one CPU only", () => {
    const files = {
      "/proc/1/status": status("own", "0-3"),
      "/proc/1/task/2/status": status("shredway-0", "1"),
      "/proc/20/status": status("validator", "0-3"),
      "/proc/20/task/20/status": status("validator", "0-3"),
      "/proc/20/task/21/status": status("solPohTick", "2"),
      "/proc/30/status": status("ksoftirqd/3", "3", ""),
      "/proc/30/task/30/status": status("ksoftirqd/3", "3", ""),
      "/proc/uptime": "1 1",
    };
    expect(readPinnedThreads(reader(files), 1)).toEqual([{ cpu: 2, pid: 20, name: "solPohTick" }]);
  });

  it("reads a limited number of threads", () => {
    const threads = Array.from({ length: 20_010 }, (_, i) => `${i + 100}`);
    const many = {
      readText: () => status("other", "2"),
      list: (path: string) => (path === "/proc" ? ["20"] : threads),
    };
    expect(readPinnedThreads(many, 1).length).toBe(20_000);
  });
});
