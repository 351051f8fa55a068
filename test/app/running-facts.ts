// Facts about a running service without any further part, for tests of its readiness.

import type { ReadinessFacts } from "../../src/app/readiness.ts";

export const runningFacts: ReadinessFacts = {
  phase: "running",
  unworkableParts: [],
  lastShredNs: null,
  trafficProblem: null,
  subscriptions: [],
  subscribers: null,
  discovery: null,
  isAuthenticated: false,
  schedule: undefined,
  slot: null,
  nowNs: 0n,
  gateway: null,
};
