// Challenge sockets: send challenges and receive their answers.
//
// Opened by the service for delivery.proof; ownership-proof.ts contains the rules. One socket per
// address family. Received datagrams are untrusted: those that cannot be answers are dropped by length
// and mark, and only a bounded number of the others is processed per second. The sockets never reply.

import type { RemoteInfo } from "node:dgram";
import {
  type Endpoint,
  formatAddress,
  formatEndpoint,
  parseAddress,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { codeOf, messageOf, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { RareWarning } from "../../core/rare-warning.ts";
import {
  addressesOf,
  checkFamily,
  type FamilySockets,
  lacksIpv6,
} from "../../relay/data-plane/family-sockets.ts";
import { openUdpSocket } from "../../relay/data-plane/udp-socket.ts";
import { isProofShaped } from "./ownership-proof.ts";

export interface ChallengeSocketOptions {
  /** Addresses of delivery.proof.listen and listenIpv6; port 0: the kernel chooses. */
  readonly listen: string;
  readonly listenIpv6: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether a challenge is open at that address, in the form of formatEndpoint. */
  readonly isAwaited: (from: string) => boolean;
  /** `from` in the form of formatEndpoint. Must not throw. */
  readonly onMessage: (from: string, datagram: Uint8Array) => void;
}

/** Kernel buffer: some hundred datagrams. */
const receiveBufferBytes = 256 * 1024;
/**
 * Processed datagrams per second in total: enough for answers of a thousand destinations, without
 * spending a core on a flood.
 */
export const inboundPerSecond = 1_000;
const secondNs = 1_000_000_000n;
const warnEveryMs = 60_000;

export class ChallengeSocket {
  readonly #options: ChallengeSocketOptions;
  /** At most one line a minute. */
  readonly #warning: RareWarning;
  readonly #sockets: FamilySockets = {};
  #secondEndsNs = 0n;
  #leftInSecond = 0;
  #dropped = 0;
  #failed = 0;

  /**
   * A machine without IPv6 works without it, and so does an unspecified `listenIpv6`. Rejects with
   * ShredwayError "system" if an address is not available.
   */
  static async open(options: ChallengeSocketOptions): Promise<ChallengeSocket> {
    const opened = new ChallengeSocket(options);
    try {
      opened.#open("listen", parseEndpoint(options.listen, { allowPortZero: true }));
      opened.#open("listenIpv6", parseEndpoint(options.listenIpv6, { allowPortZero: true }));
    } catch (error) {
      await opened.close();
      throw error;
    }
    return opened;
  }

  private constructor(options: ChallengeSocketOptions) {
    this.#options = options;
    this.#warning = new RareWarning(options, warnEveryMs);
  }

  /** Own addresses with the ports that the kernel chose; they may not be destinations. */
  get addresses(): string[] {
    return addressesOf(this.#sockets);
  }

  /** Unprocessed datagrams and failed sends. */
  get counts(): { readonly dropped: number; readonly failed: number } {
    return { dropped: this.#dropped, failed: this.#failed };
  }

  /** Never throws: a lost challenge is sent again or requested again. */
  send(address: string, datagram: Uint8Array): void {
    try {
      const { bytes, port, family } = parseEndpoint(address);
      const socket = this.#sockets[family];
      if (!socket) throw new Error(`this machine has no ${family} address`);
      socket.send(datagram, port, formatAddress(bytes), (error) => {
        if (error) this.#fail(address, error);
      });
    } catch (error) {
      this.#fail(address, error);
    }
  }

  /** Settles when the sockets are closed. Idempotent. */
  async close(): Promise<void> {
    const sockets = Object.values(this.#sockets);
    delete this.#sockets.ipv4;
    delete this.#sockets.ipv6;
    await Promise.all(
      sockets.map((socket) => new Promise<void>((resolve) => socket.close(() => resolve()))),
    );
  }

  #open(key: "listen" | "listenIpv6", endpoint: Endpoint): void {
    const text = formatEndpoint(endpoint);
    const isIpv6 = key === "listenIpv6";
    checkFamily(`delivery.proof.${key}`, endpoint, isIpv6 ? "ipv6" : "ipv4");
    try {
      const socket = openUdpSocket({
        host: formatAddress(endpoint.bytes),
        port: endpoint.port,
        recvBufferSize: receiveBufferBytes,
      });
      // An error event without a listener would end the process.
      socket.on("error", (error) =>
        this.#warning.give(() => `destinations: ${text}: ${messageOf(error)}`),
      );
      socket.on("message", (datagram, from) => this.#receive(datagram, from));
      this.#sockets[endpoint.family] = socket;
    } catch (error) {
      if (lacksIpv6(endpoint, error) || (isIpv6 && codeOf(error) === "EAFNOSUPPORT")) {
        this.#options.log.warn(
          "destinations: this machine has no IPv6, so IPv6 destinations get no challenge",
        );
        return;
      }
      const message = `delivery.proof.${key}: cannot listen on ${text}`;
      throw new ShredwayError("system", `${message}: ${messageOf(error)}`, { cause: error });
    }
  }

  #receive(datagram: Uint8Array, { address, port }: RemoteInfo): void {
    if (!isProofShaped(datagram)) {
      this.#dropped++;
      return;
    }
    let from: string;
    try {
      from = formatEndpoint({ bytes: parseAddress(address), port });
    } catch {
      this.#dropped++; // a link-local address with its zone, which no destination has
      return;
    }
    // Floods of strangers take no capacity from challenged addresses.
    if (!this.#options.isAwaited(from) || !this.#hasCapacity()) {
      this.#dropped++;
      return;
    }
    this.#options.onMessage(from, datagram);
  }

  #hasCapacity(): boolean {
    const nowNs = this.#options.clock.monotonicNs();
    if (nowNs >= this.#secondEndsNs) {
      this.#secondEndsNs = nowNs + secondNs;
      this.#leftInSecond = inboundPerSecond;
    }
    if (this.#leftInSecond === 0) return false;
    this.#leftInSecond--;
    return true;
  }

  #fail(address: string, error: unknown): void {
    this.#failed++;
    this.#warning.give(
      () => `destinations: a challenge to ${address} could not be sent: ${messageOf(error)}`,
    );
  }
}
