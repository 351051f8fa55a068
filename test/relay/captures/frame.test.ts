import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatEndpoint } from "../../../src/core/addresses/addresses.ts";
import { skipReasons } from "../../../src/relay/captures/capture.ts";
import { datagramOf, linkTypes } from "../../../src/relay/captures/frame.ts";
import {
  be16,
  bytesOf,
  cooked,
  cooked2,
  ethernet,
  ipv4,
  ipv6,
  udp,
} from "../../support/network/frames.ts";

const payload = Uint8Array.of(1, 2, 3, 4, 5);
const v4 = ipv4(udp(payload));
const v6 = ipv6(udp(payload));

/** The payload in the frame, or the reason to skip it. */
function read(linkType: number, frame: Uint8Array): number[] | string {
  const result = datagramOf(linkType, frame);
  return typeof result === "string" ? result : [...result.payload];
}

describe("link types", () => {
  it.each([
    ["Ethernet", linkTypes.ethernet, ethernet(0x0800, v4)],
    ["Ethernet, IPv6", linkTypes.ethernet, ethernet(0x86dd, v6)],
    [
      "Ethernet with padding",
      linkTypes.ethernet,
      bytesOf(ethernet(0x0800, v4), new Uint8Array(20)),
    ],
    ["one VLAN tag", linkTypes.ethernet, ethernet(0x0800, v4, [0x8100])],
    ["two VLAN tags", linkTypes.ethernet, ethernet(0x86dd, v6, [0x88a8, 0x8100])],
    ["Linux cooked", linkTypes.cooked, cooked(0x0800, v4)],
    ["Linux cooked, IPv6", linkTypes.cooked, cooked(0x86dd, v6)],
    ["Linux cooked 2", linkTypes.cooked2, cooked2(0x0800, v4)],
    ["Linux cooked 2, IPv6", linkTypes.cooked2, cooked2(0x86dd, v6)],
    ["raw IP", linkTypes.raw, v4],
    ["raw IP, IPv6", linkTypes.raw, v6],
    ["raw IP as 12", linkTypes.raw12, v4],
    ["raw IP as 14", linkTypes.raw14, v6],
    ["raw IPv4", linkTypes.ipv4, v4],
    ["raw IPv6", linkTypes.ipv6, v6],
    ["loopback, little-endian", linkTypes.null, bytesOf(2, 0, 0, 0, v4)],
    ["loopback, big-endian", linkTypes.null, bytesOf(0, 0, 0, 30, v6)],
  ])("finds the payload in %s", (_name, linkType, frame) => {
    expect(read(linkType, frame)).toEqual([...payload]);
  });

  it("returns sender and receiver", () => {
    const result = datagramOf(linkTypes.raw, v4);
    if (typeof result === "string") return expect.fail(result);
    expect(formatEndpoint(result.source)).toBe("192.0.2.1:4000");
    expect(formatEndpoint(result.destination)).toBe("192.0.2.2:20000");
    const other = datagramOf(linkTypes.raw, v6);
    expect(typeof other === "string" ? other : formatEndpoint(other.destination)).toBe(
      "[2002:304:506:708:90a:b0c:d0e:f10]:20000",
    );
  });
});

