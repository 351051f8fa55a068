// Shares, lags and counts as text, for verdicts, screens and pages. Pure.

/** Formats a share, truncated: "100 %" only if it is exactly 1. "-" for null. */
export function percent(share: number | null, digits = 1): string {
  if (share === null) return "-";
  if (share >= 1) return "100 %";
  const step = 10 ** digits;
  return `${(Math.floor(share * 100 * step) / step).toFixed(digits)} %`;
}

/** Formats a lag with its unit: "0.41 ms". */
export function formatLag(ns: number): string {
  const size = Math.abs(ns);
  const sign = ns < 0 ? "-" : "";
  if (size < 1e3) return `${sign}${Math.round(size)} ns`;
  const [scaled, unit] =
    size < 1e6 ? [size / 1e3, "µs"] : size < 1e9 ? [size / 1e6, "ms"] : [size / 1e9, "s"];
  return `${sign}${scaled.toFixed(scaled < 10 ? 2 : scaled < 100 ? 1 : 0)} ${unit}`;
}

/** 110584 -> "110,584". */
export function grouped(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ",");
}
