// Month export: registered tips and tier events of the session's account as CSV, for a month or a day.
//
// Called by portal.ts for GET /portal/api/export. It reads page by page, so other work runs in between. Its
// size is bounded: an account with more rows exports single days.

import { quote, ShredwayError } from "../../core/errors.ts";
import type { ApiKey } from "../../gateway/accounts/types.ts";
import { checkNames, Query } from "../../gateway/endpoints/query.ts";
import type { HttpResponse } from "../../gateway/http/types.ts";
import type { ShredSales } from "../../gateway/methods/dependencies.ts";
import type { Registration } from "../../shreds/registrations/registration-types.ts";
import type { TierEvent } from "../../shreds/tiers/types.ts";
import { csvLine } from "./csv.ts";
import { securityHeaders } from "./responses.ts";

/** About 10 MB. */
const rowsMax = 50_000;
const rowsPerRead = 1000;
/** At once, of all accounts. */
const exportsMax = 4;
const periodPattern = /^(\d{4})-(\d{2})(?:-(\d{2}))?$/;

const columns = [
  "time",
  "record",
  "signature",
  "slot",
  "state",
  "reason",
  "proof",
  "lamports",
  "counted_lamports",
  "settled_time",
  "event_number",
  "event",
  "tier_from",
  "tier_to",
  "sum_lamports",
] as const;

interface Period {
  readonly name: string;
  readonly fromMs: number;
  /** Exclusive. */
  readonly toMs: number;
}

interface Row {
  readonly atMs: number;
  readonly line: string;
}

/** Throws ShredwayError "value_invalid". */
function periodOf(text: string | undefined): Period {
  const [, year = "", month = "", day] = periodPattern.exec(text ?? "") ?? [];
  const fromMs = Date.UTC(Number(year), Number(month) - 1, Number(day ?? 1));
  const toMs = day === undefined ? Date.UTC(Number(year), Number(month)) : fromMs + 24 * 3_600_000;
  // Date.UTC accepts the 31st of each month, and month 13.
  const name = text ?? "";
  if (year !== "" && new Date(fromMs).toISOString().startsWith(name)) return { name, fromMs, toMs };
  throw new ShredwayError(
    "value_invalid",
    `period: invalid value ${quote(text)}; expected a month or day in UTC such as 2026-11 or 2026-11-21`,
  );
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function registrationRow(registration: Registration): Row {
  const { registeredMs, settledMs, slot, state, reason, proof } = registration;
  const { signature, lamports, countedLamports } = registration;
  const line = csvLine([
    iso(registeredMs),
    "registration",
    signature,
    slot,
    state,
    reason,
    proof,
    lamports,
    countedLamports,
    settledMs === null ? null : iso(settledMs),
    null,
    null,
    null,
    null,
    null,
  ]);
  return { atMs: registeredMs, line };
}

function eventRow({ atMs, number, kind, from, to, sumLamports }: TierEvent): Row {
  const none = Array.from({ length: 8 }, () => null);
  const line = csvLine([iso(atMs), "tier_event", ...none, number, kind, from, to, sumLamports]);
  return { atMs, line };
}

export class MonthExport {
  readonly #shreds: ShredSales | null;
  #underWay = 0;

  constructor({ shreds }: { readonly shreds: ShredSales | null }) {
    this.#shreds = shreds;
  }

  /** Rejects with ShredwayError for input and for the limits. */
  async answer(key: ApiKey, query: string): Promise<HttpResponse> {
    const parameters = new Query(query);
    checkNames(parameters, ["period"]);
    const period = periodOf(parameters.text("period"));
    const shreds = this.#shredsFor(key);
    if (this.#underWay >= exportsMax) {
      throw new ShredwayError(
        "overloaded",
        `more than ${exportsMax} exports at once; retry in 5 s`,
      );
    }
    this.#underWay++;
    try {
      const rows = await rowsOf(shreds, key.accountId, period);
      const lines = rows.map(({ line }) => line);
      return {
        status: 200,
        headers: {
          ...securityHeaders,
          "cache-control": "no-store",
          "content-type": "text/csv; charset=utf-8; header=present",
          "content-disposition": `attachment; filename="shredway-${period.name}.csv"`,
        },
        body: [csvLine(columns), ...lines].join(""),
      };
    } finally {
      this.#underWay--;
    }
  }

  #shredsFor({ scopes }: ApiKey): ShredSales {
    if (!scopes.includes("shreds")) {
      throw new ShredwayError("scope_missing", "export: expected a key with the scope shreds");
    }
    if (this.#shreds) return this.#shreds;
    throw new ShredwayError("registration_off", "export: this service does not sell shreds");
  }
}

/** In the order of time. */
async function rowsOf(
  { registrar, tiers }: ShredSales,
  accountId: string,
  { name, fromMs, toMs }: Period,
): Promise<Row[]> {
  const registrations: Row[] = [];
  const events: Row[] = [];
  const add = (rows: Row[], row: Row): void => {
    if (registrations.length + events.length >= rowsMax) {
      const text = `${name} has more than ${rowsMax} rows; export single days, such as ${name.slice(0, 7)}-01`;
      throw new ShredwayError("value_invalid", text);
    }
    rows.push(row);
  };
  for (let beforeMs = toMs; ; ) {
    const page = await registrar.ofAccount(accountId, beforeMs, rowsPerRead);
    const inPeriod = page.filter(({ registeredMs }) => registeredMs >= fromMs);
    for (const registration of inPeriod) add(registrations, registrationRow(registration));
    const last = page.at(-1);
    if (!last || inPeriod.length < page.length || page.length < rowsPerRead) break;
    beforeMs = last.registeredMs;
  }
  for (let before: bigint | null = null; ; ) {
    const page: TierEvent[] = await tiers.history(accountId, before, rowsPerRead);
    for (const event of page) {
      if (event.atMs >= fromMs && event.atMs < toMs) add(events, eventRow(event));
    }
    const last = page.at(-1);
    if (!last || last.atMs < fromMs || page.length < rowsPerRead) break;
    before = last.number;
  }
  // Both are newest first. Of the same millisecond, registrations precede the events that they cause.
  const rows = [...registrations.toReversed(), ...events.toReversed()];
  return rows.toSorted((a, b) => a.atMs - b.atMs);
}
