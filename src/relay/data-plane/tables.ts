// Tables as bytes: published by the control plane, in the layouts of native/relay/*_table.h and
// native/shred/leader_table.h. The native side validates every byte again.

import { type Endpoint, parseAddressRange, parseEndpoint } from "../../core/addresses/addresses.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { LeaderSchedule } from "../leaders/schedule.ts";

/**
 * A source of packets, identified by its address, by the own port that it sends to, or by both. A
 * multicast address stands for a group with all its senders; then the port is the group's.
 */
export interface Source {
  readonly name: string;
  /** IP address or CIDR range; absent: any address (then `port` must be given). */
  readonly address?: string;
  /** Own listening port that this source sends to; absent: any. */
  readonly port?: number;
  readonly tier: string;
  /** false: for own use; shreds that only such sources delivered never leave. Default true. */
  readonly forward?: boolean;
}

/** A receiver of a tier. */
export interface Destination {
  readonly name?: string;
  /** "ip:port". */
  readonly address: string;
  readonly tier: string;
  /** Experimental: receives shreds that the relay recovered before the originals arrive. */
  readonly recovered?: boolean;
}

export interface GroupMembership {
  /** "ip:port"; the port is one of `RelayOptions.multicast`. */
  readonly group: string;
  readonly interfaceIndex: number;
  /** An IPv4 address of the interface; "0.0.0.0" for an IPv6 group. */
  readonly interfaceAddress: string;
}

const entryBytes = 24;
const headerBytes = 8;

function tierNumber(tier: string, tiers: readonly string[], kind: string, owner: string): number {
  const number = tiers.indexOf(tier);
  if (number < 0) {
    throw new ShredwayError(
      "unknown_tier",
      `${kind} ${owner}: expected a tier of ${tiers.join(", ")}, got ${tier}`,
    );
  }
  return number;
}

function startTable(magic: string, entries: number): { bytes: Uint8Array; view: DataView } {
  const bytes = new Uint8Array(headerBytes + entries * entryBytes);
  bytes.set(new TextEncoder().encode(magic));
  const view = new DataView(bytes.buffer);
  view.setUint32(4, entries, true);
  return { bytes, view };
}

/** `ids[i]` is the counter number of `sources[i]`. */
export function encodeSources(
  sources: readonly Source[],
  ids: readonly number[],
  tiers: readonly string[],
): Uint8Array {
  const { bytes, view } = startTable("SWS1", sources.length);
  sources.forEach((source, i) => {
    const at = headerBytes + i * entryBytes;
    const range = source.address === undefined ? undefined : parseAddressRange(source.address);
    if (!range && source.port === undefined) {
      throw new ShredwayError(
        "table_refused",
        `source ${source.name}: expected an address, a port or both, got neither`,
      );
    }
    view.setUint16(at, ids[i] ?? 0, true);
    view.setUint8(at + 2, tierNumber(source.tier, tiers, "source", source.name));
    view.setUint8(at + 3, range?.prefixBits ?? 0);
    view.setUint16(at + 4, source.port ?? 0, true);
    view.setUint8(at + 6, source.forward === false ? 1 : 0);
    if (range) bytes.set(range.bytes, at + 8);
  });
  return bytes;
}

/** `ids[i]` is the counter number of `destinations[i]`. */
export function encodeDestinations(
  destinations: readonly Destination[],
  ids: readonly number[],
  tiers: readonly string[],
  parse: (address: string) => Endpoint = parseEndpoint,
): Uint8Array {
  const { bytes, view } = startTable("SWF1", destinations.length);
  destinations.forEach((destination, i) => {
    const at = headerBytes + i * entryBytes;
    const endpoint = parse(destination.address);
    view.setUint32(at, ids[i] ?? 0, true);
    view.setUint8(at + 4, tierNumber(destination.tier, tiers, "destination", destination.address));
    view.setUint8(at + 5, destination.recovered === true ? 1 : 0);
    bytes.set(endpoint.bytes, at + 6);
    view.setUint16(at + 22, endpoint.port, true);
  });
  return bytes;
}

export function encodeLeaders(schedule: LeaderSchedule): Uint8Array {
  const { keys, leaderBySlot, firstSlot } = schedule;
  const keysBegin = 20;
  const slotsBegin = keysBegin + keys.length * 32;
  const bytes = new Uint8Array(slotsBegin + leaderBySlot.length * 4);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode("SWL1"));
  view.setUint32(4, keys.length, true);
  view.setBigUint64(8, firstSlot, true);
  view.setUint32(16, leaderBySlot.length, true);
  keys.forEach((key, i) => {
    bytes.set(key, keysBegin + i * 32);
  });
  leaderBySlot.forEach((key, i) => {
    view.setUint32(slotsBegin + i * 4, key, true);
  });
  return bytes;
}

/** The addon's format of one endpoint, 18 bytes. */
export function encodeEndpoint(text: string, options?: { allowPortZero?: boolean }): Uint8Array {
  const endpoint = parseEndpoint(text, options);
  const bytes = new Uint8Array(18);
  bytes.set(endpoint.bytes);
  new DataView(bytes.buffer).setUint16(16, endpoint.port, true);
  return bytes;
}
