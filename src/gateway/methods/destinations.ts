// getDestinations, addDestination, updateDestination, removeDestination, challengeDestination,
// proveDestination: the shred destinations of an account.
//
// Called through method-table.ts. A caller can access only destinations of its own account. Times are ISO
// 8601 in UTC.

import type { Destination } from "../../client/responses.ts";
import { retryAfterOf, ShredwayError } from "../../core/errors.ts";
import { adviceFor } from "../../shreds/destinations/destination-rules.ts";
import {
  type AccountDestination,
  type Destinations,
  destinationStates,
  pauseReasons,
  proofKinds,
} from "../../shreds/destinations/destination-types.ts";
import {
  boolean,
  closed,
  described,
  enumOf,
  listOf,
  orNull,
  schemaOf,
  string,
  time,
} from "../schema/json-schema.ts";
import { type ArgsOf, type Param, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { flag, optionsOf, requiredField, switchField, text } from "../schema/shapes.ts";
import type { ShredSales } from "./dependencies.ts";
import { type Call, type MethodTable, method } from "./method.ts";

/** Throws ShredwayError "registration_off". */
export function salesOf({ dependencies }: Pick<Call, "dependencies">): ShredSales {
  if (dependencies.shreds) return dependencies.shreds;
  throw new ShredwayError(
    "registration_off",
    "this service does not sell shreds: tips.shredAddresses is not configured",
  );
}

export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** null: the event has not occurred. */
function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : timeText(ms);
}

/** A destination as callers and the portal see it. */
export function destinationFacts(
  destinations: Destinations,
  destination: AccountDestination,
): Destination {
  const refusal = destinations.refusalOf(destination.id);
  const nextChallengeMs = destinations.nextChallengeMs(destination.id);
  return {
    id: destination.id,
    region: destination.region,
    address: destination.address,
    state: destination.state,
    createdAt: timeText(destination.createdMs),
    provedAt: timeOrNull(destination.provedMs),
    provedBy: destination.provedBy,
    proofEndsAt: timeOrNull(destination.proofEndsMs),
    pausedAt: timeOrNull(destination.pausedMs),
    pauseReason: destination.pauseReason,
    refusal,
    recovered: destination.recovered,
    nextChallengeAt: timeOrNull(nextChallengeMs),
    advice: refusal === null ? adviceFor(destination, nextChallengeMs) : null,
  };
}

/** Sets the Retry-After header if `work` rejects with a retry time, as challenges and nonces do. */
export async function withRetryAfter<T>(call: Call, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const seconds = retryAfterOf(error);
    if (seconds !== undefined) call.setRetryAfter(seconds);
    throw error;
  }
}

function list(call: Call): Destination[] {
  const { destinations } = salesOf(call);
  const all = destinations.ofAccount(call.key.accountId);
  return all.map((each) => destinationFacts(destinations, each));
}

const recoveredText =
  "experimental: also send shreds that the relay recovered before they arrive; " +
  "requires relay.deshred of the service";

const addParams = {
  destination: required(
    optionsOf("NewDestination", {
      region: requiredField(text(), "one of the service's regions"),
      address: requiredField(text(), "ip:port; IPv6 in brackets"),
      recovered: switchField(recoveredText),
    }),
    "where the service sends shreds",
  ),
};

async function add(call: Call, { destination }: ArgsOf<typeof addParams>): Promise<Destination> {
  const { destinations } = salesOf(call);
  const { region, address, recovered } = destination;
  const account = { id: call.key.accountId, name: call.key.accountName };
  const adding = destinations.add(account, region, address, { recovered });
  return destinationFacts(destinations, await withRetryAfter(call, adding));
}

const idSchema = schemaOf<string>({ type: "string", pattern: "^d_[0-9a-f]{12}$" });
/** The parameter of methods about one destination. */
export const destinationId: Param<string> = required(
  text({ examples: [samples.destination] }),
  "id of one of the account's destinations",
);

const updateParams = {
  id: destinationId,
  changes: required(
    optionsOf("DestinationChanges", { recovered: requiredField(flag, recoveredText) }),
    "new settings of the destination",
  ),
};

async function update(call: Call, args: ArgsOf<typeof updateParams>): Promise<Destination> {
  const { destinations } = salesOf(call);
  const updated = await destinations.update(call.key.accountId, args.id, args.changes);
  return destinationFacts(destinations, updated);
}

