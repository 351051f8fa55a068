// Times and durations as text. All times are UTC.
//
// Pure: the current time is a parameter. Times are milliseconds since 1970.

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const space = "\u00a0";

/** Parses an ISO time; NaN if invalid. */
export function ms(iso: string): number {
  return Date.parse(iso);
}

function isoOf(atMs: number): string {
  return Number.isFinite(atMs) ? new Date(atMs).toISOString() : "????-??-??T??:??:??.???Z";
}

/** "14:05" */
export function clock(atMs: number): string {
  return isoOf(atMs).slice(11, 16);
}

/** "11-21" */
export function day(atMs: number): string {
  return isoOf(atMs).slice(5, 10);
}

/** "14:05:12 UTC" */
export function clockSeconds(atMs: number): string {
  return `${isoOf(atMs).slice(11, 19)}${space}UTC`;
}

/** "2026-11-21 14:05:12.123 UTC", for titles. */
export function exact(atMs: number): string {
  const iso = isoOf(atMs);
  return `${iso.slice(0, 10)} ${iso.slice(11, 23)} UTC`;
}

/** "2026-11-21 14:05 UTC" */
export function stamp(atMs: number): string {
  return `${isoOf(atMs).slice(0, 10)} ${clock(atMs)}${space}UTC`;
}

/** The two largest units: "3 h 12 min", "2 d 4 h", "45 s". Truncated, never rounded up. */
export function span(lengthMs: number): string {
  const seconds = Math.max(0, Math.floor(lengthMs / 1000));
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([value]) => value > 0);
  if (first === -1) return `0${space}s`;
  const shown = parts.slice(first, first + 2).filter(([value]) => value > 0);
  return shown.map(([value, unit]) => `${value}${space}${unit}`).join(" ");
}

/** "just now", "3 min ago", "2 h ago"; "in 2 h 5 min" for the future. */
export function relative(atMs: number, nowMs: number): string {
  const distance = atMs - nowMs;
  const isFuture = distance > 0;
  const length = Math.abs(distance);
  if (length < 2000) return isFuture ? "in a moment" : "just now";
  return isFuture ? `in ${aheadText(length)}` : `${span(length).split(" ")[0] ?? ""} ago`;
}

/** Whole minutes below an hour; seconds would change too often. */
function aheadText(lengthMs: number): string {
  const isMinutes = lengthMs < hourMs && lengthMs >= minuteMs;
  return isMinutes ? `${Math.floor(lengthMs / minuteMs)}${space}min` : span(lengthMs);
}

/** "today", "tomorrow", "yesterday", or the date. */
function dayWord(atMs: number, nowMs: number): string {
  const days = Math.floor(atMs / dayMs) - Math.floor(nowMs / dayMs);
  if (days === 0) return "today";
  if (days === 1) return "tomorrow";
  if (days === -1) return "yesterday";
  return `on ${isoOf(atMs).slice(0, 10)}`;
}

/** "14:05 UTC tomorrow" */
export function clockAndDay(atMs: number, nowMs: number): string {
  return `${clock(atMs)}${space}UTC ${dayWord(atMs, nowMs)}`;
}

interface GraceWords {
  /** "tier-2 until 14:05 UTC tomorrow" */
  readonly until: string;
  /** "3 h 12 min left" */
  readonly left: string;
  /** "unless tips reach 0.5 SOL again" */
  readonly unless: string;
}

/** Describes the grace period; `threshold` includes its unit. */
export function graceWords(
  tier: string,
  threshold: string,
  endsMs: number,
  nowMs: number,
): GraceWords {
  return {
    until: `${tier} until ${clockAndDay(endsMs, nowMs)}`,
    left: endsMs > nowMs ? `${span(endsMs - nowMs)} left` : "ends now",
    unless: `unless tips reach ${threshold} again`,
  };
}
