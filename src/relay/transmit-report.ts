// Transmit report: the log lines about the relay's transmit mode, at the start and when it changes.
//
// Called by relay-service.ts. Explains which mode is in use and why, so that nobody has to guess from
// counters. A machine that cannot clone is not a problem in mode "auto".

import type { RelayConfig } from "../core/configuration/configuration.ts";
import type { Logger } from "../core/log.ts";
import type { Relay } from "./data-plane/relay.ts";
import type { RelaySnapshot } from "./data-plane/snapshot.ts";

export class TransmitReport {
  readonly #relay: Pick<Relay, "transmit">;
  readonly #log: Logger;
  #fallbacks = 0n;
  #obeysRules = false;

  constructor(relay: Pick<Relay, "transmit">, log: Logger) {
    this.#relay = relay;
    this.#log = log;
  }

  /** Logs the mode once. A refusal of mode "clone" is one of the warnings at the start instead. */
  logStart(configured: RelayConfig["transmit"]): void {
    const { transmit } = this.#relay;
    if (transmit.mode === "clone") {
      this.#log.info(
        { interface: transmit.interface },
        "relay: transmit=clone: shreds are cloned inside the kernel for destinations with a resolved next hop",
      );
    } else if (transmit.mode === "xdp") {
      this.#log.info(
        { interface: transmit.interface },
        "relay: transmit=xdp: shreds are sent by AF_XDP to destinations behind relay.xdpInterfaces; firewall " +
          "rules for outgoing datagrams do not apply to them",
      );
    } else if (transmit.mode === "socket" && configured !== "clone") {
      const why = transmit.refusal ?? "relay.transmit is socket";
      this.#log.info(`relay: transmit=socket: shreds are sent by socket: ${why}`);
    }
  }

  /** Reports what has changed since the last call. */
  check(snapshot: RelaySnapshot): void {
    this.#checkFallbacks(snapshot);
    this.#checkRules(snapshot);
  }

  /** The kernel accepted triggers but did not clone (a firewall, a deleted interface), or refused frames. */
  #checkFallbacks({ workers }: RelaySnapshot): void {
    const now = workers.reduce((total, worker) => total + worker.clone_fallbacks, 0n);
    if (now > this.#fallbacks) {
      this.#log.warn(
        `relay: ${now - this.#fallbacks} datagrams were sent by socket since the last check because the ` +
          `kernel ${this.#relay.transmit.mode === "xdp" ? "refused frames" : "did not clone them; if it ignores triggers, all shreds are sent by socket until a restart"}` +
          ": see docs/transmit.md",
      );
    }
    this.#fallbacks = now;
  }

  #checkRules({ nextHops }: RelaySnapshot): void {
    const obeys = nextHops.output_rules > 0n;
    if (obeys === this.#obeysRules) return;
    this.#obeysRules = obeys;
    this.#log.info(
      obeys
        ? "relay: shreds are sent by socket: a firewall rule or an IPsec policy for outgoing datagrams was added"
        : "relay: shreds are cloned again: the rules for outgoing datagrams were removed",
    );
  }
}
