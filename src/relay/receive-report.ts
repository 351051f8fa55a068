// Receive report: the log lines about receiving by AF_XDP, at the start and when an interface stops or
// goes on.
//
// Called by relay-service.ts. Its check also lets the data plane follow the addresses of the machine.

import type { Logger } from "../core/log.ts";
import type { Relay } from "./data-plane/relay.ts";

export class ReceiveReport {
  readonly #relay: Pick<Relay, "receiveInterfaces" | "updateReceiving">;
  readonly #log: Logger;
  #problems: readonly string[] = [];

  constructor(relay: Pick<Relay, "receiveInterfaces" | "updateReceiving">, log: Logger) {
    this.#relay = relay;
    this.#log = log;
  }

  logStart(): void {
    const { receiveInterfaces } = this.#relay;
    if (receiveInterfaces === null) return;
    this.#log.info(
      { interface: receiveInterfaces },
      "relay: receive=xdp: shreds are received by AF_XDP on relay.xdpInterfaces; firewall rules for " +
        "incoming datagrams do not apply to them",
    );
  }

  /** Reports each problem once, and its end. */
  check(): void {
    if (this.#relay.receiveInterfaces === null) return;
    const now = this.#relay.updateReceiving();
    for (const problem of now) {
      if (this.#problems.includes(problem)) continue;
      this.#log.warn(
        `relay: AF_XDP does not receive on ${problem}. Until it does, sockets receive what arrives there`,
      );
    }
    if (now.length === 0 && this.#problems.length > 0)
      this.#log.info("relay: AF_XDP receives again on all of its interfaces");
    this.#problems = now;
  }
}
