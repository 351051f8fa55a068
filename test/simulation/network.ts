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

/** The identity of an address in `Sent`. */
export function addressKey(address: string): string {
  return Buffer.from(encodeEndpoint(address)).toString("latin1");
}

/** Delivers the datagrams to the listener, runs the relay once, and returns what it sent. */
export function stepRelay(
  handle: NativeSimulatedRelay,
  nowNs: bigint,
  listener: Uint8Array,
  arrivals: readonly Arrival[],
): Sent[] {
  const length = arrivals.reduce((sum, { packet }) => sum + headerBytes + packet.length, 0);
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const { from, packet } of arrivals) {
    view.setBigUint64(at, nowNs, true);
    bytes.set(from, at + fromAt);
    bytes.set(listener, at + toAt);
    view.setUint16(at + lengthAt, packet.length, true);
    bytes.set(packet, at + headerBytes);
    at += headerBytes + packet.length;
  }
  handle.step(nowNs, bytes);
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
