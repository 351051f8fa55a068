// Why streams end, as the metrics and docs/streams.md name it.

export const endReasons = [
  "client",
  "silent",
  "lagged",
  "lost",
  "revoked",
  "tier_changed",
  "refused",
  "lease_expired",
  "destination_inactive",
  "closing",
] as const;
export type EndReason = (typeof endReasons)[number];
