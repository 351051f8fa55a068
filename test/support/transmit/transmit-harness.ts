// A relay in one namespace and its peers in another: feeds go in, and all receivers must get them.
//
// For transmit.test.ts. No clock is involved: each part of a feed is sent when the previous one has
// reached all receivers.

import { farAddress, type TransmitChild, TwoNamespaces } from "../network/two-namespaces.ts";
import { digestOfPackets, type RelayState } from "./transmit-digest.ts";

export interface Feed {
  readonly packets: readonly Uint8Array[];
  readonly leader: { readonly key: Uint8Array; readonly slot: bigint };
  readonly version: number;
}

export const receivingPort = 9000;
const atOnce = 64; // less than the capacity of the smallest receive buffer

/** Its length when it is forwarded. */
function cut(packet: Uint8Array): Uint8Array {
  return packet.slice(0, ((packet[64] ?? 0) & 0xc0) === 0x40 ? 1228 : 1203);
}

export class TransmitHarness {
  readonly lab = TwoNamespaces.open();
  readonly peers: TransmitChild;
  readonly relay: TransmitChild;
  readonly addresses: string[] = [];
  refusal: string | null = null;
  mode = "";
  #to = "";
  #passed: Uint8Array[] = [];

  constructor(before: readonly string[] = []) {
    this.peers = this.lab.child(this.lab.far);
    this.relay = this.lab.child(this.lab.near, before);
  }

  /** `count` destinations of each family. */
  async open(feed: Feed, transmit: "socket" | "clone", count: number): Promise<void> {
    const hosts = ([4, 6] as const).flatMap((family) =>
      Array.from({ length: count }, (_, i) => farAddress(family, i + 1)),
    );
    await this.peers.call("openReceivers", hosts, receivingPort);
    this.addresses.push(...(await this.peers.call<Map<string, number>>("counts")).keys());
    const options = {
      listen: ["0.0.0.0:0"],
      workers: 1,
      tiers: ["any"],
      authentication: "leader-schedule",
      shredVersion: feed.version,
      transmit,
      prefault: false,
    };
    const opened = await this.relay.call<{
      address: string;
      transmit: { mode: string; refusal?: string | null };
    }>("openRelay", options, feed.leader);
    this.#to = opened.address.replace("0.0.0.0", "10.1.0.1");
    this.mode = opened.transmit.mode;
    this.refusal = opened.transmit.refusal ?? null;
    await this.publish(this.addresses);
  }

  publish(addresses: readonly string[]): Promise<void> {
    const table = addresses.map((address) => ({ address, tier: "any" }));
    return this.relay.call("publish", table);
  }

  state(): Promise<RelayState> {
    return this.relay.call("state");
  }

  async until(holds: (state: RelayState) => boolean, what: string): Promise<void> {
    const end = performance.now() + 30_000;
    for (;;) {
      const state = await this.state();
      if (holds(state)) return;
      if (performance.now() > end)
        throw new Error(`timeout, expected: ${what}; got ${JSON.stringify(plain(state))}`);
    }
  }

  /** Sends in bursts; the next one follows when all receivers have the previous one. */
  async play(packets: readonly Uint8Array[]): Promise<void> {
    for (let begin = 0; begin < packets.length; begin += atOnce) {
      const part = packets.slice(begin, begin + atOnce);
      this.#passed.push(...part.map(cut));
      await this.peers.call("send", part, this.#to);
      await this.#arrived();
    }
  }

  async #arrived(): Promise<void> {
    const end = performance.now() + 30_000;
    for (;;) {
      const counts = await this.peers.call<Map<string, number>>("counts");
      const least = Math.min(...this.addresses.map((address) => counts.get(address) ?? 0));
      if (least >= this.#passed.length) return;
      if (performance.now() > end)
        throw new Error(`expected ${this.#passed.length} packets at all receivers, got ${least}`);
    }
  }

  /** Checks that all receivers got exactly the sent packets, and that the counters agree. */
  async check(): Promise<void> {
    const expected = digestOfPackets(this.#passed);
    const digests = await this.peers.call<Map<string, string>>("digests");
    const others = this.addresses.filter((address) => digests.get(address) !== expected);
    if (others.length > 0)
      throw new Error(`expected the sent packets only, got others at: ${others.join()}`);
    const sum = this.#passed.length;
    await this.until(
      ({ sent }) => this.addresses.every((address) => sent.get(address) === sum),
      `${sum} sent to all receivers`,
    );
    if ((await this.state()).failed) throw new Error("a send failed");
  }
}

function plain(state: RelayState): unknown {
  return {
    ...state,
    received: Number(state.received),
    sent: [...state.sent].slice(0, 3),
    nextHops: Object.entries(state.nextHops).map(String),
  };
}
