// Parses the service's responses into the types of responses.ts.
//
// Called by client.ts and the streams. Throws only ShredwayCallError "answer_invalid".

import { Fields, listOf, textOf } from "./fields.ts";
import type {
  Destination,
  EndedTransactionPush,
  GracePeriod,
  NextAltValidator,
  NonceInfo,
  Region,
  RegisteredKey,
  RegisteredKeys,
  Registration,
  RegistrationReceipt,
  RejectedRegistration,
  StatusEvent,
  TierEvent,
  TierThreshold,
  TierView,
  TipFloorEntry,
  TipHistoryEntry,
  TipPercentileFields,
  TipPercentiles,
  TipProof,
  TransactionPush,
  TransactionPushes,
  TransactionStatus,
} from "./responses.ts";
import { type AltLeader, submissionStates, type TipQuarter, type TipSnapshot } from "./types.ts";

export function readEvent(value: unknown, where: string): StatusEvent {
  const fields = new Fields<StatusEvent>(value, where);
  return {
    kind: fields.text("kind"),
    at: fields.text("at"),
    ...(fields.has("offsetMs") && { offsetMs: fields.number("offsetMs") }),
    ...(fields.has("method") && { method: fields.text("method") }),
    ...(fields.has("tipLamports") && { tipLamports: fields.integer("tipLamports") }),
    ...(fields.has("priorityFeeLamports") && {
      priorityFeeLamports: fields.integer("priorityFeeLamports"),
    }),
    ...(fields.has("ingress") && { ingress: fields.text("ingress") }),
    ...(fields.has("route") && { route: fields.text("route") }),
    ...(fields.has("attempt") && { attempt: fields.number("attempt") }),
    ...(fields.has("bytes") && { bytes: fields.number("bytes") }),
    ...(fields.has("slot") && { slot: fields.integerOrNull("slot") }),
    ...(fields.has("leader") && { leader: fields.textOrNull("leader") }),
    ...(fields.has("reason") && { reason: fields.text("reason") }),
    ...(fields.has("err") && { err: fields.value("err") }),
    ...(fields.has("sibling") && { sibling: fields.text("sibling") }),
  };
}

function readStatus(value: unknown, where: string): TransactionStatus {
  const fields = new Fields<TransactionStatus>(value, where);
  return {
    signature: fields.text("signature"),
    state: fields.oneOf("state", submissionStates),
    method: fields.text("method"),
    bundleId: fields.textOrNull("bundleId"),
    receivedAt: fields.text("receivedAt"),
    slot: fields.integerOrNull("slot"),
    reason: fields.textOrNull("reason"),
    err: fields.value("err") ?? null,
    events: fields.list("events", readEvent),
  };
}

export function readStatuses(value: unknown, where: string): (TransactionStatus | null)[] {
  return listOf(value, where, (each, at) => (each === null ? null : readStatus(each, at)));
}

export function readTexts(value: unknown, where: string): string[] {
  return listOf(value, where, textOf);
}

export function readNonce(value: unknown, where: string): NonceInfo {
  const fields = new Fields<NonceInfo>(value, where);
  return {
    nonce: fields.text("nonce"),
    nonceAccount: fields.text("nonceAccount"),
    nonceAuthority: fields.text("nonceAuthority"),
  };
}

function readRegion(value: unknown, where: string): Region {
  const fields = new Fields<Region>(value, where);
  return {
    name: fields.text("name"),
    url: fields.textOrNull("url"),
    isThis: fields.flag("isThis"),
    tipAddresses: fields.texts("tipAddresses"),
    shredTipAddresses: fields.texts("shredTipAddresses"),
  };
}

export function readRegions(value: unknown, where: string): Region[] {
  return listOf(value, where, readRegion);
}

