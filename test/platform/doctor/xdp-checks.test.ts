import { describe, expect, it } from "vitest";
import type { Found } from "../../../src/platform/doctor/finding.ts";
import type { ConfiguredSettings } from "../../../src/platform/doctor/input.ts";
import { afXdp } from "../../../src/platform/doctor/xdp-checks.ts";
import { readXdpSupport, type XdpSupport } from "../../../src/relay/data-plane/native.ts";

function check(
  transmit: ConfiguredSettings["transmit"],
  support: XdpSupport[],
  refusal: string | null = null,
): Found {
  const interfaces = support.map((each, index) => ({ name: `eth${index}`, support: each }));
  return afXdp({
    configured: { transmit },
    probes: { xdp: { refusal, interfaces } },
  });
}

describe("afXdp", () => {
  it("says for each network card whether it sends without copies", () => {
    expect(check("auto", ["zero_copy", "copy", "unknown"])).toMatchObject({
      level: "ok",
      finding:
        "AF_XDP can be used: eth0 zero-copy, eth1 with copies only, eth2 unknown before Linux 6.3 (relay.transmit: auto)",
      remedy: null,
    });
    expect(check("socket", [])).toMatchObject({
      finding: "AF_XDP can be used: no network card (relay.transmit: socket)",
    });
  });

  it("says why this user cannot use it, which matters only if it is configured", () => {
    const refusal = "socket(AF_XDP): Operation not permitted; grant CAP_NET_RAW";
    expect(check("auto", ["copy"], refusal)).toMatchObject({
      level: "ok",
      finding: `AF_XDP cannot be used: ${refusal}\neth0 with copies only`,
    });
    expect(check("xdp", ["copy"], refusal)).toMatchObject({
      level: "fail",
      remedy: "in the systemd unit: the drop-in of docs/af-xdp.md",
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
    expect(interfaces[1]).toEqual({ name: "nothing0", support: "absent" });
  });
});
