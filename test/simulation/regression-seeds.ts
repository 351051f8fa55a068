// Seeds that once found a defect, of the product or of the checks. One line each.

export interface RegressionSeed {
  readonly seed: number;
  /** Slots of the run. */
  readonly slots: number;
  /** The defect that it found. */
  readonly found: string;
}

export const regressionSeeds: readonly RegressionSeed[] = [
  { seed: 11, slots: 115, found: "checks: a forged signature while its destination fails" },
  { seed: 2359067439, slots: 40, found: "checks: a reload while the service starts" },
];
