// A subscriber of the sandbox: behaves like a stock ShredStream proxy at the relay's section `shredstream`.
//
// Opened by open-sandbox.ts if the choice has `shredstream`. It authenticates with a registered key, sends
// heartbeats for its own UDP port, and receives shreds there while they are accepted.

import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/log.ts";
import { readKeyPair } from "../platform/solana/key-file.ts";
import { ShredstreamSources } from "../relay/shredstream/shredstream-sources.ts";
import type { SubscriptionStatus } from "../relay/shredstream/subscription-status.ts";
import type { SandboxReceiver } from "./receiver.ts";

interface SandboxProxyOptions {
  /** Gets the shreds; its only source is the relay. */
  readonly receiver: SandboxReceiver;
  /** Address of the heartbeats, from which its connection comes. */
  readonly host: string;
  readonly keyFile: string;
  readonly region: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export class SandboxProxy {
  readonly receiver: SandboxReceiver;
  readonly #options: SandboxProxyOptions;
  readonly #subscriptions: ShredstreamSources;

  constructor(options: SandboxProxyOptions) {
    this.#options = options;
    this.receiver = options.receiver;
    const { relay } = options.receiver;
    this.#subscriptions = new ShredstreamSources({
      readKey: readKeyPair,
      random: Math.random,
      addresses: relay.addresses,
      snapshot: () => relay.snapshot(),
      clock: options.clock,
      log: options.log,
    });
  }

  /** `address`: the relay's block engine, "ip:port". Throws ShredwayError if the key is unusable. */
  start(address: string): void {
    const { host, keyFile, region, receiver } = this.#options;
    const url = `http://${address}`;
    const shredstream = { url, keyFile, regions: [region], publicAddress: host };
    this.#subscriptions.prepare([{ name: "relay", tier: receiver.tier, shredstream }])();
    this.#subscriptions.start();
  }

  get status(): SubscriptionStatus | undefined {
    return this.#subscriptions.statuses()[0];
  }

  close(): void {
    this.#subscriptions.close();
    this.receiver.relay.close();
  }
}
