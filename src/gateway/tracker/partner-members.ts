// Who is an alternative partner: the configured ones and those of a URL, less the denied.
//
// Made by main, told of every reload; hands each new list to the tracker. The URL is asked so often as the
// configuration says, and soon again after a failure. A list that cannot be used changes nothing: the last
// good one of that URL stays. Waits for nobody: until the first answer the configured ones are all.

import type { Clock, Timer } from "../../core/clock.ts";
import type { Config } from "../../core/configuration/configuration.ts";
import { messageOf } from "../../core/errors.ts";
import { FailureStreak } from "../../core/failure-streak.ts";
import type { Logger } from "../../core/log.ts";

const tryAgainMs = 15_000;
const msPerMinute = 60_000;
const logEvery = 20;

type MemberConfig = Pick<Config, "tracker" | "routes">;

interface PartnerMembersDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  /** solana/member-list.ts is the real one. Its errors must not hold the URL. */
  readonly fetchMembers: (url: string) => Promise<ReadonlySet<string>>;
  /** All members, less denied ones: at once, and whenever that changes. */
  readonly publish: (members: ReadonlySet<string>) => void;
}

/** Without a list of its own: whoever the partner's routes have a port of. */
function configuredMembers({ tracker, routes }: MemberConfig): readonly string[] {
  if (tracker.members) return tracker.members;
  return routes
    .filter(({ kind }) => kind === "alt-partner")
    .flatMap(({ leaders }) => Object.keys(leaders ?? {}));
}

function isSameSet(a: ReadonlySet<string>, b: ReadonlySet<string> | null): boolean {
  return b !== null && a.size === b.size && [...a].every((one) => b.has(one));
}

export class PartnerMembers {
  readonly #dependencies: PartnerMembersDependencies;
  #config: MemberConfig;
  /** Of the present URL. */
  #listed: ReadonlySet<string> | null = null;
  #published: ReadonlySet<string> | null = null;
  #timer: Timer | undefined;
  /** Of the present URL; what an earlier one still answers comes to nothing. */
  #run = {};
  readonly #failures = new FailureStreak(logEvery);

  /** Publishes the configured members and asks the URL, if there is one. */
  constructor(dependencies: PartnerMembersDependencies, config: MemberConfig) {
    this.#dependencies = dependencies;
    this.#config = config;
    this.#publish();
    this.#begin();
  }

  /** Takes a new configuration over. What another URL listed before counts no more. */
  apply(config: MemberConfig): void {
    const { url, refreshMinutes } = this.#config.tracker;
    this.#config = config;
    const isOtherUrl = config.tracker.url !== url;
    if (isOtherUrl) this.#listed = null;
    this.#publish();
    if (isOtherUrl || config.tracker.refreshMinutes !== refreshMinutes) this.#begin();
  }

  /** Asks and publishes nothing more. */
  close(): void {
    this.#run = {};
    this.#timer?.cancel();
  }

  #begin(): void {
    this.close();
    this.#failures.end();
    const { url } = this.#config.tracker;
    if (url !== undefined) void this.#look(url, this.#run);
  }

  async #look(url: string, run: object): Promise<void> {
    const { fetchMembers, clock, log } = this.#dependencies;
    try {
      const listed = await fetchMembers(url);
      if (this.#run !== run) return;
      if (this.#failures.isFailing) log.info("alternative partners: their list is told again");
      this.#failures.end();
      this.#listed = listed;
      this.#publish();
    } catch (error) {
      if (this.#run !== run) return;
      this.#failed(messageOf(error));
    }
    const { refreshMinutes } = this.#config.tracker;
    const delayMs = this.#failures.isFailing ? tryAgainMs : refreshMinutes * msPerMinute;
    this.#timer = clock.after(delayMs, () => void this.#look(url, run));
  }

  #failed(text: string): void {
    if (!this.#failures.add(text)) return;
    const state = this.#listed ? "the last list stays" : "only configured ones count until then";
    this.#dependencies.log.warn(`no list of alternative partners, ${state}: ${text}`);
  }

  #publish(): void {
    const members = new Set([...configuredMembers(this.#config), ...(this.#listed ?? [])]);
    for (const denied of this.#config.tracker.denied) members.delete(denied);
    if (isSameSet(members, this.#published)) return;
    this.#published = members;
    this.#dependencies.log.info(
      { members: members.size },
      "alternative partners: the list is in force",
    );
    this.#dependencies.publish(members);
  }
}
