// getTipAccounts, getShredTipAccounts and getRegions: tip addresses, and the regions of the
// service.
//
// Called through method-table.ts. The address lists rotate from call to call: callers that use the first
// address spread over all of them, so no address's write lock becomes a bottleneck. On request, the
// addresses of submissions are ordered by their write locks in recent blocks instead.

import type { Region } from "../../client/responses.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import { isJsonObject } from "../../core/json-rpc/json-text.ts";
import { scopes } from "../accounts/types.ts";
import { boolean, closed, listOf, orNull, publicKey, string } from "../schema/json-schema.ts";
import { optional } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import {
  type Field,
  field,
  invalid,
  oneOf,
  optionsOf,
  readText,
  type Shape,
} from "../schema/shapes.ts";
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

const regionField: Field<string | null> = {
  schema: { type: "string", description: "name of the region" },
  isRequired: false,
  // Absent means the default; null is not a region name.
  readerOf: (what, name) => (given) =>
    Object.hasOwn(given, name) ? readText(`${what}.${name}`, given[name]) : null,
};

const namedRegion = optionsOf("NamedRegion", { region: regionField });

const orders = ["rotation", "contention"] as const;
const accountChoice = optionsOf("TipAccountChoice", {
  region: regionField,
  orderBy: field(oneOf(orders), {
    description:
      "rotation: from call to call; contention: ascending by write locks in the blocks of the last minute",
    absent: "rotation",
    fallback: "rotation",
  }),
});

/** A text is the name of the region. `ofText`: the options that it stands for. */
function textOr<T>(options: Shape<T>, ofText: (text: string) => T): Shape<T> {
  return {
    schema: { anyOf: [{ type: "string" }, options.schema] },
    reader: (what) => {
      const read = options.reader(what);
      return (json) => {
        if (typeof json === "string") return ofText(json);
        if (isJsonObject(json) || json === undefined || json === null) return read(json);
        throw invalid(what, "the name of a region, or an object", json);
      };
    },
  };
}

const regionMeaning = "name of the region; default: the region of this service";
const params = {
  region: optional(
    textOr(namedRegion, (region) => ({ region })),
    regionMeaning,
  ),
};
const choiceParams = {
  choice: optional(
    textOr(accountChoice, (region) => ({ region, orderBy: "rotation" as const })),
    `${regionMeaning}; and the order`,
  ),
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

/** The least contended address first; equal ones rotate. Throws ShredwayError "contention_unknown". */
function byContention(
  call: Offer & Pick<MethodContext, "dependencies">,
  name: string | null,
): string[] {
  const addresses = tipAccounts(call, name, "tipAddresses");
  const observed = call.dependencies.writeLocks?.();
  if (!observed) {
    throw new ShredwayError(
      "contention_unknown",
      "orderBy: contention needs a relay that decodes transactions: relay.deshred; expected rotation",
    );
  }
  const all = new Set(call.settings.regions.flatMap(({ tipAddresses }) => tipAddresses));
  const locks = observed.locksOf(addresses, [...all]);
  return addresses
    .map((address, i) => ({ address, locks: locks[i] ?? 0 }))
    .toSorted((a, b) => a.locks - b.locks)
    .map(({ address }) => address);
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
  result: { name: "addresses", schema: listOf(publicKey) },
} as const;

const rotation = "The order rotates from call to call: use the first one.";

export const regionMethods: MethodTable = {
  getTipAccounts: countedOpenMethod({
    ...addresses,
    summary: "Returns the tip addresses of submissions.",
    params: choiceParams,
    description: `${rotation} With \`orderBy: "contention"\`, the address with the fewest write locks in the blocks of the last minute is the first one. Without a key, an address may call it 10 times a second.`,
    errors: ["contention_unknown"],
    example: { params: [], result: [samples.tipAddress] },
    run: (context, { choice: { region, orderBy } }) =>
      orderBy === "contention"
        ? byContention(context, region)
        : tipAccounts(context, region, "tipAddresses"),
  }),
  getShredTipAccounts: method({
    ...addresses,
    scopes,
    params,
    summary: "Returns the addresses of tips for shreds.",
    description: rotation,
    errors: ["registration_off"],
    example: { params: [], result: [samples.shredTipAddress] },
    run: (call, { region: { region } }) => tipAccounts(call, region, "shredTipAddresses"),
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
