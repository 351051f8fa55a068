// Destination rules: permitted addresses, and the result of each step.
//
// Pure. Called by destinations.ts and by the command `destinations`; both store the result. No step
// activates a destination without a valid proof.

import { destinationRefusal } from "../../core/addresses/address-classes.ts";
import {
  type AddressRange,
  type Endpoint,
  formatEndpoint,
  isInRange,
  parseAddressRange,
  parseEndpoint,
} from "../../core/addresses/addresses.ts";
import type { Config } from "../../core/configuration/configuration.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import type {
  AccountDestination,
  DestinationChoices,
  PauseReason,
  ProofKind,
} from "./destination-types.ts";

export interface DestinationSettings {
  readonly regions: readonly string[];
  /** The region of this relay, which sends unrequested challenges only to its own destinations. */
  readonly region: string;
  readonly perAccountMax: number;
  readonly denied: readonly AddressRange[];
  readonly allowPrivate: boolean;
  /** Addresses of relay.destinations, in the form of formatEndpoint. */
  readonly fixed: ReadonlySet<string>;
  readonly proofMs: number;
  /** Whether this relay recovers shreds. */
  readonly canRecover: boolean;
}

export function destinationSettingsOf({
  relay,
  delivery,
  data,
}: Pick<Config, "relay" | "delivery" | "data">): DestinationSettings {
  const [first = ""] = delivery.regions;
  const region = delivery.region ?? first;
  return {
    // On its own database, no other relay serves the other regions.
    regions: data.postgres === undefined ? [region] : delivery.regions,
    region,
    perAccountMax: delivery.destinationsPerAccount,
    denied: delivery.denied.map(parseAddressRange),
    allowPrivate: relay.allowPrivateDestinations,
    fixed: new Set(relay.destinations.map(({ address }) => formatEndpoint(parseEndpoint(address)))),
    proofMs: delivery.proof.hours * 3_600_000,
    canRecover: relay.deshred,
  };
}

/** Whether a packet to it would return to this machine. */
export type IsOwnListener = (endpoint: Endpoint) => boolean;

/** Lower ports belong to system services; one of them, echo (7), would answer every challenge. */
const portMin = 1024;

// A second notation of an IPv4 address: it would have two owners and evade denied ranges.
const translatedRanges = [
  "::/96",
  "::ffff:0:0:0/96",
  "64:ff9b::/96",
  "64:ff9b:1::/48",
  "2002::/16",
  "2001::/32",
].map(parseAddressRange);
/** Services that answer anyone: SSDP, WS-Discovery, mDNS, memcached. */
const servicePorts: ReadonlySet<number> = new Set([1900, 3702, 5353, 11_211]);

/** The reason why the address is rejected; null: permitted. */
export function refusalOf(
  endpoint: Endpoint,
  { denied, allowPrivate, fixed }: Pick<DestinationSettings, "denied" | "allowPrivate" | "fixed">,
  isOwnListener: IsOwnListener,
): string | null {
  const { bytes, port } = endpoint;
  const ofClass = destinationRefusal(bytes, allowPrivate);
  if (ofClass !== undefined) return ofClass;
  if (port < portMin)
    return `port ${port} is reserved for system services; use ${portMin} or above`;
  if (servicePorts.has(port))
    return `port ${port} belongs to a well-known service; use another one`;
  if (translatedRanges.some((range) => isInRange(bytes, range))) {
    return "it maps to an IPv4 address; use that address";
  }
  if (denied.some((range) => isInRange(bytes, range)))
    return "the operator denies this address range";
  if (isOwnListener(endpoint)) return "it is an address of this machine";
  return fixed.has(formatEndpoint(endpoint))
    ? "it is a destination of the operator's configuration"
    : null;
}

/** Throws ShredwayError "address_invalid", or "destination_refused" for an unknown region. */
export function checkDestination(
  region: string,
  address: string,
  settings: DestinationSettings,
  isOwnListener: IsOwnListener,
): Endpoint {
  if (!settings.regions.includes(region)) {
    const expected = `region: expected one of ${settings.regions.join(", ")}`;
    throw new ShredwayError("destination_refused", `${expected}; got ${quote(region)}`);
  }
  const endpoint = parseEndpoint(address);
  const refusal = refusalOf(endpoint, settings, isOwnListener);
  if (refusal === null) return endpoint;
  const text = formatEndpoint(endpoint);
  const reason = settings.fixed.has(text) ? "destination_refused" : "address_invalid";
  throw new ShredwayError(reason, `${text} cannot be a destination: ${refusal}`);
}

/** Throws ShredwayError "destination_refused". */
export function checkChoices(
  { recovered }: DestinationChoices,
  { canRecover }: Pick<DestinationSettings, "canRecover">,
): void {
  if (!recovered || canRecover) return;
  throw new ShredwayError(
    "destination_refused",
    "recovered: got true, but this service does not recover shreds; expected false " +
      "(the operator can set relay.deshred: true)",
  );
}

/** `random`: 6 bytes. */
export function newDestination(
  account: { readonly id: string; readonly name: string },
  place: { readonly region: string; readonly endpoint: Endpoint } & Partial<DestinationChoices>,
  { random, nowMs }: { readonly random: Uint8Array; readonly nowMs: number },
): AccountDestination {
  return {
    id: `d_${Buffer.from(random).toString("hex")}`,
    accountId: account.id,
    accountName: account.name,
    region: place.region,
    address: formatEndpoint(place.endpoint),
    createdMs: nowMs,
    state: "unproved",
    provedMs: null,
    provedBy: null,
    proofEndsMs: null,
    pausedMs: null,
    pauseReason: null,
    recovered: place.recovered ?? false,
  };
}

