// The simulated sources: each delivers the shreds of the leaders in its own way, with losses, delays and
// duplicates, and may deliver forged or old ones.

import { SeededRandom } from "../../src/core/seeded-random.ts";
import {
  type AuthenticShred,
  type Cluster,
  type SlotPlan,
  signatureBytes,
  type VersionContents,
} from "./cluster.ts";
import type { CheckedArrival } from "./relay-checks.ts";
import {
  type Forgery,
  quantumMs,
  type ScenarioEvent,
  type SourceName,
  sourceNames,
} from "./scenario.ts";

interface Profile {
  readonly loss: number;
  readonly leastMs: number;
  /** Mean of the exponential part of the delay. */
  readonly meanMs: number;
  readonly twice: number;
}

const profiles: readonly Profile[] = [
  { loss: 0.03, leastMs: 2, meanMs: 10, twice: 0.01 },
  { loss: 0.1, leastMs: 15, meanMs: 25, twice: 0.05 },
  { loss: 0.25, leastMs: 40, meanMs: 60, twice: 0.1 },
  { loss: 0.3, leastMs: 2, meanMs: 40, twice: 0.02 },
];
const lateShare = 0.003;
const lateMs = 1_500;
const delayMaxMs = 600;
const keptSlots = 64;
/** Enough to set the first slot of a relay that knows none. */
const captureBurst = 60;
/** Often enough to hold a slot window that only silence moves. */
const captureEveryMs = 1_500;
const shredBytes = 1203;
/** A leader sends a slot's shreds within this time. */
const sendMs = 150;

interface KeptSlot {
  readonly plan: SlotPlan;
  readonly shreds: readonly AuthenticShred[];
}

type Deliver = (atMs: number, arrivals: readonly CheckedArrival[]) => void;

export class Sources {
  readonly #cluster: Cluster;
  readonly #seed: number;
  readonly #deliver: Deliver;
  readonly #kept: KeptSlot[] = [];
  /** Shreds of slots before the run. */
  readonly #old = new Map<bigint, readonly AuthenticShred[]>();
  readonly #silentUntilMs = new Map<SourceName, number>();

  constructor(cluster: Cluster, seed: number, deliver: Deliver) {
    this.#cluster = cluster;
    this.#seed = seed;
    this.#deliver = deliver;
  }

