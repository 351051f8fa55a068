import { expect, it } from "vitest";
import { formatAddress, parseAddress } from "../../../src/core/addresses/addresses.ts";
import { callerOf, peerAddress } from "../../../src/core/addresses/caller.ts";

it("groups addresses: each IPv4 address and each IPv6 /64 is a caller", () => {
  const of = (text: string) => callerOf(parseAddress(text));
  expect(of("192.0.2.1")).toBe(of("::ffff:192.0.2.1"));
  expect(of("192.0.2.1")).not.toBe(of("192.0.2.2"));
  expect(of("2001:db8:0:1::1")).toBe(of("2001:db8:0:1:ffff::2"));
  expect(of("2001:db8:0:1::1")).not.toBe(of("2001:db8:0:2::1"));
  expect(of("::1")).not.toBe(of("0.0.0.1"));
});

it("reads the addresses that Node.js gives for the peer of a socket", () => {
  const read = (text: string) => formatAddress(peerAddress(text));
  expect(read("fe80::1%eth0")).toBe("fe80::1");
  expect(read("::ffff:192.0.2.1")).toBe("192.0.2.1");
  expect(() => peerAddress("%eth0")).toThrow(/expected an IP address/);
});
