import { isIPv4, isIPv6 } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  classifyAddress,
  destinationRefusal,
} from "../../../src/core/addresses/address-classes.ts";
import {
  formatAddress,
  formatAddressRange,
  formatEndpoint,
  parseAddress,
  parseAddressRange,
  parseEndpoint,
} from "../../../src/core/addresses/addresses.ts";
import { ShredwayError } from "../../../src/core/errors.ts";

/** Whether the call throws ShredwayError "address_invalid", and no other error. */
function isRefused(call: () => unknown): boolean {
  try {
    call();
    return false;
  } catch (error) {
    if (error instanceof ShredwayError && error.reason === "address_invalid") return true;
    throw error;
  }
}

const addressBytes = fc.oneof(
  fc.uint8Array({ minLength: 16, maxLength: 16 }),
  // Many zero groups, so that "::" is exercised.
  fc
    .array(fc.constantFrom(0, 0, 1, 0xffff), { minLength: 8, maxLength: 8 })
    .map((groups) => Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]))),
  fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => {
    const mapped = new Uint8Array(16).fill(0xff, 10, 12);
    mapped.set(bytes, 12);
    return mapped;
  }),
);

// Characters of addresses: most texts are almost addresses.
const nearAddresses = fc.oneof(
  fc.string({ unit: fc.constantFrom(..."0123456789abcdefF:.:/[]%".split("")), maxLength: 50 }),
  addressBytes.map(formatAddress),
  fc.ipV4(),
  fc.ipV6(),
);

