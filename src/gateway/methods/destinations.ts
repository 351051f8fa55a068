// getDestinations, addDestination, removeDestination, challengeDestination, proveDestination: where an
// account has its shreds sent to.
//
// Called through table.ts. Only of the caller's own account: another one's are unknown. Times are ISO
// 8601 in UTC.

import type { AccountDestination, Destinations } from "../../accounts/destination-types.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../json-rpc/json-text.ts";
import type { Call, MethodTable } from "../method.ts";
import { Config, text } from "../params.ts";
import type { ShredSales } from "../parts.ts";

/** Throws "registration_off". */
export function salesOf({ parts }: Pick<Call, "parts">): ShredSales {
  if (parts.shreds) return parts.shreds;
  throw new ShredwayError(
    "registration_off",
    "expected a service that sells shreds, but tips for shreds are not registered here",
  );
}

/** null: it did not happen. */
export function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

function destinationJson(destinations: Destinations, destination: AccountDestination): object {
  return {
    id: destination.id,
    region: destination.region,
    address: destination.address,
    state: destination.state,
    createdAt: timeOrNull(destination.createdMs),
    provedAt: timeOrNull(destination.provedMs),
    provedBy: destination.provedBy,
    proofEndsAt: timeOrNull(destination.proofEndsMs),
    pausedAt: timeOrNull(destination.pausedMs),
    pauseReason: destination.pauseReason,
    refusal: destinations.refusalOf(destination.id),
  };
}

/** Of what says itself when to ask again: challenges have a limit of their own, nonces take their time. */
export async function withRetryAfter<T>(call: Call, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const seconds = error instanceof ShredwayError ? error.details["retryAfterSeconds"] : undefined;
    if (typeof seconds === "number") call.tellRetryAfter(seconds);
    throw error;
  }
}

function list(call: Call): object[] {
  const { destinations } = salesOf(call);
  const all = destinations.ofAccount(call.key.accountId);
  return all.map((each) => destinationJson(destinations, each));
}

async function add(call: Call, [given]: readonly Json[]): Promise<object> {
  const { destinations } = salesOf(call);
  const config = new Config("params[0]", given);
  const region = text("params[0].region", config.field("region"));
  const address = text("params[0].address", config.field("address"));
  const account = { id: call.key.accountId, name: call.key.accountName };
  const adding = destinations.add(account, region, address);
  return destinationJson(destinations, await withRetryAfter(call, adding));
}

async function remove(call: Call, [given]: readonly Json[]): Promise<boolean> {
  const { destinations } = salesOf(call);
  await destinations.remove(call.key.accountId, text("params[0]", given));
  return true;
}

async function challenge(call: Call, [given]: readonly Json[]): Promise<object> {
  const { destinations } = salesOf(call);
  const id = text("params[0]", given);
  const challenging = destinations.challenge(call.key.accountId, id);
  return destinationJson(destinations, await withRetryAfter(call, challenging));
}

async function prove(call: Call, [givenId, givenToken]: readonly Json[]): Promise<object> {
  const { destinations } = salesOf(call);
  const id = text("params[0]", givenId);
  const token = text("params[1]", givenToken);
  return destinationJson(destinations, await destinations.prove(call.key.accountId, id, token));
}

const scopes = ["shreds"] as const;

export const destinationMethods: MethodTable = {
  getDestinations: { scopes, run: list },
  addDestination: { scopes, run: add },
  removeDestination: { scopes, run: remove },
  challengeDestination: { scopes, run: challenge },
  proveDestination: { scopes, run: prove },
};
