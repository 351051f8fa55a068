// The result of a run of the simulation.

import type { Violation } from "./relay-checks.ts";

export interface RunResult {
  /** A hash of everything that happened. */
  readonly digest: string;
  readonly steps: number;
  readonly packets: number;
  readonly sent: number;
  /** The part of `sent` that went to destinations of customers. */
  readonly sentToCustomers: number;
  /** Submissions to the gateway that were acknowledged. */
  readonly accepted: number;
  /** The part of `accepted` that landed. */
  readonly landed: number;
  /** Requests that the fast path has sent before they were read. */
  readonly taken: number;
  readonly simulatedMs: number;
  /** The part of `simulatedMs` in quiet periods. */
  readonly quietMs: number;
  readonly violation: Violation | null;
}
