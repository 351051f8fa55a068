// Numbers for display: lamports, counts, rates, shares and durations, always with units.
//
// Pure; used by every view. No number is rounded up to a bound that was not reached: 99.96 %
// becomes 99.9 %. A no-break space separates number and unit.

const lamportsPerSol = 1_000_000_000;
/** JSON rounds larger amounts when the page reads them. */
const exactMax = Number.MAX_SAFE_INTEGER;
const space = "\u00a0";

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Shows every lamport. */
export function solDigits(lamports: number): string {
  const sign = lamports < 0 ? "-" : "";
  const whole = Math.floor(Math.abs(lamports) / lamportsPerSol);
  const rest = Math.abs(lamports) % lamportsPerSol;
  const decimals = String(rest).padStart(9, "0").replace(/0+$/, "");
  return `${sign}${grouped.format(whole)}${decimals === "" ? "" : `.${decimals}`}`;
}

/** Marks an amount that arrived rounded. */
function approximate(lamports: number, text: string): string {
  return Math.abs(lamports) <= exactMax ? text : `about ${text}`;
}

export function sol(lamports: number): string {
  return approximate(lamports, `${solDigits(lamports)}${space}SOL`);
}

export function lamportsText(lamports: number): string {
  return approximate(lamports, `${grouped.format(lamports)} lamports`);
}

export function count(value: number): string {
  return grouped.format(value);
}

/** "1 slot", "2 slots". */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${grouped.format(value)}${space}${value === 1 ? one : many}`;
}

/** Three significant digits; whole numbers from 100 on. */
function short(value: number): string {
  if (value >= 99.95) return grouped.format(value);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

export function rate(perSecond: number): string {
  if (perSecond === 0) return `0${space}/s`;
  const text = perSecond >= 9.95 ? grouped.format(perSecond) : perSecond.toFixed(1);
  return `${text}${space}/s`;
}

/** Formats 0 to 1 as per cent, truncated to tenths. */
export function percent(share: number): string {
  const parts = Math.floor(share * 1000 + 1e-9) / 10;
  return `${parts === 100 || parts === 0 ? parts : parts.toFixed(1)}${space}%`;
}

const spanUnits = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
] as const;

/** Nanoseconds in the unit that gives a number between 1 and 1000. */
export function nanoseconds(ns: number): string {
  for (const [unit, size] of spanUnits) {
    if (ns >= size * 0.9995) return `${short(ns / size)}${space}${unit}`;
  }
  return `${Math.round(ns)}${space}ns`;
}

/** Axis label: "5 µs", as short as its round value allows. */
export function tickNanoseconds(ns: number): string {
  return nanoseconds(ns).replace(/\.0+(?=\D)/, "");
}

function groupedWith(decimals: number): Intl.NumberFormat {
  return new Intl.NumberFormat("en-US", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
}

const tenths = groupedWith(1);
const hundredths = groupedWith(2);
const thousandths = groupedWith(3);

/** Time after an event: "+0.210 ms", "+1,299.4 ms", "+12.84 s". */
export function offset(ms: number): string {
  if (ms === 0) return `0${space}ms`;
  if (ms >= 10_000) return `+${hundredths.format(ms / 1000)}${space}s`;
  return `+${(ms < 10 ? thousandths : tenths).format(ms)}${space}ms`;
}

/** A time between two events: "29.3 ms", "12.80 s". */
export function duration(ms: number): string {
  return offset(ms).replace("+", "");
}

/** Four significant digits, for places where the exact amount stands next to it. */
export function shortSol(lamports: number): string {
  return sol(Number(lamports.toPrecision(4)));
}

/** Shortens Base58 and similar texts in the middle. */
export function shortened(text: string, endLength = 6): string {
  return text.length <= endLength * 2 + 1
    ? text
    : `${text.slice(0, endLength)}…${text.slice(-endLength)}`;
}
