// Addresses: IP addresses, ranges and endpoints as text and as bytes.
//
// Both families have one binary form, that of native/net/address.h: 16 bytes, IPv4 as ::ffff:a.b.c.d. The
// parser is strict: no host names, no leading zeros, no zones, because programs interpret these
// differently. Text forms: RFC 4291 (input), RFC 5952 (output).

import { quote, ShredwayError } from "../errors.ts";

export type AddressFamily = "ipv4" | "ipv6";

/** A range of addresses; a single one has 128 prefix bits. */
export interface AddressRange {
  /** 16 bytes; bits after the prefix are 0. */
  readonly bytes: Uint8Array;
  /** Length of the prefix in the 16 bytes, 0 to 128; an IPv4 /n has 96 + n. */
  readonly prefixBits: number;
  readonly family: AddressFamily;
}

/** An address and a port. */
export interface Endpoint {
  /** 16 bytes. */
  readonly bytes: Uint8Array;
  readonly port: number;
  readonly family: AddressFamily;
}

function refuse(expected: string, text: string): ShredwayError {
  return new ShredwayError("address_invalid", `invalid value ${quote(text)}; expected ${expected}`);
}

function parseIpv4Into(text: string, bytes: Uint8Array): boolean {
  const parts = text.split(".");
  if (parts.length !== 4) return false;
  for (const [i, part] of parts.entries()) {
    // "010" is 8 to some programs and 10 to others, so no leading zero.
    if (!/^(0|[1-9][0-9]{0,2})$/.test(part) || Number(part) > 255) return false;
    bytes[12 + i] = Number(part);
  }
  bytes[10] = 0xff;
  bytes[11] = 0xff;
  return true;
}

/** Groups on one side of "::" as 16-bit numbers; undefined: at least one of them is invalid. */
function parseGroups(text: string, mayEndInIpv4: boolean): number[] | undefined {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [i, part] of parts.entries()) {
    if (mayEndInIpv4 && i === parts.length - 1 && part.includes(".")) {
      const ipv4 = new Uint8Array(16);
      if (!parseIpv4Into(part, ipv4)) return undefined;
      groups.push(groupAt(ipv4, 6), groupAt(ipv4, 7));
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(part)) return undefined;
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups;
}

function groupAt(bytes: Uint8Array, group: number): number {
  return ((bytes[group * 2] ?? 0) << 8) | (bytes[group * 2 + 1] ?? 0);
}

function parseIpv6Into(text: string, bytes: Uint8Array): boolean {
  const sides = text.split("::");
  if (sides.length > 2) return false;
  const compressed = sides.length === 2;
  const head = parseGroups(sides[0] ?? "", !compressed);
  const tail = parseGroups(sides[1] ?? "", true);
  if (!head || !tail) return false;
  const missing = 8 - head.length - tail.length;
  // "::" stands for at least one group.
  if (compressed ? missing < 1 : missing !== 0) return false;
  const groups = [...head, ...Array.from({ length: missing }, () => 0), ...tail];
  for (const [i, group] of groups.entries()) {
    bytes[i * 2] = group >> 8;
    bytes[i * 2 + 1] = group & 0xff;
  }
  return true;
}

function parseBytes(text: string): Uint8Array | undefined {
  // The longest form is 45 characters: six groups and an IPv4 part.
  if (text.length > 45) return undefined;
  const bytes = new Uint8Array(16);
  const valid = text.includes(":") ? parseIpv6Into(text, bytes) : parseIpv4Into(text, bytes);
  return valid ? bytes : undefined;
}

/** An IPv4-mapped IPv6 address is treated as IPv4. */
export function familyOf(bytes: Uint8Array): AddressFamily {
  for (let i = 0; i < 10; i++) if (bytes[i] !== 0) return "ipv6";
  return bytes[10] === 0xff && bytes[11] === 0xff ? "ipv4" : "ipv6";
}

/** An IP address without port. Throws ShredwayError "address_invalid". */
export function parseAddress(text: string): Uint8Array {
  const bytes = parseBytes(text);
  if (!bytes) throw refuse("an IP address such as 192.0.2.1 or 2001:db8::1", text);
  return bytes;
}

function clearBehind(bytes: Uint8Array, prefixBits: number): Uint8Array {
  return bytes.map((byte, i) => byte & (0xff00 >> Math.min(Math.max(prefixBits - i * 8, 0), 8)));
}

/**
 * An IP address, or a CIDR range whose address has no bit set after the prefix. Throws ShredwayError
 * "address_invalid".
 */
