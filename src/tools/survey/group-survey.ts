// Group survey: joins every multicast group that has a route through an interface, and counts what
// each one delivers.
//
// Used by `shredway sources groups`. A relay without destinations that accepts every shred version
// (race/feed-recorder.ts measures given groups instead). It joins as the service does, also beside it.

import { type Clock, systemClock } from "../../core/clock.ts";
import { createLogger } from "../../core/log.ts";
import { shredRefusalReasons } from "../../relay/data-plane/names.ts";
import { Relay } from "../../relay/data-plane/relay.ts";
import type { RelaySnapshot } from "../../relay/data-plane/snapshot.ts";
import { groupListenersOf } from "../../relay/multicast/group-plan.ts";
import { readInterface } from "../../relay/multicast/interface-reader.ts";
import { MulticastGroups } from "../../relay/multicast/multicast-groups.ts";
import { messageIn } from "../terminal/log-lines.ts";

interface GroupSurveyOptions {
  readonly interface: string;
  readonly port: number;
  /** Gets messages about the groups: joined, or why not. */
  readonly onNote: (text: string) => void;
}

export interface SurveyedGroup {
  readonly group: string;
  /** Why it is not joined; null: it is. */
  readonly problem: string | null;
  readonly shreds: number;
  readonly heartbeats: number;
  /** Datagrams of another form. */
  readonly other: number;
}

type Row = RelaySnapshot["sources"][number];

const tier = "all";

function countsOf(row: Row | undefined): Pick<SurveyedGroup, "shreds" | "heartbeats" | "other"> {
  if (!row) return { shreds: 0, heartbeats: 0, other: 0 };
  const heartbeats = Number(row.verdicts.heartbeat);
  const other = shredRefusalReasons.reduce((sum, name) => sum + Number(row.verdicts[name]), 0);
  return { shreds: Number(row.received) - heartbeats - other, heartbeats, other };
}

export class GroupSurvey {
  readonly #relay: Relay;
  readonly #groups: MulticastGroups;

  private constructor(relay: Relay, groups: MulticastGroups) {
    this.#relay = relay;
    this.#groups = groups;
  }

  /** Throws ShredwayError "relay_open". */
  static open(options: GroupSurveyOptions, clock: Clock = systemClock): GroupSurvey {
    const { interface: of, port, onNote } = options;
    const sources = [{ name: of, kind: "multicast", interface: of, port, tier }];
    const relay = Relay.open(
      {
        listen: [],
        multicast: groupListenersOf(sources),
        workers: 1,
        tiers: [tier],
        authentication: "off",
        shredVersion: 0,
        receiveFilter: false,
        prefault: false,
        deshred: false,
      },
      clock,
    );
    const log = createLogger({ stream: { write: (line) => onNote(messageIn(line)) } });
    const groups = new MulticastGroups({ relay, readInterface, log, clock });
    try {
      groups.publish(sources);
    } catch (error) {
      relay.close();
      throw error;
    }
    return new GroupSurvey(relay, groups);
  }

  /** The counts of each group since it was discovered. */
  read(): SurveyedGroup[] {
    const rows = new Map(this.#relay.snapshot().sources.map((row) => [row.name, row]));
    return this.#groups.states().map(({ source, address, problem }) => ({
      group: address,
      problem,
      ...countsOf(rows.get(source)),
    }));
  }

  /** Why the groups do not deliver; null: all do, or they have not been silent for long. */
  get problem(): string | null {
    return this.#groups.problem;
  }

  close(): void {
    this.#groups.close();
    this.#relay.close();
  }
}
