// Checks the state of the leaders that the process of the QUIC connections reports. Pure.
//
// An attacker may control that process. The states go into metrics and the portal, so every field
// must have its type, and texts and lists are bounded.

import type { LeaderPhase, LeaderState } from "./types.ts";

const leadersMax = 1024;
const closesMax = 64;
const textCharsMax = 64;
const phases: readonly LeaderPhase[] = ["idle", "connecting", "connected", "backing_off"];

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function unexpected(what: string, value: unknown): RangeError {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return new RangeError(`expected ${what}, got ${text.slice(0, 80)}`);
}

function numberIn(value: unknown): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return value;
  throw unexpected("a number", value);
}

/** A count, which becomes a bigint in the metrics. */
function countIn(value: unknown): number {
  if (Number.isSafeInteger(value)) return numberIn(value);
  throw unexpected("a count", value);
}

function durationIn(value: unknown): number | null {
  return value === null ? null : numberIn(value);
}

function textIn(value: unknown): string {
  if (typeof value === "string" && value.length <= textCharsMax) return value;
  throw unexpected("a short text", value);
}

function closesIn(value: unknown): Record<string, number> {
  if (!isFields(value) || Object.keys(value).length > closesMax) throw unexpected("counts", value);
  return Object.fromEntries(
    Object.entries(value).map(([name, count]) => [textIn(name), countIn(count)]),
  );
}

function stateIn(value: unknown): LeaderState {
  if (!isFields(value)) throw unexpected("the state of a leader", value);
  const phase = phases.find((known) => known === value["phase"]);
  if (!phase) throw unexpected("a phase", value["phase"]);
  const count = (name: string): number => countIn(value[name]);
  return {
    address: textIn(value["address"]),
    phase,
    handshakeMs: durationIn(value["handshakeMs"]),
    roundTripMs: durationIn(value["roundTripMs"]),
    queued: count("queued"),
    inFlight: count("inFlight"),
    sent: count("sent"),
    acknowledged: count("acknowledged"),
    reset: count("reset"),
    dropped: count("dropped"),
    connections: count("connections"),
    closes: closesIn(value["closes"]),
    lastClose: textIn(value["lastClose"]),
  };
}

/** Throws a RangeError for anything else. */
export function leaderStatesIn(value: unknown): LeaderState[] {
  if (!Array.isArray(value) || value.length > leadersMax) throw unexpected("leaders", value);
  return value.map(stateIn);
}