export function parseAddressRange(text: string): AddressRange {
  const slash = text.indexOf("/");
  const expected = "an IP address or a range such as 192.0.2.0/24 or 2001:db8::/32";
  const addressText = slash < 0 ? text : text.slice(0, slash);
  const bytes = parseBytes(addressText);
  if (!bytes) throw refuse(expected, text);
  if (slash < 0) return { bytes, prefixBits: 128, family: familyOf(bytes) };

  const bitsText = text.slice(slash + 1);
  const base = addressText.includes(":") ? 0 : 96;
  const bits = Number(bitsText);
  if (!/^(0|[1-9][0-9]{0,2})$/.test(bitsText) || bits > 128 - base) {
    throw refuse(`${expected} with a prefix of 0 to ${128 - base} bits`, text);
  }
  const prefixBits = base + bits;
  const cleared = clearBehind(bytes, prefixBits);
  if (cleared.some((byte, i) => byte !== bytes[i])) {
    const meant = formatAddressRange({ bytes: cleared, prefixBits, family: familyOf(bytes) });
    throw refuse(`the first address of the range, ${meant}`, text);
  }
  // A shorter prefix of ::ffff:0:0 would cover both families, so it is not written as an IPv4 range.
  return { bytes, prefixBits, family: prefixBits >= 96 ? familyOf(bytes) : "ipv6" };
}

/** A hint for an IPv6 address and a port without brackets: such a text is ambiguous. */
function withBrackets(text: string): string {
  const [, address = "", port] = /^([0-9a-fA-F:.]*:[0-9a-fA-F:.]*):(\d{1,5})$/.exec(text) ?? [];
  return port !== undefined && parseBytes(address)
    ? `; an IPv6 address needs brackets: [${address}]:${port}`
    : "";
}

/**
 * "192.0.2.1:9000" or "[2001:db8::1]:9000". Port 0 only if allowed, for listeners: the kernel chooses
 * the port. Throws ShredwayError "address_invalid".
 */
export function parseEndpoint(text: string, options: { allowPortZero?: boolean } = {}): Endpoint {
  const portMin = options.allowPortZero ? 0 : 1;
  const expected = `an address and port such as 192.0.2.1:9000 or [2001:db8::1]:9000, port ${portMin} to 65535`;
  const match = /^(?:\[([^\]]*:[^\]]*)\]|([^:[\]]+)):(0|[1-9][0-9]{0,4})$/.exec(text);
  const bytes = match ? parseBytes(match[1] ?? match[2] ?? "") : undefined;
  const port = Number(match?.[3]);
  if (!bytes || port < portMin || port > 65_535) {
    throw refuse(expected + withBrackets(text), text);
  }
  return { bytes, port, family: familyOf(bytes) };
}

/** The endpoint of an IP address with port 0, in the form of formatEndpoint. Throws like parseAddress. */
export function withPortZero(address: string): string {
  return formatEndpoint({ bytes: parseAddress(address), port: 0 });
}

function formatIpv4(bytes: Uint8Array): string {
  return bytes.subarray(12, 16).join(".");
}

function formatIpv6(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, i) => groupAt(bytes, i));
  let longest = { begin: 0, length: 0 };
  for (let begin = 0; begin < 8; begin++) {
    let length = 0;
    while (begin + length < 8 && groups[begin + length] === 0) length++;
    if (length > longest.length) longest = { begin, length };
  }
  const text = (part: number[]): string => part.map((group) => group.toString(16)).join(":");
  // A single zero group is not shortened (RFC 5952, 4.2.2).
  if (longest.length < 2) return text(groups);
  const tail = groups.slice(longest.begin + longest.length);
  return `${text(groups.slice(0, longest.begin))}::${text(tail)}`;
}

/** Canonical text of an address (16 bytes). */
export function formatAddress(bytes: Uint8Array): string {
  return familyOf(bytes) === "ipv4" ? formatIpv4(bytes) : formatIpv6(bytes);
}

/** Whether the range holds the address, 16 bytes. */
export function isInRange(address: Uint8Array, { bytes, prefixBits }: AddressRange): boolean {
  const whole = prefixBits >> 3;
  for (let i = 0; i < whole; i++) if (address[i] !== bytes[i]) return false;
  const mask = (0xff00 >> (prefixBits & 7)) & 0xff;
  return ((address[whole] ?? 0) & mask) === ((bytes[whole] ?? 0) & mask);
}

/** "192.0.2.0/24"; a single address without prefix. */
export function formatAddressRange(range: AddressRange): string {
  if (range.prefixBits === 128) return formatAddress(range.bytes);
  return range.family === "ipv4" && range.prefixBits >= 96
    ? `${formatIpv4(range.bytes)}/${range.prefixBits - 96}`
    : `${formatIpv6(range.bytes)}/${range.prefixBits}`;
}

/** "192.0.2.1:9000", "[2001:db8::1]:9000". */
export function formatEndpoint(endpoint: Pick<Endpoint, "bytes" | "port">): string {
  const address = formatAddress(endpoint.bytes);
  return familyOf(endpoint.bytes) === "ipv4"
    ? `${address}:${endpoint.port}`
    : `[${address}]:${endpoint.port}`;
}
