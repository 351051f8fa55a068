// Observes landings in a shred feed: a relay without destinations, and its watch list.
//
// The same native code as in the service finds transactions in the shreds. Only shreds that their leader
// signed count. A watch reports again if the block of a slot begins again.

import type { Logger } from "../../core/log.ts";
import { Relay } from "../../relay/data-plane/relay.ts";
import { distinct } from "../../relay/data-plane/report.ts";
import { LandingWatchList } from "../../relay/landing-watch-list.ts";
import type { LeaderSchedule } from "../../relay/leaders/schedule.ts";
import type { ShredObservation } from "./records.ts";

const shredsPerFecSet = 32;
const tier = "all";
const bufferBytes = 64 << 20;

interface ShredFeed {
  /** Each "ip:port" to open. */
  readonly listen: readonly string[];
  readonly port: number;
  /** Address or range of the sender; undefined: any. */
  readonly source?: string;
}

export class ShredObserver {
  readonly #relay: Relay;
  readonly #landings: LandingWatchList;
  /** Observations that were not withdrawn, by signature, and the end of each watch. */
  readonly #watched = new Map<
    string,
    { readonly seen: ShredObservation[]; readonly end: () => void }
  >();

  /** Throws ShredwayError "relay_open", "address_invalid" or "table_refused". */
  static open(feed: ShredFeed, schedule: LeaderSchedule, log: Logger): ShredObserver {
    const relay = Relay.open({
      listen: feed.listen,
      workers: 1,
      tiers: [tier],
      authentication: "leader-schedule",
      shredVersion: 0,
      prefault: false,
      receive: { bufferBytes },
    });
    try {
      relay.publishLeaders(schedule);
      const ports = feed.port === 0 ? relay.addresses.map(portOf) : [feed.port];
      const { source } = feed;
      const from = source === undefined ? {} : { address: source };
      relay.publishSources(
        [...new Set(ports)].map((port) => ({ name: "feed", port, tier, ...from })),
      );
      return new ShredObserver(relay, log);
    } catch (error) {
      relay.close();
      throw error;
    }
  }

  private constructor(relay: Relay, log: Logger) {
    this.#relay = relay;
    this.#landings = new LandingWatchList(relay, log);
  }

  /** "ip:port" of each socket. */
  get addresses(): readonly string[] {
    return this.#relay.addresses;
  }

  publishLeaders(schedule: LeaderSchedule): void {
    this.#relay.publishLeaders(schedule);
  }

  /** Number of valid shreds so far: 0 means that the feed brings nothing. */
  get shreds(): bigint {
    return distinct(this.#relay.snapshot().verdicts);
  }

  /** Throws ShredwayError "watch_refused" if too many are watched. */
  watch(signature: string, bytes: Uint8Array): void {
    const seen: ShredObservation[] = [];
    const end = this.#landings.watch(
      bytes,
      (landing) => {
        seen.push({
          slot: Number(landing.slot),
          seenNs: landing.seenNs,
          fecSet: landing.shredIndex - (landing.shredIndex % shredsPerFecSet),
          shredIndex: landing.shredIndex,
          batchIndex: landing.batchIndex,
          ordinal: landing.ordinal,
        });
      },
      ({ slot }) => {
        for (let i = seen.length - 1; i >= 0; i--) {
          if (seen[i]?.slot === Number(slot)) seen.splice(i, 1);
        }
      },
    );
    this.#watched.set(signature, { seen, end });
  }

  /** The observation in this slot. */
  observation(signature: string, slot: number): ShredObservation | null {
    return this.#watched.get(signature)?.seen.find((each) => each.slot === slot) ?? null;
  }

  unwatch(signature: string): void {
    this.#watched.get(signature)?.end();
    this.#watched.delete(signature);
  }

  close(): void {
    this.#relay.close();
  }
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}
