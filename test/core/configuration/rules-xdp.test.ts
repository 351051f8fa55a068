import { expect, it } from "vitest";
import { least, messageOf } from "./config-texts.ts";

it.each([
  [
    "AF_XDP without interfaces",
    "  transmit: xdp\n",
    /relay.xdpInterfaces: missing key; transmit: xdp expects the names of network interfaces/,
  ],
  [
    "interfaces without AF_XDP",
    "  xdpInterfaces: [eth1]\n",
    /relay.xdpInterfaces: unused with transmit: auto and receive.mode: socket; expected xdp for one of them, or no key/,
  ],
  [
    "receiving by AF_XDP without interfaces",
    "  receive: { mode: xdp }\n",
    /relay.xdpInterfaces: missing key; receive.mode: xdp expects the names of network interfaces/,
  ],
  [
    "an unknown way of receiving",
    "  receive: { mode: auto }\n",
    /relay.receive.mode: invalid value "auto"; expected socket or xdp/,
  ],
  [
    "an interface twice",
    "  transmit: xdp\n  xdpInterfaces: [eth1, eth2, eth1]\n",
    /relay.xdpInterfaces\[2\]: duplicate interface "eth1"; expected different interfaces/,
  ],
  [
    "a name that no interface can have",
    "  transmit: xdp\n  xdpInterfaces: [an-interface-with-a-long-name]\n",
    /relay.xdpInterfaces\[0\]: .*expected a list of 1 to 8 names of network interfaces/,
  ],
])("rejects %s", (_what, lines, message) => {
  expect(messageOf(`${least}${lines}`)).toMatch(message);
});

it("accepts the interfaces of AF_XDP", () => {
  expect(messageOf(`${least}  receive: { mode: xdp }\n  xdpInterfaces: [eth1]\n`)).toBe("accepted");
  expect(messageOf(`${least}  transmit: xdp\n  xdpInterfaces: [eth1, eth2]\n`)).toBe("accepted");
});
