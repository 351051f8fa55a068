// Scales: map values to positions on a chart, and choose its ticks.
//
// Pure; used by every chart. A scale maps its domain to its range and clamps values outside.

export type Scale = (value: number) => number;
export type Extent = readonly [from: number, to: number];

function mapped(share: number, [from, to]: Extent): number {
  const bounded = Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 0;
  return from + bounded * (to - from);
}

export function linear([from, to]: Extent, range: Extent): Scale {
  const length = to - from;
  return (value) => mapped(length === 0 ? 0.5 : (value - from) / length, range);
}

/** Values of 0 and below map to the start. The domain must be above 0. */
export function logarithmic([from, to]: Extent, range: Extent): Scale {
  const length = Math.log(to / from);
  return (value) => {
    if (value <= 0) return range[0];
    return mapped(length === 0 ? 0.5 : Math.log(value / from) / length, range);
  };
}

/** Round values at which logarithmic axes may start, end and have labels. */
function niceBetween(from: number, to: number): number[] {
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(from)); 10 ** power <= to; power++) {
    for (const nice of [1, 2, 5]) {
      // 1 * 10 ** -7 differs from the number 0.0000001 by rounding.
      const value = Number(`${nice}e${power}`);
      if (value >= from && value <= to) found.push(value);
    }
  }
  return found;
}

/** Returns round values (1, 2, 5 × 10^n) that enclose all values above 0. */
export function logExtent(values: readonly number[]): Extent {
  const above = values.filter((value) => value > 0);
  if (above.length === 0) return [1, 10];
  const least = Math.min(...above);
  const most = Math.max(...above);
  const from = niceBetween(least / 10, least).at(-1) ?? least;
  const to = niceBetween(most, most * 10)[0] ?? most;
  return [from, to > from ? to : (niceBetween(from * 1.5, from * 10)[0] ?? from * 2)];
}

/** Returns round values inside an axis, thinned out to at most `most`. */
export function logTicks([from, to]: Extent, most: number): number[] {
  const all = niceBetween(from, to);
  if (all.length <= most) return all;
  const powers = all.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
  return powers.length > 0 && powers.length <= most ? powers : all.slice(0, most);
}

/** Returns the powers of ten of an extent, both ends included. */
export function decadeTicks([from, to]: Extent): number[] {
  const ticks: number[] = [];
  for (let power = Math.round(Math.log10(from)); power <= Math.log10(to) + 1e-9; power++) {
    ticks.push(10 ** power);
  }
  return ticks;
}

/** Returns the path of a line through points; null is a gap. */
export function linePath(points: readonly (readonly [x: number, y: number] | null)[]): string {
  let isDown = false;
  let path = "";
  for (const point of points) {
    if (point) path += `${isDown ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    isDown = point !== null;
  }
  return path;
}
