// The list of alternative partners: configured members and those of a URL, without denied ones.
//
// The service creates it, applies reloads and passes each new list to the tracker. The URL is
// fetched at the configured interval, and soon again after a failure. An unusable list changes
// nothing: the last good list of that URL stays. Until the first response, only configured members
// count.

import type { Clock, Timer } from "../../core/clock.ts";
import type { Config } from "../../core/configuration/configuration.ts";
import { messageOf } from "../../core/errors.ts";
import { FailureStreak } from "../../core/failure-streak.ts";
import type { Logger } from "../../core/log.ts";

const retryMs = 15_000;
const msPerMinute = 60_000;
const logEvery = 20;

type MemberConfig = Pick<Config, "tracker" | "routes">;

interface PartnerMembersDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  /** Implemented by solana/member-list.ts. Its errors must not contain the URL. */
  readonly fetchMembers: (url: string) => Promise<ReadonlySet<string>>;
  /** Called with all members except denied ones, initially and after every change. */
  readonly publish: (members: ReadonlySet<string>) => void;
}

/** Configured members; by default the leaders of the partner's routes. */
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
  /** Members from the present URL. */
  #listed: ReadonlySet<string> | null = null;
  #published: ReadonlySet<string> | null = null;
  #timer: Timer | undefined;
  /** Identifies the fetches of the present URL; responses of earlier ones are ignored. */
  #run = {};
  readonly #failures = new FailureStreak(logEvery);

  /** Publishes the configured members and starts fetching the URL, if one is configured. */
  constructor(dependencies: PartnerMembersDependencies, config: MemberConfig) {
    this.#dependencies = dependencies;
    this.#config = config;
    this.#publish();
    this.#begin();
  }

  /** Applies a new configuration. Members from another URL no longer count. */
  apply(config: MemberConfig): void {
    const { url, refreshMinutes } = this.#config.tracker;
    this.#config = config;
    const isOtherUrl = config.tracker.url !== url;
    if (isOtherUrl) this.#listed = null;
    this.#publish();
    if (isOtherUrl || config.tracker.refreshMinutes !== refreshMinutes) this.#begin();
  }

  /** Stops fetching and publishing. */
  close(): void {
    this.#run = {};
    this.#timer?.cancel();
  }

  #begin(): void {
    this.close();
    this.#failures.end();
    const { url } = this.#config.tracker;
    if (url !== undefined) void this.#fetch(url, this.#run);
  }

  async #fetch(url: string, run: object): Promise<void> {
    const { fetchMembers, clock, log } = this.#dependencies;
    try {
      const listed = await fetchMembers(url);
      if (this.#run !== run) return;
      if (this.#failures.isFailing)
        log.info("alternative partners: the member list is available again");
      this.#failures.end();
      this.#listed = listed;
      this.#publish();
    } catch (error) {
      if (this.#run !== run) return;
      this.#failed(messageOf(error));
    }
    const { refreshMinutes } = this.#config.tracker;
    const delayMs = this.#failures.isFailing ? retryMs : refreshMinutes * msPerMinute;
    this.#timer = clock.after(delayMs, () => void this.#fetch(url, run));
  }

  #failed(text: string): void {
    if (!this.#failures.add(text)) return;
    const state = this.#listed ? "the last list stays in force" : "only configured members count";
    this.#dependencies.log.warn(
      `alternative partners: the member list is not available, ${state}: ${text}`,
    );
  }

  #publish(): void {
    const members = new Set([...configuredMembers(this.#config), ...(this.#listed ?? [])]);
    for (const denied of this.#config.tracker.denied) members.delete(denied);
    if (isSameSet(members, this.#published)) return;
    this.#published = members;
    this.#dependencies.log.info(
      { members: members.size },
      "alternative partners: a new member list is in force",
    );
    this.#dependencies.publish(members);
  }
}