async function remove(call: Call, args: { readonly id: string }): Promise<true> {
  await salesOf(call).destinations.remove(call.key.accountId, args.id);
  return true;
}

async function challenge(call: Call, args: { readonly id: string }): Promise<Destination> {
  const { destinations } = salesOf(call);
  const challenging = destinations.challenge(call.key.accountId, args.id);
  return destinationFacts(destinations, await withRetryAfter(call, challenging));
}

const proofParams = {
  id: destinationId,
  token: required(text({ examples: [samples.token] }), "token of a challenge: 32 hex digits"),
};

async function prove(call: Call, args: ArgsOf<typeof proofParams>): Promise<Destination> {
  const { destinations } = salesOf(call);
  const proved = await destinations.prove(call.key.accountId, args.id, args.token);
  return destinationFacts(destinations, proved);
}

const destinationSchema = closed<Destination>("Destination", {
  id: idSchema,
  region: string,
  address: described("ip:port", string),
  state: enumOf(destinationStates),
  createdAt: time,
  provedAt: orNull(time),
  provedBy: orNull(enumOf(proofKinds)),
  proofEndsAt: orNull(
    described("when the destination is paused unless it is verified again", time),
  ),
  pausedAt: orNull(time),
  pauseReason: orNull(enumOf(pauseReasons)),
  refusal: orNull(described("why nothing is sent there in any state", string)),
  recovered: described("experimental: whether it also receives recovered shreds", boolean),
  nextChallengeAt: orNull(described("when a challenge follows without a request", time)),
  advice: orNull(described("what starts or resumes the shreds; null: nothing is needed", string)),
});
const destinationResult = { name: "destination", schema: destinationSchema };

const sample = {
  id: samples.destination,
  region: samples.region,
  address: samples.address,
  state: "unproved",
  createdAt: samples.time,
  provedAt: null,
  provedBy: null,
  proofEndsAt: null,
  pausedAt: null,
  pauseReason: null,
  refusal: null,
  recovered: false,
  nextChallengeAt: samples.laterTime,
  advice: "answer the challenge, or pass its token to proveDestination",
} as const;
const provedSample = {
  ...sample,
  state: "active",
  provedAt: samples.laterTime,
  provedBy: "call",
  proofEndsAt: samples.nextDay,
  advice: null,
} as const;

const scopes = ["shreds"] as const;
const available = salesOf;

export const destinationMethods: MethodTable = {
  getDestinations: method({
    scopes,
    summary: "Lists the account's destinations, oldest first.",
    available,
    params: {},
    result: { name: "destinations", schema: listOf(destinationSchema) },
    errors: ["registration_off"],
    example: { params: [], result: [provedSample] },
    run: list,
  }),
  addDestination: method({
    scopes,
    summary: "Adds an unverified destination, and sends the first challenge at once.",
    available,
    params: addParams,
    result: destinationResult,
    errors: ["registration_off", "address_invalid", "destination_refused", "store_failed"],
    example: {
      params: [{ region: samples.region, address: samples.address }],
      result: sample,
    },
    run: add,
  }),
  updateDestination: method({
    scopes,
    summary: "Switches recovered shreds (experimental) on or off.",
    available,
    params: updateParams,
    result: destinationResult,
    errors: ["registration_off", "destination_unknown", "destination_refused", "store_failed"],
    example: {
      params: [samples.destination, { recovered: true }],
      result: { ...provedSample, recovered: true },
    },
    run: update,
  }),
  removeDestination: method({
    scopes,
    summary: "Removes a destination.",
    available,
    params: { id: destinationId },
    result: { name: "isRemoved", schema: schemaOf<true>({ type: "boolean", const: true }) },
    errors: ["registration_off", "destination_unknown", "store_failed"],
    example: { params: [samples.destination], result: true },
    run: remove,
  }),
  challengeDestination: method({
    scopes,
    summary: "Sends up to three more challenges to a destination.",
    available,
    params: { id: destinationId },
    result: destinationResult,
    errors: ["registration_off", "destination_unknown", "destination_refused", "store_failed"],
    example: { params: [samples.destination], result: sample },
    run: challenge,
  }),
  proveDestination: method({
    scopes,
    summary: "Verifies a destination with the token of a challenge.",
    available,
    params: proofParams,
    result: destinationResult,
    errors: ["registration_off", "destination_unknown", "proof_refused", "store_failed"],
    example: { params: [samples.destination, samples.token], result: provedSample },
    run: prove,
  }),
};
