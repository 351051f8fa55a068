// Destinations of the feed on loopback: what arrived, compared with what the whole source sent.

import type { ShredwayClient } from "../../src/client/index.ts";
import { Relay } from "../../src/relay/data-plane/relay.ts";
import { distinct } from "../../src/relay/data-plane/report.ts";
import { sandboxPace } from "../../src/sandbox/plan.ts";

export interface DestinationCounts {
  readonly name: string;
  /** Different shreds. */
  readonly received: number;
  readonly duplicates: number;
  /** Datagrams that the kernel dropped at this destination, because this machine was too slow. */
  readonly kernelDrops: number;
}

interface Receiver {
  readonly name: string;
  readonly relay: Relay;
  readonly address: string;
}

const names = ["tier-1", "tier-2", "account"] as const;

function openReceiver(name: string): Receiver {
  const relay = Relay.open({
    listen: ["127.0.0.1:0"],
    workers: 1,
    tiers: ["all"],
    authentication: "off", // the service verifies; a forgery would count as one shred too many
    shredVersion: sandboxPace.shredVersion,
    answerChallenges: true,
    receive: { bufferBytes: 8 << 20 },
    prefault: false,
    deshred: false,
  });
  relay.publishSources([{ name: "relay", address: "127.0.0.1", tier: "all" }]);
  return { name, relay, address: relay.addresses[0] ?? "" };
}

export class Destinations {
  readonly #receivers: readonly Receiver[] = names.map(openReceiver);

  /** Destinations of the configuration. */
  get fixed(): { readonly address: string; readonly tier: string }[] {
    return this.#receivers.slice(0, 2).map(({ name, address }) => ({ address, tier: name }));
  }

  /** Adds the account's destination. It proves itself by answering the challenge. */
  async addAccountDestination(client: ShredwayClient): Promise<void> {
    const address = this.#receivers[2]?.address ?? "";
    await client.addDestination({ region: "frankfurt", address });
  }

  counts(): DestinationCounts[] {
    return this.#receivers.map(({ name, relay }) => {
      const { verdicts, receiveDrops } = relay.snapshot();
      return {
        name,
        received: Number(distinct(verdicts)),
        duplicates: Number(verdicts.duplicate),
        kernelDrops: Number(receiveDrops),
      };
    });
  }

  close(): void {
    for (const { relay } of this.#receivers) relay.close();
  }
}
