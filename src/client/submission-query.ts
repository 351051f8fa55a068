// The query of a submission's URL, from the options of the call.

import type { SubmissionOptions } from "./options.ts";

export function queryOf({
  swqosOnly = false,
  mevProtect = false,
  onReceipt,
}: SubmissionOptions): string {
  const switches = [
    swqosOnly && "swqos-only=true",
    mevProtect && "mev-protect=true",
    onReceipt !== undefined && "receipt=1",
  ];
  const set = switches.filter((each) => each !== false);
  return set.length === 0 ? "" : `?${set.join("&")}`;
}
