// Numbers, times and durations for display.

import { describe, expect, it } from "vitest";
import { waitMs } from "../../../../src/platform/portal/page/backoff.ts";
import { RateHistory, ratesMax } from "../../../../src/platform/portal/page/rate-history.ts";
import { hashOf, routeOf } from "../../../../src/platform/portal/page/router.ts";
import {
  clockAndDay,
  clockSeconds,
  exact,
  graceWords,
  relative,
  span,
} from "../../../../src/platform/portal/page/times.ts";
import {
  count,
  counted,
  lamportsText,
  nanoseconds,
  offset,
  percent,
  rate,
  shortened,
  sol,
  solDigits,
  tickNanoseconds,
} from "../../../../src/platform/portal/page/units.ts";

/** Replaces no-break spaces by spaces. */
function plain(text: string): string {
  return text.replaceAll("\u00a0", " ");
}

const hour = 3_600_000;
const noon = Date.parse("2026-11-21T12:00:00Z");

describe("amounts", () => {
  it.each([
    [0, "0 SOL"],
    [1, "0.000000001 SOL"],
    [310_000_000, "0.31 SOL"],
    [499_999_999, "0.499999999 SOL"],
    [500_000_000, "0.5 SOL"],
    [1_234_000_000_000, "1,234 SOL"],
    [-190_000_000, "-0.19 SOL"],
    [Number.MAX_SAFE_INTEGER, "9,007,199.254740991 SOL"],
  ])("%i lamports are %s, exactly", (lamports, text) => {
    expect(plain(sol(lamports))).toBe(text);
    expect(plain(sol(lamports))).toBe(`${solDigits(lamports)} SOL`);
  });

  it("marks amounts that JSON has rounded", () => {
    const { lamports } = JSON.parse('{"lamports":18446744073709551615}');
    expect(plain(sol(lamports))).toBe("about 18,446,744,073.709551616 SOL");
    expect(lamportsText(lamports)).toBe("about 18,446,744,073,709,552,000 lamports");
    expect(lamportsText(Number.MAX_SAFE_INTEGER)).toBe("9,007,199,254,740,991 lamports");
  });

  it("shows lamports with their unit", () => {
    expect(lamportsText(310_000_000)).toBe("310,000,000 lamports");
  });

  it.each([
    [1, "100 %"],
    [0.9999, "99.9 %"],
    [0.5, "50.0 %"],
    [0.29, "29.0 %"],
    [0.0004, "0 %"],
    [0, "0 %"],
  ])("a share of %f is %s: only a complete share becomes 100", (share, text) => {
    expect(plain(percent(share))).toBe(text);
  });

  it.each([
    [0, "0 ns"],
    [850, "850 ns"],
    [999.9, "1.00 µs"],
    [12_345, "12.3 µs"],
    [99_960, "100 µs"],
    [1_240_000, "1.24 ms"],
    [999_600_000, "1.00 s"],
    [2_500_000_000, "2.50 s"],
  ])("%f ns are %s", (ns, text) => {
    expect(plain(nanoseconds(ns))).toBe(text);
  });

  it("shows counts, rates, offsets and axis labels with their units", () => {
    expect(count(1_234_567)).toBe("1,234,567");
    expect([counted(1, "key"), counted(2, "key")].map(plain)).toEqual(["1 key", "2 keys"]);
    expect([0, 0.26, 9.94, 2583.4].map((value) => plain(rate(value)))).toEqual([
      "0 /s",
      "0.3 /s",
      "9.9 /s",
      "2,583 /s",
    ]);
    const shown = (...values: number[]) => values.map((value) => plain(offset(value)));
    expect(shown(1299.4, 9999.9, 4_321_000)).toEqual(["+1,299.4 ms", "+9,999.9 ms", "+4,321.00 s"]);
    expect(shown(0, 0.21, 12.9, 812.4, 12_840)).toEqual([
      "0 ms",
      "+0.210 ms",
      "+12.9 ms",
      "+812.4 ms",
      "+12.84 s",
    ]);
    expect([5000, 10_000, 1e6].map((ns) => plain(tickNanoseconds(ns)))).toEqual([
      "5 µs",
      "10 µs",
      "1 ms",
    ]);
    expect([shortened("short"), shortened("5h6xAAAAAAAAAAAAAAAbcdefg")]).toEqual([
      "short",
      "5h6xAA…bcdefg",
    ]);
  });
});

