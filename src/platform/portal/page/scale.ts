// From values to places on a chart, and where its lines and labels stand.
//
// Pure; used by every chart. A scale maps its domain to its range and never leaves it.

export type Scale = (value: number) => number;
export type Extent = readonly [from: number, to: number];

function mapped(share: number, [from, to]: Extent): number {
  const kept = Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 0;
  return from + kept * (to - from);
}

export function linear([from, to]: Extent, range: Extent): Scale {
  const length = to - from;
  return (value) => mapped(length === 0 ? 0.5 : (value - from) / length, range);
}

/** Values of 0 and below stand at the beginning. The domain is above 0. */
export function logarithmic([from, to]: Extent, range: Extent): Scale {
  const length = Math.log(to / from);
  return (value) => {
    if (value <= 0) return range[0];
    return mapped(length === 0 ? 0.5 : Math.log(value / from) / length, range);
  };
}

/** The round values that logarithmic axes may begin, end and be labelled with. */
function niceBetween(from: number, to: number): number[] {
  const found: number[] = [];
  for (let power = Math.floor(Math.log10(from)); 10 ** power <= to; power++) {
    for (const nice of [1, 2, 5]) {
      // 1 * 10 ** -7 is not the number that 0.0000001 is read as.
      const value = Number(`${nice}e${power}`);
      if (value >= from && value <= to) found.push(value);
    }
  }
  return found;
}

/** From one round value (1, 2, 5 × 10^n) to another, all values above 0 between them. */
export function logExtent(values: readonly number[]): Extent {
  const above = values.filter((value) => value > 0);
  if (above.length === 0) return [1, 10];
  const least = Math.min(...above);
  const most = Math.max(...above);
  const from = niceBetween(least / 10, least).at(-1) ?? least;
  const to = niceBetween(most, most * 10)[0] ?? most;
  return [from, to > from ? to : (niceBetween(from * 1.5, from * 10)[0] ?? from * 2)];
}

/** Of an axis: round values inside it, thinned out to at most `most`. */
export function logTicks([from, to]: Extent, most: number): number[] {
  const all = niceBetween(from, to);
  if (all.length <= most) return all;
  const powers = all.filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
  return powers.length > 0 && powers.length <= most ? powers : all.slice(0, most);
}

/** The powers of ten of an extent, both ends included. */
export function decadeTicks([from, to]: Extent): number[] {
  const ticks: number[] = [];
  for (let power = Math.round(Math.log10(from)); power <= Math.log10(to) + 1e-9; power++) {
    ticks.push(10 ** power);
  }
  return ticks;
}

/** A line through points; a gap (null) lifts the pen. */
export function linePath(points: readonly (readonly [x: number, y: number] | null)[]): string {
  let isDown = false;
  let path = "";
  for (const point of points) {
    if (point) path += `${isDown ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    isDown = point !== null;
  }
  return path;
}
