// A block engine of the sandbox: sends the chain's shreds to the relay's source of kind "shredstream".
//
// Opened by open-sandbox.ts if the choice has `shredstream`. Authentication and leases are those of the
// product (relay/shredstream/subscriber-service.ts). Like Jito's block engine, it sends the shreds to the
// address of each heartbeat, and a trace packet with its region and its time.

import { randomBytes } from "node:crypto";
import type { Clock, Timer } from "../core/clock.ts";
import { MessageWriter } from "../core/grpc/protobuf.ts";
import type { Logger } from "../core/log.ts";
import { PacedSender } from "../relay/data-plane/paced-sender.ts";
import { SubscriberService } from "../relay/shredstream/subscriber-service.ts";
import { Delivery, type DeliveryProfile } from "./delivery.ts";
import { type Player, SourceFeed } from "./source-feed.ts";

interface SandboxEngineOptions {
  /** Base58 public key that may subscribe. */
  readonly publicKey: string;
  /** IP address from which the shreds are sent. */
  readonly from: string;
  /** Name of its region. */
  readonly region: string;
  readonly profile: DeliveryProfile;
  readonly seed: number;
  readonly clock: Clock;
  readonly log: Logger;
}

const ttlSeconds = 30;
const traceMs = 1000;
const tier = "all";

/** Sends to every address that has a lease. */
class LeasedAddresses implements Player {
  readonly #from: string;
  readonly #senders = new Map<string, PacedSender>();
  #isClosed = false;

  constructor(from: string) {
    this.#from = from;
  }

  replace(addresses: readonly string[]): void {
    if (this.#isClosed) return;
    for (const [address, sender] of this.#senders) {
      if (addresses.includes(address)) continue;
      sender.close();
      this.#senders.delete(address);
    }
    for (const to of addresses) {
      if (this.#senders.has(to)) continue;
      this.#senders.set(to, PacedSender.open({ to, from: `${this.#from}:0` }));
    }
  }

  enqueue(packets: readonly Uint8Array[], timesNs: BigUint64Array): void {
    for (const sender of this.#senders.values()) sender.enqueue(packets, timesNs);
  }

  close(): void {
    this.#isClosed = true;
    for (const sender of this.#senders.values()) sender.close();
    this.#senders.clear();
  }
}

export class SandboxEngine {
  readonly feed: SourceFeed;
  readonly #service: SubscriberService;
  readonly #tracing: Timer;

  private constructor(parts: { feed: SourceFeed; service: SubscriberService; tracing: Timer }) {
    this.feed = parts.feed;
    this.#service = parts.service;
    this.#tracing = parts.tracing;
  }

  /** Throws ShredwayError "http_open". */
  static async open(options: SandboxEngineOptions): Promise<SandboxEngine> {
    const { publicKey, from, region, profile, seed, clock, log } = options;
    const addresses = new LeasedAddresses(from);
    const service = new SubscriberService({
      config: {
        listen: "127.0.0.1:0",
        ttlSeconds,
        subscribers: [{ name: "relay", publicKey, tier, destinations: 1 }],
      },
      allowPrivate: () => true,
      isOwn: () => false,
      publish: (destinations) => addresses.replace(destinations.map(({ address }) => address)),
      randomBytes,
      clock,
      log,
    });
    await service.start();
    let sequence = 0;
    const tracing = clock.every(traceMs, () => {
      const trace = encodeTrace(region, clock.nowNs(), ++sequence);
      addresses.enqueue([trace], BigUint64Array.of(0n));
    });
    const feed = new SourceFeed({
      delivery: new Delivery(profile, seed),
      player: addresses,
      clock,
    });
    return new SandboxEngine({ feed, service, tracing });
  }

  get url(): string {
    return `http://${this.#service.address}`;
  }

  close(): void {
    this.#tracing.cancel();
    this.feed.close();
    this.#service.close();
  }
}

/** Message shredstream.TraceShred. */
function encodeTrace(region: string, createdNs: bigint, sequence: number): Uint8Array {
  const created = new MessageWriter()
    .uint(1, createdNs / 1_000_000_000n)
    .uint(2, createdNs % 1_000_000_000n)
    .finish();
  return new MessageWriter().string(1, region).message(2, created).uint(3, sequence).finish();
}
