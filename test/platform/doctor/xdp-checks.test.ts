import { describe, expect, it } from "vitest";
import type { Found } from "../../../src/platform/doctor/finding.ts";
import type { ConfiguredSettings } from "../../../src/platform/doctor/input.ts";
import { afXdp } from "../../../src/platform/doctor/xdp-checks.ts";
import type { XdpSupport } from "../../../src/relay/data-plane/native.ts";
import { readXdpSupport } from "../../../src/relay/data-plane/xdp-support.ts";

interface Refusals {
  refusal?: string;
  receiveRefusal?: string;
}

function check(
  transmit: ConfiguredSettings["transmit"],
  support: XdpSupport[],
  refusals: Refusals = {},
  receive: ConfiguredSettings["receive"] = "socket",
): Found {
  const interfaces = support.map((each, index) => ({
    name: `eth${index}`,
    support: each,
    receiveQueues: index + 1,
  }));
  const { refusal = null, receiveRefusal = null } = refusals;
  return afXdp({
    configured: { transmit, receive },
    probes: { xdp: { refusal, receiveRefusal, interfaces } },
  });
}

describe("afXdp", () => {
  it("says for each NIC whether it sends without copies", () => {
    expect(check("auto", ["zero_copy", "copy", "unknown"])).toMatchObject({
      level: "ok",
      finding:
        "AF_XDP can be used: eth0 zero-copy (1 receive queue), eth1 with copies only (2 receive queues), " +
        "eth2 unknown before Linux 6.3 (3 receive queues) (relay.transmit: auto, relay.receive.mode: socket)",
      remedy: null,
    });
    expect(check("socket", [])).toMatchObject({
      finding: "AF_XDP can be used: no NIC (relay.transmit: socket, relay.receive.mode: socket)",
    });
  });

  it("says why this user cannot use it, which matters only if it is configured", () => {
    const refusal = "socket(AF_XDP): Operation not permitted; grant CAP_NET_RAW";
    const remedy = "in the systemd unit: the drop-in of docs/af-xdp.md";
    expect(check("auto", ["copy"], { refusal })).toMatchObject({
      level: "ok",
      finding: `AF_XDP cannot be used: ${refusal}\neth0 with copies only (1 receive queue)`,
    });
    expect(check("xdp", ["copy"], { refusal })).toMatchObject({ level: "fail", remedy });
    expect(check("auto", ["copy"], { refusal }, "xdp")).toMatchObject({ level: "fail", remedy });
  });

  it("distinguishes what sending and receiving require", () => {
    const receiveRefusal =
      "bpf(BPF_MAP_CREATE): Operation not permitted; grant CAP_NET_ADMIN and CAP_BPF";
    const remedy = "in the systemd unit: the drop-in of docs/af-xdp.md";
    expect(check("auto", ["copy"], { receiveRefusal })).toMatchObject({
      level: "ok",
      finding: `AF_XDP can send, but not receive: ${receiveRefusal}\neth0 with copies only (1 receive queue)`,
    });
    expect(check("xdp", ["zero_copy"], { receiveRefusal }).level).toBe("ok");
    expect(check("xdp", ["zero_copy"], { receiveRefusal }, "xdp")).toMatchObject({
      level: "fail",
      remedy,
    });
    expect(check("auto", ["zero_copy"], {}, "xdp").level).toBe("ok");
    expect(check("auto", ["copy"], {}, "xdp")).toMatchObject({
      level: "warn",
      remedy: "compare with relay.receive.mode: socket",
    });
  });

  it.each([
    ["zero_copy", "ok", null],
    ["unknown", "ok", null],
    ["copy", "warn", "compare with relay.transmit: auto, which usually costs less than copies"],
    ["absent", "fail", "name existing interfaces in relay.xdpInterfaces: ip -br link"],
  ] as const)("judges a configured interface: %s", (support, level, remedy) => {
    expect(check("xdp", ["zero_copy", support])).toMatchObject({ level, remedy });
  });

  it("reads the machine's interfaces", () => {
    const { interfaces } = readXdpSupport(["lo", "nothing0"]);
    expect(interfaces[0]?.support).toMatch(/^(copy|unknown)$/);
    expect(interfaces[0]?.receiveQueues).toBe(1);
    expect(interfaces[1]).toEqual({ name: "nothing0", support: "absent", receiveQueues: 1 });
  });
});
