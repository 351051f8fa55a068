// The CSV export of a month over real HTTP, read by an independent parser of RFC 4180.

import { expect, it } from "vitest";
import { csvLine } from "../../../src/platform/portal/csv.ts";
import { PortalHarness, tier1Lamports } from "./harness.ts";

/** Rows of fields. Throws if the text is not RFC 4180 with CRLF. */
function parse(text: string): string[][] {
  const rows: string[][] = [];
  let at = 0;
  while (at < text.length) {
    const row: string[] = [];
    for (;;) {
      const match = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(text.slice(at));
      if (!match) throw new Error(`expected a field at ${at}, got ${text.slice(at, at + 20)}`);
      const [whole, inQuotes, plain = "", end] = match;
      row.push(inQuotes === undefined ? plain : inQuotes.replaceAll('""', '"'));
      at += whole.length;
      if (end === "\r\n") break;
    }
    rows.push(row);
  }
  return rows;
}

it("quotes every text, and disarms formulas", () => {
  const texts = ['a"b', "a,b", "a\r\nb", "", "ü", "=1+1", "+1", "-1", "@x", "\tx", '="a","b"'];
  const line = csvLine([...texts, -5n, 2n ** 63n, null]);
  expect(parse(line)).toEqual([
    [
      'a"b',
      "a,b",
      "a\r\nb",
      "",
      "ü",
      "'=1+1",
      "'+1",
      "'-1",
      "'@x",
      "'\tx",
      `'="a","b"`,
      "-5",
      String(2n ** 63n),
      "",
    ],
  ]);
});

it("has the registrations and tier events of the session's account, in the order of time", async () => {
  const harness = await PortalHarness.open();
  const [ann, bob] = [await harness.key("ann"), await harness.key("bob")];
  const cookie = await harness.cookie(ann);
  await harness.registerTip(ann, tier1Lamports);
  await harness.registerTip(bob, 5_000_000n);
  await harness.registerTip(ann, 1_000_000n);
  const month = new Date(Number(harness.clock.nowNs() / 1_000_000n)).toISOString().slice(0, 7);
  const answer = await harness.ask("GET", `/portal/api/export?period=${month}`, { cookie });
  expect(answer.status).toBe(200);
  expect(answer.header("content-type")).toBe("text/csv; charset=utf-8; header=present");
  expect(answer.header("content-disposition")).toBe(`attachment; filename="shredway-${month}.csv"`);
  expect(answer.header("x-content-type-options")).toBe("nosniff");
  const [header = [], ...rows] = parse(answer.text);
  const records = rows.map((row) => Object.fromEntries(row.map((cell, i) => [header[i], cell])));
  const shown = records.map(({ record, state, lamports, event, tier_to, sum_lamports }) =>
    record === "registration" ? [record, state, lamports] : [record, event, tier_to, sum_lamports],
  );
  expect(shown.filter(([record]) => record === "registration")).toEqual([
    ["registration", "counted", "200000000"],
    ["registration", "counted", "1000000"],
  ]);
  expect(shown.filter(([record]) => record === "tier_event")).toEqual([
    ["tier_event", "upgraded", "tier-1", "200000000"],
  ]);
  for (const { time } of records) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const times = records.map(({ time }) => time);
  expect(times).toEqual(times.toSorted((a = "", b = "") => (a < b ? -1 : 1)));
  const other = await harness.ask("GET", "/portal/api/export?period=2020-02-29", { cookie });
  expect(parse(other.text)).toEqual([header]);
});

it("has events of one millisecond in the order of their numbers", async () => {
  const harness = await PortalHarness.open();
  const ann = await harness.key("ann");
  await harness.registerTip(ann, 500_000_000n);
  // The end of the grace period of tier-2 begins that of tier-1.
  harness.clock.move(49 * 3_600_000);
  await harness.registerTip(ann, 1n); // evaluates the tiers
  const cookie = await harness.cookie(ann);
  const history = await harness.call(cookie, "getTierHistory");
  const at = String(history.json.result[0].at);
  const path = `/portal/api/export?period=${at.slice(0, 10)}`;
  const rows = parse((await harness.ask("GET", path, { cookie })).text);
  const atOnce = rows.filter(([time]) => time === at).map((row) => row.slice(10, 12));
  expect(atOnce).toEqual([
    ["3", "downgraded"],
    ["4", "grace_started"],
  ]);
});

it("refuses strangers, other scopes, and invalid periods", async () => {
  const harness = await PortalHarness.open();
  const path = "/portal/api/export?period=2026-01";
  expect((await harness.ask("GET", path)).status).toBe(401);
  const reader = await harness.cookie(await harness.key("ann", ["submit"]));
  const refused = await harness.ask("GET", path, { cookie: reader });
  expect([refused.status, refused.json.error.reason]).toEqual([403, "scope_missing"]);
  const cookie = await harness.cookie(await harness.key("ann"));
  for (const period of ["", "2026", "2026-13", "2026-02-30", "2026-1", "=1", "2026-01%0d"]) {
    const { status, json } = await harness.ask("GET", `/portal/api/export?period=${period}`, {
      cookie,
    });
    expect([status, json.error.reason], period).toEqual([400, "value_invalid"]);
    expect(json.error.message).toContain("expected a month or day in UTC such as 2026-11");
  }
  expect((await harness.ask("POST", path, { cookie, body: "{}" })).status).toBe(405);
});
