// QUIC packets from forged addresses, sent beside a measurement: first packets of handshakes, or packets of
// connections that do not exist.
//
// The program is that of the tests (test/support/quic/initial-flood.cc). The packets come from many
// addresses of 127.0.0.0/8, so none leaves the machine.

import { closeSync } from "node:fs";
import { openUdpDescriptor } from "../../src/relay/data-plane/udp-socket.ts";
import { freeUdpPort } from "../../test/support/network/free-ports.ts";
import {
  buildInitialFlood,
  type FloodTotals,
  firstPackets,
  floodInitials,
  strayPackets,
} from "../../test/support/quic/initial-flood.ts";

export type ForgedKind = "first" | "stray";

export class ForgedPackets {
  readonly #program: string;
  readonly #first = firstPackets(500);
  readonly #stray = strayPackets(500);
  readonly #descriptor: number;
  /** UDP port of a socket on 127.0.0.1 that nobody reads. */
  readonly unreadPort: number;

  private constructor(program: string, unreadPort: number) {
    this.#program = program;
    this.unreadPort = unreadPort;
    this.#descriptor = openUdpDescriptor("127.0.0.1", unreadPort);
  }

  /** Builds the program in `folder`. */
  static async open(folder: string): Promise<ForgedPackets> {
    return new ForgedPackets(buildInitialFlood(folder), await freeUdpPort());
  }

  /** `port`: on 127.0.0.1. Settles after the last packet. */
  flood(plan: {
    readonly port: number;
    readonly seconds: number;
    readonly packetsPerSecond: number;
    readonly kind: ForgedKind;
  }): Promise<FloodTotals> {
    const { port, seconds, packetsPerSecond, kind } = plan;
    const count = Math.ceil(seconds * packetsPerSecond);
    const packets = kind === "first" ? this.#first : this.#stray;
    return floodInitials({ program: this.#program, port, count, packetsPerSecond, packets });
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}
