// Reachability probe: one datagram with a secret to a destination, and the ICMP error or answer to it.
//
// native/net/reachability_probe.h explains why only this proves that a port is closed.

import { guarded, type NativeReachabilityProbe, native } from "./native.ts";
import { encodeEndpoint } from "./tables.ts";

type ProbeResult = ReturnType<NativeReachabilityProbe["check"]>;

export class ReachabilityProbe {
  readonly #native: NativeReachabilityProbe;

  private constructor(address: string, datagram: Uint8Array) {
    const to = encodeEndpoint(address);
    this.#native = guarded("sender_open", () => new (native().ReachabilityProbe)(to, datagram));
  }

  /**
   * Sends the datagram: at least 24 bytes, which nobody can guess. Throws ShredwayError "sender_open" or
   * "address_invalid".
   */
  static open(address: string, datagram: Uint8Array): ReachabilityProbe {
    return new ReachabilityProbe(address, datagram);
  }

  /** The result so far; never blocks. */
  check(): ProbeResult {
    return this.#native.check();
  }

  /** Own address, "ip:port". */
  get local(): string {
    return this.#native.local();
  }

  close(): void {
    this.#native.close();
  }
}