/** Limit of the destinations and ShredStream proxies of an account together. */
export interface DestinationLimit {
  readonly perAccountMax: number;
  /** Addresses that its proxies use now. */
  readonly leases: number;
}

/**
 * The meaning of the store's answer to a new destination. Throws ShredwayError "destination_refused".
 */
export function checkAdded(
  answer: "added" | "address_taken" | "too_many",
  { address }: AccountDestination,
  { perAccountMax, leases }: DestinationLimit,
): void {
  if (answer === "added") return;
  const ofProxies =
    leases > 0
      ? `; addresses of its ShredStream proxies count too, at present ${leases}: stop a proxy or remove a destination`
      : "";
  const message =
    answer === "address_taken"
      ? `${address} belongs to another destination`
      : `the account already has the maximum number of destinations, ${perAccountMax}${ofProxies}`;
  throw new ShredwayError("destination_refused", message);
}

export function unknownDestination(id: string): ShredwayError {
  return new ShredwayError("destination_unknown", `unknown destination ${quote(id)}`);
}

export function hasProof(destination: AccountDestination, nowMs: number): boolean {
  const { provedMs, proofEndsMs } = destination;
  return provedMs !== null && (proofEndsMs === null || proofEndsMs > nowMs);
}

const unpaused = { pausedMs: null, pauseReason: null } as const;

/** The fields of a destination that may change. */
export function isSame(one: AccountDestination, other: AccountDestination): boolean {
  return (
    one.state === other.state &&
    one.provedMs === other.provedMs &&
    one.provedBy === other.provedBy &&
    one.proofEndsMs === other.proofEndsMs &&
    one.pausedMs === other.pausedMs &&
    one.pauseReason === other.pauseReason &&
    one.recovered === other.recovered
  );
}

/** Verified by a token. The operator's pause stays. */
export function proved(
  destination: AccountDestination,
  by: Exclude<ProofKind, "operator">,
  { nowMs, proofMs }: { readonly nowMs: number; readonly proofMs: number },
): AccountDestination {
  const proof = { provedMs: nowMs, provedBy: by, proofEndsMs: nowMs + proofMs };
  if (destination.pauseReason === "operator") return { ...destination, ...proof };
  return { ...destination, ...proof, ...unpaused, state: "active" };
}

/** Approved by the operator, permanently; ends every pause. */
export function approved(destination: AccountDestination, nowMs: number): AccountDestination {
  const proof = { provedMs: nowMs, provedBy: "operator", proofEndsMs: null } as const;
  return { ...destination, ...proof, ...unpaused, state: "active" };
}

/** Paused automatically after an event; only an active one. */
export function stopped(
  destination: AccountDestination,
  reason: Exclude<PauseReason, "operator">,
  nowMs: number,
): AccountDestination {
  if (destination.state !== "active") return destination;
  if (reason === "proof_expired" && hasProof(destination, nowMs)) return destination;
  return { ...destination, state: "paused", pausedMs: nowMs, pauseReason: reason };
}

/** Paused by the operator, in any state. */
export function pausedByOperator(
  destination: AccountDestination,
  nowMs: number,
): AccountDestination {
  if (destination.pauseReason === "operator") return destination;
  return { ...destination, state: "paused", pausedMs: nowMs, pauseReason: "operator" };
}

/** Resumed by the operator: its state without the pause. This creates no proof. */
export function resumed(destination: AccountDestination, nowMs: number): AccountDestination {
  if (destination.state !== "paused") return destination;
  if (hasProof(destination, nowMs)) return { ...destination, ...unpaused, state: "active" };
  if (destination.provedMs === null) return { ...destination, ...unpaused, state: "unproved" };
  if (destination.pauseReason === "proof_expired") return destination;
  return { ...destination, pausedMs: nowMs, pauseReason: "proof_expired" };
}

/** With other choices of its account. */
export function chosen(
  destination: AccountDestination,
  { recovered }: DestinationChoices,
): AccountDestination {
  return destination.recovered === recovered ? destination : { ...destination, recovered };
}

const request = "start the receiver, then request a challenge at once with challengeDestination";

/** The step that an account can take to receive shreds; null: nothing is needed. */
export function adviceFor(
  { state, pauseReason }: AccountDestination,
  nextChallengeMs: number | null,
): string | null {
  if (state === "active") return null;
  if (pauseReason === "operator") return "the operator has paused it; ask the operator";
  if (state === "unproved" && nextChallengeMs !== null) {
    return "answer the challenge, or pass its token to proveDestination";
  }
  const next =
    nextChallengeMs === null
      ? "no challenge is planned without a request"
      : `the next one follows without a request at ${new Date(nextChallengeMs).toISOString()}`;
  if (state === "unproved") return `${request}; ${next}`;
  const problem =
    pauseReason === "icmp_unreachable" ? "no receiver was listening" : "no challenge was answered";
  return `${problem}; ${request}; ${next}`;
}

/** The period of an open challenge. */
const abandonedMs = 600_000;

/**
 * Whether another account had time to verify the address and did not: the account that can verify it may
 * have it. No challenge may be open there.
 */
export function isAbandoned(
  { accountId, state, provedMs, createdMs }: AccountDestination,
  wantedBy: string,
  nowMs: number,
): boolean {
  const isVerified = state !== "unproved" || provedMs !== null;
  return accountId !== wantedBy && !isVerified && nowMs - createdMs > abandonedMs;
}
