// Sockets of transaction pushes: one for each address family, for sending only.
//
// Opened by transaction-pushes.ts. The kernel drops everything that arrives at their ports, so nobody can
// wake up this process there. A datagram that the kernel cannot take now waits in the queue of its socket.

import {
  type Endpoint,
  formatAddress,
  formatEndpoint,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { RareWarning } from "../../core/rare-warning.ts";
import {
  addressesOf,
  checkFamily,
  type FamilySockets,
  lacksIpv6,
} from "../data-plane/family-sockets.ts";
import { openUdpSocket } from "../data-plane/udp-socket.ts";

interface PushSenderOptions {
  /** Addresses of streams.push; port 0: the kernel chooses. */
  readonly from: string;
  readonly fromIpv6: string;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
}

/** One destination's part of a socket. */
export interface PushTarget {
  /**
   * Sends one datagram. Returns false if it waits in the queue. `done` is called once, later, with the
   * kernel's error or null.
   */
  send(datagram: Uint8Array, done: (error: Error | null) => void): boolean;
}

/** Requested; without a privilege, the kernel grants at most net.core.wmem_max. */
const sendBufferBytes = 4 << 20;
const warnEveryMs = 60_000;

export class PushSender {
  readonly #warning: RareWarning;
  readonly #sockets: FamilySockets = {};

  /** A machine without IPv6 works without it. Throws ShredwayError "system" or "config_invalid". */
  constructor({ from, fromIpv6, clock, log }: PushSenderOptions) {
    this.#warning = new RareWarning({ clock, log }, warnEveryMs);
    try {
      this.#open("from", parseEndpoint(from, { allowPortZero: true }));
      this.#open("fromIpv6", parseEndpoint(fromIpv6, { allowPortZero: true }));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Own addresses with the ports that the kernel chose. */
  get addresses(): string[] {
    return addressesOf(this.#sockets);
  }

  /** `address`: "ip:port". Throws ShredwayError "destination_refused". */
  to(address: string): PushTarget {
    const { bytes, port, family } = parseEndpoint(address);
    const socket = this.#sockets[family];
    if (!socket) {
      const problem = `destination ${address} cannot be reached: this machine has no ${family} address`;
      throw new ShredwayError("destination_refused", problem);
    }
    const host = formatAddress(bytes);
    return {
      send: (datagram, done) => {
        const waiting = socket.getSendQueueCount();
        socket.send(datagram, port, host, (error) => {
          if (error) this.#warn(address, error);
          done(error);
        });
        return socket.getSendQueueCount() <= waiting;
      },
    };
  }

  /** Drops what waits. Idempotent. */
  close(): void {
    for (const socket of Object.values(this.#sockets)) socket.close();
    delete this.#sockets.ipv4;
    delete this.#sockets.ipv6;
  }

  #open(key: "from" | "fromIpv6", endpoint: Endpoint): void {
    const host = formatAddress(endpoint.bytes);
    const text = formatEndpoint(endpoint);
    const isIpv6 = key === "fromIpv6";
    checkFamily(`streams.push.${key}`, endpoint, isIpv6 ? "ipv6" : "ipv4");
    try {
      const socket = openUdpSocket({
        host,
        port: endpoint.port,
        receives: false,
        sendBufferSize: sendBufferBytes,
        // Every address is a number, so that the kernel gets a datagram within `send`.
        lookup: (name, _options, found) => found(null, name, isIpv6 ? 6 : 4),
      });
      // An error event without a listener would end the process.
      socket.on("error", (error) => this.#warn(text, error));
      this.#sockets[endpoint.family] = socket;
    } catch (error) {
      if (lacksIpv6(endpoint, error)) return;
      const problem = `streams.push.${key}: cannot send from ${text}: ${messageOf(error)}`;
      throw new ShredwayError("system", problem, { cause: error });
    }
  }

  #warn(address: string, error: unknown): void {
    this.#warning.give(
      () => `streams: a transaction could not be sent to ${address}: ${messageOf(error)}`,
    );
  }
}
