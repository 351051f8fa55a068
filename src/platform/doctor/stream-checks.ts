// The check of decoded streams: the node that has the address lookup tables. Pure.
//
// Called by src/tools/commands/doctor.ts with a configuration.

import type { Config } from "../../core/configuration/configuration.ts";
import { about, type Finding, withMeasure } from "./finding.ts";

export function checkStreamNode({
  streams,
  solana,
}: Pick<Config, "streams" | "solana">): Finding[] {
  if (!streams) return [];
  const { ok, warn } = about(
    "stream-lookups",
    "Filters match accounts from address lookup tables only if a node provides the tables.",
  );
  const found = solana
    ? ok("address lookup tables are read from the node of solana.rpc")
    : warn(
        "address lookup tables are not resolved, because solana.rpc is not configured",
        "set solana.rpc to a node of the cluster",
      );
  return [withMeasure(found)];
}
