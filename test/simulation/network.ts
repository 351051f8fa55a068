// The simulated network card: datagrams to and from a simulated relay.

import type { NativeSimulatedRelay } from "../../src/relay/data-plane/native.ts";
import { encodeEndpoint } from "../../src/relay/data-plane/tables.ts";

/** The layout of native/addon/relay_handle_simulated.cc. */
const headerBytes = 46;
const fromAt = 8;
const toAt = 26;
const lengthAt = 44;
const takeBytes = 4 << 20;

export interface Arrival {
  readonly from: Uint8Array;
  readonly packet: Uint8Array;
}

export interface Sent {
  /** 18 bytes, as a text that identifies the destination. */
  readonly to: string;
  readonly packet: Uint8Array;
}

const into = new Uint8Array(takeBytes);
/** The arrivals of a step, which the relay copies. */
let given = new Uint8Array(1 << 18);

const keys = new Map<string, string>();

/** The identity of an address in `Sent`. */
export function addressKey(address: string): string {
  const known = keys.get(address);
  if (known !== undefined) return known;
  const key = Buffer.from(encodeEndpoint(address)).toString("latin1");
  keys.set(address, key);
  return key;
}

/** Delivers the datagrams to the listener, runs the relay once, and returns what it sent. */
export function stepRelay(
  handle: NativeSimulatedRelay,
  nowNs: bigint,
  listener: Uint8Array,
  arrivals: readonly Arrival[],
): Sent[] {
  let length = 0;
  for (const { packet } of arrivals) length += headerBytes + packet.length;
  if (length > given.length) given = new Uint8Array(2 * length);
  const view = new DataView(given.buffer);
  let at = 0;
  for (const { from, packet } of arrivals) {
    view.setBigUint64(at, nowNs, true);
    given.set(from, at + fromAt);
    given.set(listener, at + toAt);
    view.setUint16(at + lengthAt, packet.length, true);
    given.set(packet, at + headerBytes);
    at += headerBytes + packet.length;
  }
  handle.step(nowNs, given.subarray(0, length));
  return takeSent(handle);
}

function takeSent(handle: NativeSimulatedRelay): Sent[] {
  const sent: Sent[] = [];
  for (;;) {
    const length = handle.takeSent(into);
    if (length === 0) return sent;
    const bytes = into.slice(0, length);
    const view = new DataView(bytes.buffer);
    for (let at = 0; at < length; ) {
      const end = at + headerBytes + view.getUint16(at + lengthAt, true);
      const to = Buffer.from(bytes.buffer, at + toAt, lengthAt - toAt).toString("latin1");
      sent.push({ to, packet: bytes.subarray(at + headerBytes, end) });
      at = end;
    }
  }
}