function percentilesOf(
  fields: Fields<TipPercentileFields>,
): Omit<TipPercentiles, "time" | "count"> {
  return {
    p25: fields.integer("landed_tips_25th_percentile"),
    p50: fields.integer("landed_tips_50th_percentile"),
    p75: fields.integer("landed_tips_75th_percentile"),
    p95: fields.integer("landed_tips_95th_percentile"),
    p99: fields.integer("landed_tips_99th_percentile"),
  };
}

export function readTipQuarter(value: unknown, where: string): TipQuarter {
  const fields = new Fields<TipHistoryEntry>(value, where);
  const percentiles = fields.value("percentiles");
  const place = `${where}.percentiles`;
  return {
    time: fields.text("time"),
    count: fields.integer("count"),
    percentiles: percentiles === null ? null : percentilesOf(new Fields(percentiles, place)),
  };
}

export function readTipSnapshot(value: unknown, where: string): TipSnapshot {
  const fields = new Fields<TipFloorEntry>(value, where);
  return {
    time: fields.text("time"),
    windowStart: fields.text("window_start"),
    ...percentilesOf(fields),
    count: fields.integer("count"),
    stale: fields.flag("stale"),
  };
}

export function readReceipt(value: unknown, where: string): RegistrationReceipt {
  const fields = new Fields<RegistrationReceipt>(value, where);
  const rejected = fields.list("rejected", (each, at) => {
    const entry = new Fields<RejectedRegistration>(each, at);
    return {
      index: entry.number("index"),
      reason: entry.text("reason"),
      message: entry.text("message"),
    };
  });
  return { accepted: fields.texts("accepted"), rejected };
}

function readRegistration(value: unknown, where: string): Registration {
  const fields = new Fields<Registration>(value, where);
  return {
    signature: fields.text("signature"),
    state: fields.oneOf("state", ["pending", "counted", "dropped"]),
    reason: fields.textOrNull("reason"),
    slot: fields.integer("slot"),
    lamports: fields.integer("lamports"),
    countedLamports: fields.integerOrNull("countedLamports"),
    registeredAt: fields.text("registeredAt"),
    settledAt: fields.textOrNull("settledAt"),
    proof: fields.textOrNull("proof"),
    registeredMs: fields.number("registeredMs"),
  };
}

export function readRegistrations(value: unknown, where: string): Registration[] {
  return listOf(value, where, readRegistration);
}

export function readTier(value: unknown, where: string): TierView {
  const fields = new Fields<TierView>(value, where);
  const thresholds = fields.list("thresholds", (each, at) => {
    const threshold = new Fields<TierThreshold>(each, at);
    return {
      tier: threshold.text("tier"),
      thresholdLamports: threshold.integer("thresholdLamports"),
      missingLamports: threshold.integer("missingLamports"),
    };
  });
  const grace = fields.orNull("grace", () => {
    const times = new Fields<GracePeriod>(fields.value("grace"), `${where}.grace`);
    return { since: times.text("since"), ends: times.text("ends") };
  });
  const proof = new Fields<TipProof>(fields.value("tipProof"), `${where}.tipProof`);
  return {
    tier: fields.textOrNull("tier"),
    sumLamports: fields.integer("sumLamports"),
    windowHours: fields.number("windowHours"),
    thresholds,
    grace,
    destinations: fields.number("destinations"),
    tipProof: {
      account: proof.text("account"),
      memo: proof.text("memo"),
      referenceKey: proof.text("referenceKey"),
    },
  };
}

function readTierEvent(value: unknown, where: string): TierEvent {
  const fields = new Fields<TierEvent>(value, where);
  return {
    number: fields.integer("number"),
    at: fields.text("at"),
    kind: fields.text("kind"),
    from: fields.textOrNull("from"),
    to: fields.textOrNull("to"),
    sumLamports: fields.integer("sumLamports"),
    text: fields.text("text"),
  };
}

export function readTierEvents(value: unknown, where: string): TierEvent[] {
  return listOf(value, where, readTierEvent);
}

