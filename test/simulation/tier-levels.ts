// The tier of a customer by the model, remembered until it can change.
//
// The model sums all tips again for every question. Its result changes only when a tip counts or leaves the
// window, and when a grace period ends.

import { type ModelTip, modelAccount } from "../shreds/tiers/tier-model.ts";
import { tierNames } from "./scenario.ts";
import { tierRules } from "./service-life.ts";

export type OwnTip = Omit<ModelTip, "accountId">;

const rememberedMax = 2_000;

/** The last time until `untilMs` at which the result can have changed; -Infinity: none. */
function lastChangeMs(tips: readonly OwnTip[], untilMs: number): number {
  const { windowMs, graceMs } = tierRules;
  let lastMs = Number.NEGATIVE_INFINITY;
  // A grace period may follow another one for each tier.
  for (const { registeredMs, effectiveMs } of tips) {
    for (let graces = 0; graces <= tierNames.length; graces++) {
      const countsMs = effectiveMs + graces * graceMs;
      const leavesMs = registeredMs + windowMs + graces * graceMs;
      if (countsMs <= untilMs && countsMs > lastMs) lastMs = countsMs;
      if (leavesMs <= untilMs && leavesMs > lastMs) lastMs = leavesMs;
    }
  }
  return lastMs;
}

export class TierLevels {
  /** Levels by the tips and the last change. */
  readonly #known = new Map<string, number>();

  /** The index of the tier at the end of this millisecond; -1: none. */
  levelAt(accountId: string, tips: readonly OwnTip[], untilMs: number): number {
    const changedMs = lastChangeMs(tips, untilMs);
    if (changedMs === Number.NEGATIVE_INFINITY) return -1;
    const list = tips
      .map((tip) => `${tip.order},${tip.lamports},${tip.registeredMs},${tip.effectiveMs}`)
      .join(" ");
    const key = `${accountId} ${changedMs} ${list}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const own = tips.map((tip) => ({ ...tip, accountId }));
    const { tier } = modelAccount(tierRules, accountId, own, changedMs).state;
    const level = tierNames.indexOf(tier ?? "");
    if (this.#known.size >= rememberedMax) this.#known.clear();
    this.#known.set(key, level);
    return level;
  }
}
