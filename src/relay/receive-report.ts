// Receive report: the log lines about receiving by AF_XDP, at the start and when an interface stops or
// goes on, and about shreds that reached the wrong worker.
//
// Called by relay-service.ts. Its check also lets the data plane follow the addresses of the machine.

import type { Logger } from "../core/log.ts";
import type { Relay } from "./data-plane/relay.ts";
import type { RelaySnapshot } from "./data-plane/snapshot.ts";

type WorkerSnapshot = RelaySnapshot["workers"][number];

type ReceivingRelay = Pick<Relay, "receiveInterfaces" | "updateReceiving">;

interface ReceiveSnapshot {
  readonly workers: readonly Pick<WorkerSnapshot, "misdirected">[];
}

export class ReceiveReport {
  readonly #relay: ReceivingRelay;
  readonly #log: Logger;
  #problems: readonly string[] = [];
  #hasWarnedOfSteering = false;

  constructor(relay: ReceivingRelay, log: Logger) {
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

  /** Reports each problem once, and the end of those that can end without an operator. */
  check(snapshot: ReceiveSnapshot): void {
    this.#checkInterfaces();
    this.#checkSteering(snapshot);
  }

  #checkInterfaces(): void {
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

  #checkSteering({ workers }: ReceiveSnapshot): void {
    if (this.#hasWarnedOfSteering) return;
    const count = workers.reduce((total, { misdirected }) => total + misdirected, 0n);
    if (count === 0n) return;
    this.#hasWarnedOfSteering = true;
    this.#log.warn(
      `relay: ${count} shreds reached a worker that does not handle their FEC sets, so destinations may get ` +
        "such shreds twice: the kernel steered several datagrams by the first one. If the source runs on this " +
        "host, it sends segmented messages (UDP GSO): ethtool -K IFACE tx-udp-segmentation off, with the " +
        "interface by which it sends (lo, veth). Otherwise: ethtool -K IFACE rx-gro-list off, with the interface " +
        "that receives, or relay.workers: 1; see docs/tuning.md",
    );
  }
}