export function readDestination(value: unknown, where: string): Destination {
  const fields = new Fields<Destination>(value, where);
  return {
    id: fields.text("id"),
    region: fields.text("region"),
    address: fields.text("address"),
    state: fields.oneOf("state", ["unproved", "active", "paused"]),
    createdAt: fields.text("createdAt"),
    provedAt: fields.textOrNull("provedAt"),
    provedBy: fields.textOrNull("provedBy"),
    proofEndsAt: fields.textOrNull("proofEndsAt"),
    pausedAt: fields.textOrNull("pausedAt"),
    pauseReason: fields.textOrNull("pauseReason"),
    refusal: fields.textOrNull("refusal"),
    recovered: fields.flag("recovered"),
    nextChallengeAt: fields.textOrNull("nextChallengeAt"),
    advice: fields.textOrNull("advice"),
  };
}

export function readDestinations(value: unknown, where: string): Destination[] {
  return listOf(value, where, readDestination);
}

export function readTransactionPush(value: unknown, where: string): TransactionPush {
  const fields = new Fields<TransactionPush>(value, where);
  const accounts = new Fields<TransactionPush["accounts"]>(
    fields.value("accounts"),
    `${where}.accounts`,
  );
  return {
    destination: fields.text("destination"),
    address: fields.text("address"),
    tier: fields.text("tier"),
    streamId: fields.text("streamId"),
    vote: fields.orNull("vote", () => fields.flag("vote")),
    signature: fields.textOrNull("signature"),
    accounts: {
      include: accounts.number("include"),
      exclude: accounts.number("exclude"),
      required: accounts.number("required"),
    },
    startedAt: fields.text("startedAt"),
    endsAt: fields.text("endsAt"),
    shreds: fields.flag("shreds"),
    nextSequence: fields.number("nextSequence"),
    matched: fields.number("matched"),
    sent: fields.number("sent"),
    sentBytes: fields.number("sentBytes"),
    skipped: fields.number("skipped"),
    dropped: fields.number("dropped"),
    failed: fields.number("failed"),
    delayNs: fields.orNull("delayNs", () => fields.number("delayNs")),
  };
}

function readEndedPush(value: unknown, where: string): EndedTransactionPush {
  const fields = new Fields<EndedTransactionPush>(value, where);
  return {
    address: fields.text("address"),
    tier: fields.text("tier"),
    startedAt: fields.text("startedAt"),
    endedAt: fields.text("endedAt"),
    reason: fields.text("reason"),
    text: fields.text("text"),
    matched: fields.number("matched"),
    sent: fields.number("sent"),
  };
}

export function readTransactionPushes(value: unknown, where: string): TransactionPushes {
  const fields = new Fields<TransactionPushes>(value, where);
  return {
    open: listOf(fields.value("open"), `${where}.open`, readTransactionPush),
    ended: listOf(fields.value("ended"), `${where}.ended`, readEndedPush),
  };
}

export function readRegisteredKey(value: unknown, where: string): RegisteredKey {
  const fields = new Fields<RegisteredKey>(value, where);
  return {
    publicKey: fields.text("publicKey"),
    purpose: fields.oneOf("purpose", ["tpu", "shredstream"]),
    apiKey: fields.text("apiKey"),
    state: fields.oneOf("state", ["active", "ended"]),
    registeredAt: fields.text("registeredAt"),
  };
}

export function readRegisteredKeys(value: unknown, where: string): RegisteredKeys {
  const fields = new Fields<RegisteredKeys>(value, where);
  return {
    account: fields.text("account"),
    publicKeys: fields.list("publicKeys", readRegisteredKey),
  };
}

export function readAltLeader(value: unknown, where: string): AltLeader {
  const fields = new Fields<NextAltValidator>(value, where);
  return {
    pubkey: fields.text("pubkey"),
    leaderSlot: fields.integer("leader_slot"),
    contextSlot: fields.integer("context_slot"),
  };
}
