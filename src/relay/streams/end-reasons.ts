// Why streams end, as the metrics and docs/streams.md name it.

export const endReasons = [
  "client",
  "silent",
  "lagged",
  "lost",
  "revoked",
  "tier_changed",
  "refused",
  "closing",
] as const;
export type EndReason = (typeof endReasons)[number];
