// The clock of a simulated process that can be killed: after the kill, its timers do not fire.

import type { Clock } from "../../../src/core/clock.ts";

export function killableClock(clock: Clock, isAlive: () => boolean): Clock {
  const alive = (action: () => void) => () => {
    if (isAlive()) action();
  };
  return {
    nowNs: () => clock.nowNs(),
    monotonicNs: () => clock.monotonicNs(),
    after: (ms, action) => clock.after(ms, alive(action)),
    every: (ms, action) => {
      const timer = clock.every(ms, () => (isAlive() ? action() : timer.cancel()));
      return timer;
    },
    sleep: async (ms, signal) => {
      await clock.sleep(ms, signal);
      if (!isAlive()) await new Promise(() => {});
    },
  };
}
