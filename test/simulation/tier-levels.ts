// The tier of a customer by the model, remembered until it can change.
//
// The model sums all tips again for every question. Its result changes only when a tip counts or leaves the
// window, and when a grace period ends.

import { type ModelTip, modelAccount } from "../shreds/tiers/tier-model.ts";
import { tierNames } from "./scenario.ts";
import { tierRules } from "./service-life.ts";

export type OwnTip = Omit<ModelTip, "accountId">;

/** The times at which the result can change, each once, in order. */
function changesOf(tips: readonly OwnTip[]): number[] {
  const { windowMs, graceMs } = tierRules;
  const times = new Set<number>();
  // A grace period may follow another one for each tier.
  for (const { registeredMs, effectiveMs } of tips) {
    for (let graces = 0; graces <= tierNames.length; graces++) {
      times.add(effectiveMs + graces * graceMs);
      times.add(registeredMs + windowMs + graces * graceMs);
    }
  }
  return [...times].toSorted((a, b) => a - b);
}

/** The tiers of one list of tips, which does not change. */
export class TierLevels {
  readonly #tips: readonly ModelTip[];
  readonly #changesMs: readonly number[];
  /** Levels after each change that was asked for. */
  readonly #levels: number[] = [];
  /** The place of the last answer: questions are seldom far from each other. */
  #place = -1;

  constructor(accountId: string, tips: readonly OwnTip[]) {
    this.#tips = tips.map((tip) => ({ ...tip, accountId }));
    this.#changesMs = changesOf(tips);
  }

  /** The index of the tier at the end of this millisecond; -1: none. */
  levelAt(untilMs: number): number {
    const changes = this.#changesMs;
    let place = this.#place;
    while (place >= 0 && (changes[place] ?? 0) > untilMs) place--;
    while (place + 1 < changes.length && (changes[place + 1] ?? 0) <= untilMs) place++;
    this.#place = place;
    if (place < 0) return -1;
    const level = this.#levels[place] ?? this.#levelAfter(changes[place] ?? 0);
    this.#levels[place] = level;
    return level;
  }

  #levelAfter(changedMs: number): number {
    const accountId = this.#tips[0]?.accountId ?? "";
    const { tier } = modelAccount(tierRules, accountId, this.#tips, changedMs).state;
    return tierNames.indexOf(tier ?? "");
  }
}
