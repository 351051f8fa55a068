// Seeds that once found a defect, of the product or of the checks. One line each.

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
  { seed: 11, slots: 115, found: "checks: a forged signature while its destination fails" },
  { seed: 70, slots: 55, found: "a restart ended the challenges of a new destination" },
  { seed: 109, slots: 115, found: "checks: a refused replay while its destination fails" },
  { seed: 113, slots: 100, found: "checks: the clock is set forward twice within 3 s" },
  { seed: 205, slots: 140, found: "checks: a tip is counted after the clock was set forward" },
  { seed: 2359067439, slots: 40, found: "checks: a reload while the service starts" },
  { seed: 54, slots: 140, found: "checks: a tip is registered after the clock was set back" },
  {
    seed: 92,
    slots: 60,
    found: "a node that lags by two advances brought an old nonce value back",
  },
  { seed: 250, slots: 146, found: "checks: a start that cannot take over while the disk fails" },
  { seed: 1023, slots: 140, found: "a refusal was read as the answer to the next request" },
  { seed: 81, slots: 150, found: "checks: the cluster stops before it has confirmed a block" },
  { seed: 194, slots: 150, found: "checks: a refusal of a nonce in use that is read late" },
  { seed: 5004, slots: 150, found: "checks: a removal that failed with the disk, after a crash" },
  {
    seed: 6,
    slots: 150,
    found: "a repeated call after a restart was sent again before its record was read",
  },
  {
    seed: 1142,
    slots: 100,
    found: "checks: refusals and failed datagrams of shreds that came from several sources",
  },
  {
    seed: 127,
    slots: 150,
    found: "a timeline lacked the results of a call that another one had replaced",
  },
  {
    seed: 10142,
    slots: 100,
    found: "listeners heard of a call, and not of the end from before a restart",
  },
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
    seed: 18,
    slots: 150,
    found: "the end of the last open transaction was not written again after a write had failed",
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
    seed: 2,
    slots: 150,
    hasQuietPeriods: true,
    found: "a connection was cut at the end of a response that was read slowly",
  },
];