describe("times", () => {
  it.each([
    [0, "0 s"],
    [999, "0 s"],
    [45_999, "45 s"],
    [3 * hour + 12 * 60_000 + 59_000, "3 h 12 min"],
    [24 * hour, "1 d"],
    [52 * hour, "2 d 4 h"],
    [hour + 30_000, "1 h"],
    [-5, "0 s"],
  ])("%i ms last %s: truncated, never rounded up", (ms, text) => {
    expect(plain(span(ms))).toBe(text);
  });

  it.each([
    [-500, "just now"],
    [-45_000, "45 s ago"],
    [-3 * 60_000 - 59_000, "3 min ago"],
    [-26 * hour, "1 d ago"],
    [1000, "in a moment"],
    [90_000, "in 1 min"],
    [2 * hour + 5 * 60_000, "in 2 h 5 min"],
  ])("%i ms from now is %s", (ms, text) => {
    expect(plain(relative(noon + ms, noon))).toBe(text);
  });

  it("shows the day in UTC", () => {
    const words = [0, 12, -13, 60].map((hours) => plain(clockAndDay(noon + hours * hour, noon)));
    expect(words).toEqual([
      "12:00 UTC today",
      "00:00 UTC tomorrow",
      "23:00 UTC yesterday",
      "00:00 UTC on 2026-11-24",
    ]);
    expect(plain(clockSeconds(noon + 1234))).toBe("12:00:01 UTC");
    expect(exact(noon + 1234)).toBe("2026-11-21 12:00:01.234 UTC");
    expect(exact(Number.NaN)).toContain("????");
  });

  it("describes the grace period", () => {
    const ends = Date.parse("2026-11-22T14:05:30Z");
    const { until, left, unless } = graceWords("tier-2", "0.5 SOL", ends, ends - 11_520_000);
    expect([until, left, unless].map(plain).join(", ")).toBe(
      "tier-2 until 14:05 UTC today, 3 h 12 min left, unless tips reach 0.5 SOL again",
    );
    expect(plain(graceWords("tier-2", "0.5 SOL", ends, ends - 24 * hour).until)).toBe(
      "tier-2 until 14:05 UTC tomorrow",
    );
    expect(graceWords("tier-2", "0.5 SOL", ends, ends + 1).left).toBe("ends now");
  });
});

describe("addresses of views", () => {
  it("are restored from their hash", () => {
    expect(routeOf(hashOf("transactions", "5h6x/é"))).toEqual({
      view: "transactions",
      argument: "5h6x/é",
    });
    expect(routeOf(hashOf("keys"))).toEqual({ view: "keys", argument: null });
  });

  it.each(["", "#", "#/", "#/unknown/5h6x", "#/__proto__"])("%j is the overview", (hash) => {
    expect(routeOf(hash)).toEqual({ view: "overview", argument: null });
  });

  it("with invalid escapes have no argument", () => {
    expect(routeOf("#/transactions/%E0%A4%A")).toEqual({ view: "transactions", argument: null });
  });
});

describe("reconnect delays", () => {
  it("double from 1 s to 5 s", () => {
    const waits = [1, 2, 3, 4, 5, 6, 7, 1000].map((failures) => waitMs(failures, 0));
    expect(waits).toEqual([1000, 2000, 4000, 5000, 5000, 5000, 5000, 5000]);
  });

  it("are at most a fifth shorter", () => {
    expect([waitMs(1, 1), waitMs(6, 0.5)]).toEqual([800, 4500]);
  });
});

describe("rate history", () => {
  const of = (id: string, sentPerSecond: number | null) => ({
    id,
    sending:
      sentPerSecond === null
        ? null
        : { tier: "tier-1", sent: 0, sentPerSecond, failed: 0, icmp: 0, icmpLastMinute: 0 },
  });

  it("stores one minute and drops removed destinations", () => {
    const rates = new RateHistory();
    for (let i = 0; i < ratesMax + 5; i++) rates.add([of("a", i), of("b", null)]);
    expect(rates.of("a")).toHaveLength(ratesMax);
    expect(rates.of("a").at(-1)).toBe(ratesMax + 4);
    expect(rates.of("b").at(-1)).toBe(0);
    rates.add([of("b", 7)]);
    expect(rates.of("a")).toEqual([]);
  });
});