  produce(event: ScenarioEvent, plan: SlotPlan, contents: readonly VersionContents[]): void {
    const random = this.#randomOf(event);
    const versions = this.#cluster.produce(plan, contents);
    this.#kept.push({ plan, shreds: versions.flat() });
    if (this.#kept.length > keptSlots) this.#kept.shift();
    for (const [source, name] of sourceNames.entries()) {
      // An equivocating leader sends each source one version, or all of them.
      const chosen = random.below(versions.length + 1);
      const shreds = versions[chosen] ?? versions.flat();
      if (event.atMs < (this.#silentUntilMs.get(name) ?? 0)) continue;
      this.#send(
        event.atMs,
        source,
        shreds.map(({ packet }) => packet),
        random,
      );
    }
  }

  /** Changed copies of the newest shreds. */
  forge(
    event: ScenarioEvent,
    choice: { readonly source: SourceName; readonly forgery: Forgery; readonly count: number },
  ): void {
    const random = this.#randomOf(event);
    const kept = this.#kept.at(-1);
    if (!kept) return;
    const originals =
      choice.forgery === "other key"
        ? this.#cluster.forge(kept.plan)
        : random.shuffled(kept.shreds).map(({ packet }) => packet);
    const packets = originals
      .slice(0, choice.count)
      .map((packet) => changed(packet, choice.forgery, random));
    this.#send(event.atMs, sourceNames.indexOf(choice.source), packets, random);
  }

  /** The shreds of an earlier slot again. */
  replay(
    event: ScenarioEvent,
    choice: { readonly source: SourceName; readonly slotsBack: number },
  ): void {
    const kept = this.#kept.at(-choice.slotsBack);
    if (!kept) return;
    const packets = kept.shreds.map(({ packet }) => packet);
    const source = sourceNames.indexOf(choice.source);
    this.#send(event.atMs, source, packets, this.#randomOf(event));
  }

  /** The shreds of slots far in the past: many at once, then one at a time. */
  capture(
    event: ScenarioEvent,
    choice: {
      readonly source: SourceName;
      readonly slots: readonly bigint[];
      readonly forMs: number;
    },
  ): void {
    const source = sourceNames.indexOf(choice.source);
    const old = choice.slots.map((slot) => this.#oldShreds(slot));
    const packetOf = (i: number): Uint8Array | undefined => {
      const shreds = old[i % old.length] ?? [];
      // One slot sends many different shreds, two slots in turn send few of them again and again.
      const place = old.length > 1 ? Math.floor(i / old.length) % 2 : i % shreds.length;
      return shreds[place]?.packet;
    };
    const deliver = (atMs: number, i: number): void => {
      const packet = packetOf(i);
      if (packet) this.#deliver(Math.ceil(atMs / quantumMs) * quantumMs, [{ source, packet }]);
    };
    for (let i = 0; i < captureBurst; i++) deliver(event.atMs + i / 2, i);
    for (let atMs = captureEveryMs; atMs < choice.forMs; atMs += captureEveryMs)
      deliver(event.atMs + atMs, captureBurst + Math.floor(atMs / captureEveryMs));
  }

  #oldShreds(slot: bigint): readonly AuthenticShred[] {
    const plan = { slot, parent: slot - 1n, sets: 2, restartAfter: null, versions: 1 };
    const known = this.#old.get(slot) ?? this.#cluster.produce(plan).flat();
    this.#old.set(slot, known);
    return known;
  }

  interrupt(source: SourceName, untilMs: number): void {
    this.#silentUntilMs.set(source, Math.max(untilMs, this.#silentUntilMs.get(source) ?? 0));
  }

  #randomOf({ number }: ScenarioEvent): SeededRandom {
    return new SeededRandom((BigInt(this.#seed) << 24n) + BigInt(number));
  }

  #send(
    beginMs: number,
    source: number,
    packets: readonly Uint8Array[],
    random: SeededRandom,
  ): void {
    const profile = profiles[source];
    if (!profile) return;
    const arrivals: { readonly atMs: number; readonly packet: Uint8Array }[] = [];
    for (const [i, packet] of packets.entries()) {
      if (random.happens(profile.loss)) continue;
      const copies = random.happens(profile.twice) ? 2 : 1;
      for (let copy = 0; copy < copies; copy++) {
        const late = random.happens(lateShare) ? lateMs : 0;
        const delayMs = profile.leastMs + random.exponential(profile.meanMs, delayMaxMs) + late;
        arrivals.push({ atMs: beginMs + (sendMs * i) / packets.length + delayMs, packet });
      }
    }
    const byTime = new Map<number, CheckedArrival[]>();
    for (const { atMs, packet } of arrivals.toSorted((a, b) => a.atMs - b.atMs)) {
      const collectedMs = Math.ceil(atMs / quantumMs) * quantumMs;
      const together = byTime.get(collectedMs) ?? [];
      byTime.set(collectedMs, together);
      together.push({ source, packet });
    }
    for (const [atMs, together] of byTime) this.#deliver(atMs, together);
  }
}

function changed(original: Uint8Array, forgery: Forgery, random: SeededRandom): Uint8Array {
  const packet = Uint8Array.from(original); // slice() of a Buffer would share its bytes
  const flip = (at: number): void => {
    packet[at] = (packet[at] ?? 0) ^ (1 + random.below(255));
  };
  switch (forgery) {
    case "payload":
      flip(200 + random.below(600));
      return packet;
    case "signature":
      flip(random.below(signatureBytes));
      return packet;
    case "other slot":
      flip(65);
      return packet;
    case "truncated":
      return packet.subarray(0, random.below(packet.length - 1));
    case "noise":
      return random.fillBytes(new Uint8Array(shredBytes));
    case "other key":
      return packet;
  }
}
