// Faults on a seeded schedule: one at a time, each kind once per round in a random order.

import { systemClock } from "../../src/core/clock.ts";
import type { SeededRandom } from "../../src/core/seeded-random.ts";
import type { Cluster } from "./cluster.ts";
import { type PartnerAnswer, partnerNames } from "./cluster-messages.ts";
import type { Service } from "./service.ts";

export interface Fault {
  readonly name: string;
  /** At most once in a run. */
  readonly isOnce?: boolean;
  readonly begin: () => unknown;
  readonly end?: () => unknown;
}

/** A database server that can be frozen and killed. */
export interface StoppableDatabase {
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
  start(): Promise<void>;
}

const slowMs = 5000;
const partnerAnswers: readonly PartnerAnswer[] = [
  "limit",
  "unavailable",
  "garbage",
  "silence",
  "cut",
];
const clockJumpSeconds = [3600, -3600, 90_000] as const;

function clusterFaults(cluster: Cluster): Fault[] {
  const partner = (name: (typeof partnerNames)[number], answer: PartnerAnswer, delayMs = 0) =>
    cluster.do({ do: "partner", name, answer, delayMs });
  const node = (refuse: "nothing" | "behind" | "unavailable", delayMs = 0) =>
    cluster.do({ do: "node", refuse, delayMs, dropNotifications: false });
  const everyPartner = (answer: PartnerAnswer) =>
    Promise.all(partnerNames.map((name) => partner(name, answer)));
  return [
    ...partnerAnswers.map((answer, i) => {
      const name = partnerNames[i % partnerNames.length] ?? "swqos";
      return {
        name: `${name} answers: ${answer}`,
        begin: () => partner(name, answer),
        end: () => partner(name, "normal"),
      };
    }),
    {
      name: "every partner silent",
      begin: () => everyPartner("silence"),
      end: () => everyPartner("normal"),
    },
    {
      name: "swqos slow",
      begin: () => partner("swqos", "normal", slowMs),
      end: () => partner("swqos", "normal"),
    },
    {
      name: "swqos down",
      begin: () => cluster.do({ do: "partner-down", name: "swqos", isDown: true }),
      end: () => cluster.do({ do: "partner-down", name: "swqos", isDown: false }),
    },
    { name: "node unavailable", begin: () => node("unavailable"), end: () => node("nothing") },
    { name: "node behind", begin: () => node("behind"), end: () => node("nothing") },
    { name: "node slow", begin: () => node("nothing", slowMs), end: () => node("nothing") },
    {
      name: "node without notifications",
      begin: () =>
        cluster.do({ do: "node", refuse: "nothing", delayMs: 0, dropNotifications: true }),
      end: () => node("nothing"),
    },
    { name: "skipped slots", begin: () => cluster.do({ do: "skip", slots: 4 }) },
    { name: "fork", begin: () => cluster.do({ do: "fork", slots: 2 }) },
    {
      name: "block begins again with its transactions",
      begin: () => cluster.do({ do: "restart", outcome: "executed_again" }),
    },
    {
      name: "block begins again without them",
      begin: () => cluster.do({ do: "restart", outcome: "lost" }),
    },
    {
      name: "losses and forgeries",
      begin: () => cluster.do({ do: "noise", loss: 0.5, forged: 0.2 }),
      end: () => cluster.do({ do: "noise", loss: 0.01, forged: 0.01 }),
    },
  ];
}

/** All faults that are possible here. */
export function allFaults(
  cluster: Cluster,
  service: Service,
  more: { readonly database: StoppableDatabase | undefined; readonly clockJumps: boolean },
): Fault[] {
  const { database } = more;
  const disk: Fault = {
    name: "disk full",
    isOnce: true,
    begin: () => service.fillDisk(true),
    end: () => service.fillDisk(false),
  };
  return [
    ...clusterFaults(cluster),
    { name: "reload", begin: () => service.reload() },
    ...(service.canFillDisk && !database ? [disk] : []),
    ...(database
      ? [
          { name: "database frozen", begin: () => database.pause(), end: () => database.resume() },
          { name: "database killed", begin: () => database.kill(), end: () => database.start() },
        ]
      : []),
    ...(more.clockJumps
      ? clockJumpSeconds.map((seconds) => ({
          name: `wall clock ${seconds > 0 ? "+" : ""}${seconds} s`,
          begin: () => service.setClock(seconds),
          end: () => service.setClock(0),
        }))
      : []),
  ];
}

export class FaultSchedule {
  /** Number of times that each fault began. */
  readonly begun = new Map<string, number>();
  /** The present fault; "none" between two. */
  current = "none";
  readonly #faults: readonly Fault[];
  readonly #random: SeededRandom;
  readonly #meanMs: number;

  constructor(
    faults: readonly Fault[],
    options: { readonly random: SeededRandom; readonly meanMs: number },
  ) {
    this.#faults = faults;
    this.#random = options.random;
    this.#meanMs = options.meanMs;
  }

  /** Ends the present fault when the signal aborts. */
  async run(stopped: AbortSignal): Promise<void> {
    const pause = () => systemClock.sleep(this.#meanMs * (0.5 + this.#random.share()), stopped);
    while (!stopped.aborted) {
      for (const fault of this.#random.shuffled(this.#faults)) {
        await pause();
        if (stopped.aborted) return;
        if (fault.isOnce && this.begun.has(fault.name)) continue;
        this.begun.set(fault.name, (this.begun.get(fault.name) ?? 0) + 1);
        this.current = fault.name;
        await fault.begin();
        await pause();
        await fault.end?.();
        this.current = "none";
      }
    }
  }
}