describe("addresses", () => {
  it("accepts exactly the addresses of node:net, except zones", () => {
    fc.assert(
      fc.property(nearAddresses, (text) => {
        const expected = isIPv4(text) || (isIPv6(text) && !text.includes("%"));
        expect(isRefused(() => parseAddress(text))).toBe(!expected);
      }),
      { numRuns: 5000 },
    );
  });

  it("formats IPv6 like the URL standard (RFC 5952)", () => {
    fc.assert(
      fc.property(addressBytes, (bytes) => {
        const text = formatAddress(bytes);
        if (text.includes(".")) return;
        expect(`[${text}]`).toBe(new URL(`http://[${text}]/`).hostname);
      }),
      { numRuns: 2000 },
    );
  });

  it("round-trips every address, range and endpoint", () => {
    fc.assert(
      fc.property(
        addressBytes,
        fc.nat(128),
        fc.integer({ min: 1, max: 65_535 }),
        (bytes, bits, port) => {
          expect(parseAddress(formatAddress(bytes))).toEqual(bytes);
          const endpoint = parseEndpoint(formatEndpoint({ bytes, port }));
          expect([endpoint.bytes, endpoint.port]).toEqual([bytes, port]);
          const cleared = bytes.map((byte, i) => {
            const keptBits = Math.min(Math.max(bits - i * 8, 0), 8);
            return byte & (0xff00 >> keptBits) & 0xff;
          });
          const isIpv4 = bits >= 96 && formatAddress(cleared).includes(".");
          const family = isIpv4 ? "ipv4" : "ipv6";
          const range = { bytes: cleared, prefixBits: bits, family } as const;
          expect(parseAddressRange(formatAddressRange(range))).toEqual(range);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it.each([
    "010.0.0.1",
    "1.2.3",
    "1.2.3.4.5",
    "256.0.0.1",
    "",
    " 1.2.3.4",
    "localhost",
    "1.2.3.4\n",
    ":::",
    "1::2::3",
    "1:2:3:4::5:6:7:8",
    "::1%eth0",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "::1.2.3",
    "12345::",
    "1.2.3.4::",
  ])("refuses %j", (text) => {
    expect(isRefused(() => parseAddress(text))).toBe(true);
  });

  it("treats IPv4-mapped spellings as IPv4", () => {
    expect(parseEndpoint("[::ffff:192.0.2.1]:5")).toEqual(parseEndpoint("192.0.2.1:5"));
    expect(parseAddressRange("::ffff:10.0.0.0/104")).toEqual(parseAddressRange("10.0.0.0/8"));
  });
});

describe("ranges", () => {
  it("counts IPv4 prefixes inside the mapped form", () => {
    expect(parseAddressRange("10.0.0.0/8")).toMatchObject({ prefixBits: 104, family: "ipv4" });
    expect(parseAddressRange("0.0.0.0/0")).toMatchObject({ prefixBits: 96, family: "ipv4" });
    expect(parseAddressRange("10.0.0.1")).toMatchObject({ prefixBits: 128, family: "ipv4" });
    expect(parseAddressRange("::/0")).toMatchObject({ prefixBits: 0, family: "ipv6" });
    expect(parseAddressRange("2001:db8::/32")).toMatchObject({ prefixBits: 32, family: "ipv6" });
  });

  it.each([
    "10.0.0.0/33",
    "10.0.0.0/08",
    "10.0.0.0/",
    "10.0.0.0/-1",
    "2001:db8::/129",
    "10.0.0.0/8/8",
  ])("refuses %j", (text) => {
    expect(isRefused(() => parseAddressRange(text))).toBe(true);
  });

  it("suggests the range if bits after the prefix are set", () => {
    expect(() => parseAddressRange("10.0.0.7/24")).toThrow("10.0.0.0/24");
    expect(() => parseAddressRange("2001:db8::1/32")).toThrow("2001:db8::/32");
  });
});

describe("endpoints", () => {
  it.each([
    "192.0.2.1",
    "192.0.2.1:",
    "192.0.2.1:0",
    "192.0.2.1:65536",
    "192.0.2.1:080",
    "2001:db8::1:80",
    "[192.0.2.1]:80",
    "[2001:db8::1]",
    "host:80",
    "[::1]:8 0",
    "[::1]:0",
  ])("refuses %j", (text) => {
    expect(isRefused(() => parseEndpoint(text))).toBe(true);
  });

  it("accepts port 0 only if allowed", () => {
    expect(parseEndpoint("0.0.0.0:0", { allowPortZero: true }).port).toBe(0);
    expect(isRefused(() => parseEndpoint("0.0.0.0:0"))).toBe(true);
  });
});

describe("classes", () => {
  it.each([
    ["8.8.8.8", "global"],
    ["0.0.0.0", "unspecified"],
    ["0.1.2.3", "reserved"],
    ["10.255.255.255", "private"],
    ["11.0.0.0", "global"],
    ["100.64.0.1", "shared"],
    ["100.128.0.0", "global"],
    ["127.0.0.1", "loopback"],
    ["169.254.1.1", "link-local"],
    ["172.15.255.255", "global"],
    ["172.31.255.255", "private"],
    ["192.168.0.1", "private"],
    ["192.0.2.10", "documentation"],
    ["198.19.0.1", "benchmarking"],
    ["224.0.0.1", "multicast"],
    ["240.0.0.1", "reserved"],
    ["255.255.255.255", "broadcast"],
    ["::", "unspecified"],
    ["::1", "loopback"],
    ["2606:4700::1", "global"],
    ["2001:db8::1", "documentation"],
    ["fd00::1", "private"],
    ["fe80::1", "link-local"],
    ["febf::1", "link-local"],
    ["ff02::1", "multicast"],
    ["::ffff:127.0.0.1", "loopback"],
    ["64:ff9b::10.0.0.1", "private"],
    ["64:ff9b::8.8.8.8", "global"],
    ["2002:7f00:1::", "loopback"],
  ])("%s is %s", (text, expected) => {
    expect(classifyAddress(parseAddress(text))).toBe(expected);
  });

  it("rejects local destinations unless they are allowed, and always the unspecified address", () => {
    const refusal = (text: string, allow: boolean) => destinationRefusal(parseAddress(text), allow);
    expect(refusal("192.0.2.10", false)).toBeUndefined();
    expect(refusal("10.0.0.1", false)).toBe("10.0.0.1 is an address of class private");
    expect(refusal("10.0.0.1", true)).toBeUndefined();
    expect(refusal("0.0.0.0", true)).toBe("0.0.0.0 is an address of class unspecified");
  });
});
