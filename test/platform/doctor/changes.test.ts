// Changes of `doctor --apply` on a machine in memory.

import { describe, expect, it } from "vitest";
import {
  applySettings,
  changesPath,
  revertChanges,
  type SettingFiles,
  settingsIn,
} from "../../../src/platform/doctor/changes.ts";
import { sysctl } from "../../../src/platform/doctor/kernel-checks.ts";

const backlog = "/proc/sys/net/core/netdev_max_backlog";
const queue = "/sys/class/net/eth0/tx_queue_len";

class Machine implements SettingFiles {
  readonly files = new Map([
    [backlog, "1000\n"],
    [queue, "500\n"],
  ]);
  readonly refused = new Set<string>();
  read(path: string): string | undefined {
    return this.files.get(path);
  }
  write(path: string, value: string): void {
    if (this.refused.has(path)) throw new Error("permission denied");
    this.files.set(path, value);
  }
  replace(path: string, text: string): void {
    this.write(path, text);
  }
}

describe("settingsIn", () => {
  it.each([
    [sysctl("net.core.netdev_max_backlog", 16_384), [{ path: backlog, value: "16384" }]],
    [
      "ip link set dev eth0 txqueuelen 10000 && ip link set dev eth1 txqueuelen 9",
      [
        { path: queue, value: "10000" },
        { path: "/sys/class/net/eth1/tx_queue_len", value: "9" },
      ],
    ],
    [
      "echo 2 > /sys/class/net/eth0/napi_defer_hard_irqs && echo 9 > /sys/class/net/eth0/gro_flush_timeout",
      [
        { path: "/sys/class/net/eth0/napi_defer_hard_irqs", value: "2" },
        { path: "/sys/class/net/eth0/gro_flush_timeout", value: "9" },
      ],
    ],
  ])("finds the settings of %s", (remedy, settings) => {
    expect(settingsIn(remedy)).toEqual(settings);
  });

  it.each([
    "echo 0 > /sys/devices/system/cpu/cpu6/online",
    "echo 2 > /sys/class/net/../../etc/passwd",
    "use Linux 5.10 or newer, or set relay.transmit: socket",
    "sysctl -w net.core.rmem_max=1|rm -r /",
  ])("leaves %s to people", (remedy) => {
    expect(settingsIn(remedy)).toEqual([]);
  });
});

describe("applySettings and revertChanges", () => {
  it("restore every value, also after two changes of one file", () => {
    const machine = new Machine();
    const before = new Map(machine.files);
    const settings = [
      { path: backlog, value: "16384" },
      { path: queue, value: "10000" },
    ];
    expect(applySettings(machine, settings)).toEqual([
      `changed  ${backlog}: 1000 → 16384`,
      `changed  ${queue}: 500 → 10000`,
    ]);
    expect(applySettings(machine, settings)).toEqual([
      `unchanged  ${backlog} is 16384`,
      `unchanged  ${queue} is 10000`,
    ]);
    applySettings(machine, [{ path: backlog, value: "20000" }]);
    expect(revertChanges(machine)).toHaveLength(3);
    for (const [path, value] of before) expect(machine.read(path)).toBe(value.trim());
    expect(revertChanges(machine)).toEqual([]);
  });

  it("keep what somebody else changed, and report refusals", () => {
    const machine = new Machine();
    applySettings(machine, [{ path: backlog, value: "16384" }]);
    machine.files.set(backlog, "5");
    expect(revertChanges(machine)).toEqual([`not reverted  ${backlog}: expected 16384, got 5`]);
    expect(machine.read(backlog)).toBe("5");
    machine.refused.add(queue);
    expect(applySettings(machine, [{ path: queue, value: "1" }])).toEqual([
      `not changed  ${queue}: permission denied`,
    ]);
    expect(applySettings(machine, [{ path: "/proc/sys/none", value: "1" }])).toEqual([
      "not changed  /proc/sys/none: it cannot be read",
    ]);
  });

  it("survive a record that was cut off", () => {
    const machine = new Machine();
    machine.files.set(changesPath, '[{"path"');
    expect(revertChanges(machine)).toEqual([]);
    expect(applySettings(machine, [{ path: queue, value: "1" }])[0]).toMatch(/^changed/);
  });
});
