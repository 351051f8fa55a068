// getTipAccounts, getShredTipAccounts and getRegions: where tips are paid to, and where the service is
// reached.
//
// Called through table.ts. Each answer begins with another address: callers who take the first one
// spread over all of them, and no address's write lock becomes the bottleneck.

import { scopes } from "../../accounts/types.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../json-rpc/json-text.ts";
import type { Call, MethodTable } from "../method.ts";
import { Config, text } from "../params.ts";

function rotated<T>(list: readonly T[], turn: number): T[] {
  const start = list.length === 0 ? 0 : turn % list.length;
  return [...list.slice(start), ...list.slice(0, start)];
}

function askedRegion([given]: readonly Json[]): string | null {
  if (given === undefined || given === null) return null;
  if (typeof given === "string") return given;
  const config = new Config("params[0]", given);
  return config.has("region") ? text("params[0].region", config.field("region")) : null;
}

type AddressList = "tipAddresses" | "shredTipAddresses";

function tipAccounts(call: Call, params: readonly Json[], list: AddressList): string[] {
  const { regions } = call.settings;
  const name = askedRegion(params);
  const region = name === null ? regions[0] : regions.find((each) => each.name === name);
  if (region) return rotated(region[list], call.nextTurn());
  const known = regions.map((each) => each.name).join(", ");
  throw new ShredwayError("value_invalid", `region: expected one of ${known}, got ${quote(name)}`);
}

function regionList({ settings }: Call): unknown {
  return settings.regions.map((region, index) => ({
    name: region.name,
    url: region.url,
    isThis: index === 0,
    tipAddresses: region.tipAddresses,
    shredTipAddresses: region.shredTipAddresses,
  }));
}

export const regionMethods: MethodTable = {
  getTipAccounts: { scopes, run: (call, params) => tipAccounts(call, params, "tipAddresses") },
  getShredTipAccounts: {
    scopes,
    run: (call, params) => tipAccounts(call, params, "shredTipAddresses"),
  },
  getRegions: { scopes, run: regionList },
};