describe("IP", () => {
  it.each([
    ["IPv4 options", ipv4(udp(payload), { options: 3 })],
    ["a total length of 0 (segmented by the card)", ipv4(udp(payload), { totalBytes: 0 })],
    ["hop-by-hop options", ipv6(bytesOf(17, 0, new Uint8Array(6), udp(payload)), 0)],
    ["destination options of 16 bytes", ipv6(bytesOf(17, 1, new Uint8Array(14), udp(payload)), 60)],
    ["authentication", ipv6(bytesOf(17, 4, new Uint8Array(22), udp(payload)), 51)],
    [
      "a fragment header of a whole packet",
      ipv6(bytesOf(17, 9, be16(0), new Uint8Array(4), udp(payload)), 44),
    ],
    [
      "routing, then options",
      ipv6(bytesOf(60, 0, new Uint8Array(6), 17, 0, new Uint8Array(6), udp(payload)), 43),
    ],
  ])("reads past %s", (_name, frame) => {
    expect(read(linkTypes.raw, frame)).toEqual([...payload]);
  });

  it.each([
    ["ARP", linkTypes.ethernet, ethernet(0x0806, new Uint8Array(28)), "not_ip"],
    [
      "five VLAN tags",
      linkTypes.ethernet,
      ethernet(0x0800, v4, [0x8100, 0x8100, 0x8100, 0x8100, 0x8100]),
      "not_ip",
    ],
    ["an unknown version", linkTypes.raw, Uint8Array.of(0x75), "not_ip"],
    ["TCP", linkTypes.raw, ipv4(udp(payload), { protocol: 6 }), "not_udp"],
    ["ICMPv6", linkTypes.raw, ipv6(udp(payload), 58), "not_udp"],
    ["a first fragment", linkTypes.raw, ipv4(udp(payload), { fragment: 0x2000 }), "fragment"],
    ["a later fragment", linkTypes.raw, ipv4(udp(payload), { fragment: 3 }), "fragment"],
    [
      "a first IPv6 fragment",
      linkTypes.raw,
      ipv6(bytesOf(17, 0, be16(1), new Uint8Array(4), udp(payload)), 44),
      "fragment",
    ],
    [
      "a later IPv6 fragment",
      linkTypes.raw,
      ipv6(bytesOf(17, 0, be16(8), new Uint8Array(4), udp(payload)), 44),
      "fragment",
    ],
    ["nothing", linkTypes.raw, new Uint8Array(0), "cut_off"],
    ["half an IPv4 header", linkTypes.raw, v4.subarray(0, 19), "cut_off"],
    ["half an IPv6 header", linkTypes.raw, v6.subarray(0, 39), "cut_off"],
    ["half a UDP header", linkTypes.raw, v4.subarray(0, 27), "cut_off"],
    ["a cut payload", linkTypes.raw, v4.subarray(0, v4.length - 1), "cut_off"],
    ["a cut Ethernet header", linkTypes.ethernet, ethernet(0x0800, v4).subarray(0, 13), "cut_off"],
    ["an IPv4 header of 16 bytes", linkTypes.raw, bytesOf(0x44, v4.subarray(1)), "malformed"],
    ["a UDP length below 8", linkTypes.raw, ipv4(udp(payload, 7)), "malformed"],
    [
      "nine extension headers",
      linkTypes.raw,
      ipv6(
        bytesOf(
          ...Array.from({ length: 9 }, (_, i) => bytesOf(i === 8 ? 17 : 60, 0, new Uint8Array(6))),
          udp(payload),
        ),
        60,
      ),
      "malformed",
    ],
    ["another link type", 147, v4, "unknown_link_type"],
  ])("skips %s", (_name, linkType, frame, reason) => {
    expect(read(linkType, frame)).toBe(reason);
  });

  it("never throws and never reads beyond the frame", () => {
    const kinds = fc.oneof(fc.constantFrom(...Object.values(linkTypes)), fc.nat(0xffff));
    const good = fc.constantFrom(
      v4,
      v6,
      ethernet(0x0800, v4, [0x8100]),
      cooked(0x86dd, v6),
      cooked2(0x0800, v4),
    );
    const corrupted = fc
      .tuple(good, fc.nat(80), fc.nat(255), fc.nat(120))
      .map(([frame, at, value, length]) =>
        frame.map((byte, i) => (i === at ? value : byte)).subarray(0, length),
      );
    fc.assert(
      fc.property(
        kinds,
        fc.oneof(fc.uint8Array({ maxLength: 120 }), corrupted),
        (linkType, frame) => {
          const result = datagramOf(linkType, frame);
          if (typeof result === "string") expect(skipReasons).toContain(result);
          else expect(result.payload.length).toBeLessThanOrEqual(frame.length);
        },
      ),
      { numRuns: 5000 },
    );
  });
});
