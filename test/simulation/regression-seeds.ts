// Seeds that once found a defect, of the product or of the checks. One line each. A change of the events that a
// seed draws makes its run another one: remove it then, because the tests of the corrected parts remain.

export interface RegressionSeed {
  readonly seed: number;
  /** Slots of the run. */
  readonly slots: number;
  /** Without it, as with --busy. */
  readonly hasQuietPeriods?: boolean;
  /** The defect that it found. */
  readonly found: string;
}

export const regressionSeeds: readonly RegressionSeed[] = [
  {
    seed: 5078,
    slots: 100,
    found: "checks: a forged copy of a shred while its destination fails",
  },
  {
    seed: 20232,
    slots: 100,
    found: "checks: a call without a key, and the same one with a key before its answer",
  },
  {
    seed: 183,
    slots: 150,
    found: "checks: malformed bytes behind a request that is answered late",
  },
  {
    seed: 235,
    slots: 150,
    found: "the slot was up to 11 slots late for 17 s after the clock was set forward",
  },
  {
    seed: 200119561,
    slots: 60,
    found: "checks: one destination lacks what was refused, and a datagram to another one failed",
  },
  {
    seed: 3587217199,
    slots: 60,
    found: "a blockhash counted as abandoned after a node that lagged had caught up",
  },
  {
    seed: 810000487,
    slots: 60,
    found: "checks: a crash undid a proof that waited for the disk, and its receiver was closed",
  },
  {
    seed: 810100015,
    slots: 60,
    found: "checks: the disk failed while the operator created the keys",
  },
  {
    seed: 820100422,
    slots: 60,
    found: "copies for leaders waited for up to 30 s for a process that did not start",
  },
  {
    seed: 830100376,
    slots: 60,
    found: "after a failure, the node was asked for its slot only after it had become untrusted",
  },
  {
    seed: 1356666746,
    slots: 60,
    found: "checks: the clock was set back before the model of the tiers had read it",
  },
  {
    seed: 624,
    slots: 150,
    found: "checks: a destination lost its tier and got one again before the counters were read",
  },
  {
    seed: 896843447,
    slots: 60,
    hasQuietPeriods: true,
    found: "slots seemed long after a long stop of the cluster with skipped slots",
  },
  {
    seed: 3237259150,
    slots: 60,
    hasQuietPeriods: true,
    found: "a blockhash from a standstill expired before its block was confirmed",
  },
  {
    seed: 2333328047,
    slots: 60,
    found: "checks: three creations of a nonce account expired, and its caller got nonce_failed",
  },
  {
    seed: 2386246199,
    slots: 60,
    hasQuietPeriods: true,
    found: "checks: refusals of a shred of two sources, while two destinations fail",
  },
  {
    seed: 917646395,
    slots: 60,
    found: "answers of several nodes in 4 s made slots seem half as long",
  },
  {
    seed: 1891505901,
    slots: 60,
    found: "a node that lagged did not know a pair's blockhash, which seemed a spent nonce",
  },
  {
    seed: 2706479072,
    slots: 60,
    found: "the slot did not move while the node was gone, before its answers had given a duration",
  },
];
