// getTipAccounts, getShredTipAccounts and getRegions: tip addresses, and the regions of the
// service.
//
// Called through method-table.ts. The address lists rotate from call to call: callers that use the first
// address spread over all of them, so no address's write lock becomes a bottleneck.

import type { Region } from "../../client/responses.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import { scopes } from "../accounts/types.ts";
import { boolean, closed, listOf, orNull, publicKey, string } from "../schema/json-schema.ts";
import { optional } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { type Field, optionsOf, readText, type Shape } from "../schema/shapes.ts";
import {
  type Call,
  countedOpenMethod,
  type MethodContext,
  type MethodTable,
  method,
} from "./method.ts";

function rotated<T>(list: readonly T[], turn: number): T[] {
  const start = list.length === 0 ? 0 : turn % list.length;
  return [...list.slice(start), ...list.slice(0, start)];
}

const namedRegion = optionsOf("NamedRegion", {
  region: {
    schema: { type: "string", description: "name of the region" },
    isRequired: false,
    // Absent means the default; null is not a region name.
    readerOf: (what, name) => (given) =>
      Object.hasOwn(given, name) ? readText(`${what}.${name}`, given[name]) : null,
  } satisfies Field<string | null>,
});

/** null: the region of this machine. */
const regionShape: Shape<string | null> = {
  schema: { anyOf: [{ type: "string" }, namedRegion.schema] },
  reader: (what) => {
    const readNamed = namedRegion.reader(what);
    return (json) => (typeof json === "string" ? json : readNamed(json).region);
  },
};

const params = {
  region: optional(regionShape, "name of the region; default: the region of this service"),
};

type AddressList = "tipAddresses" | "shredTipAddresses";

type Offer = Pick<MethodContext, "settings" | "nextTurn">;

function tipAccounts(call: Offer, name: string | null, list: AddressList): string[] {
  const { regions, withholdsShredTips } = call.settings;
  const found = name === null ? regions[0] : regions.find((each) => each.name === name);
  if (found && list === "shredTipAddresses" && found[list].length === 0 && withholdsShredTips) {
    throw new ShredwayError(
      "registration_off",
      "no shred-tip address is offered at present: the nodes of this service do not have one in common",
    );
  }
  if (found) return rotated(found[list], call.nextTurn());
  const known = regions.map((each) => each.name).join(", ");
  throw new ShredwayError(
    "value_invalid",
    `region: unknown region ${quote(name)}; expected one of ${known}`,
  );
}

function regionList({ settings }: Call): Region[] {
  return settings.regions.map((region, index) => ({
    name: region.name,
    url: region.url,
    isThis: index === 0,
    tipAddresses: region.tipAddresses,
    shredTipAddresses: region.shredTipAddresses,
  }));
}

const addresses = {
  params,
  result: { name: "addresses", schema: listOf(publicKey) },
} as const;

const rotation = "The order rotates from call to call: use the first one.";

export const regionMethods: MethodTable = {
  getTipAccounts: countedOpenMethod({
    ...addresses,
    summary: "Returns the tip addresses of submissions.",
    description: `${rotation} Without a key, an address may call it 10 times a second.`,
    errors: [],
    example: { params: [], result: [samples.tipAddress] },
    run: (context, { region: name }) => tipAccounts(context, name, "tipAddresses"),
  }),
  getShredTipAccounts: method({
    ...addresses,
    scopes,
    summary: "Returns the addresses of tips for shreds.",
    description: rotation,
    errors: ["registration_off"],
    example: { params: [], result: [samples.shredTipAddress] },
    run: (call, { region: name }) => tipAccounts(call, name, "shredTipAddresses"),
  }),
  getRegions: method({
    scopes,
    summary: "Returns the regions of the service with their URLs and tip addresses.",
    params: {},
    result: {
      name: "regions",
      schema: listOf(
        closed<Region>("Region", {
          name: string,
          url: orNull(string),
          isThis: { ...boolean, description: "true for the region that responds" },
          tipAddresses: listOf(publicKey),
          shredTipAddresses: listOf(publicKey),
        }),
        { minItems: 1 },
      ),
    },
    errors: [],
    example: {
      params: [],
      result: [
        {
          name: samples.region,
          url: "https://frankfurt.example.com",
          isThis: true,
          tipAddresses: [samples.tipAddress],
          shredTipAddresses: [samples.shredTipAddress],
        },
      ],
    },
    run: regionList,
  }),
};
