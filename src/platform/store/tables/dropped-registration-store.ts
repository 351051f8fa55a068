// Deletion of dropped registrations.
//
// Implements DroppedRegistrationStore over any SqlDriver. Each slice is one short transaction. Its conditions
// are repeated outside of the subquery: a claim that ran meanwhile made the row pending again, and PostgreSQL
// checks only the outer ones against the new version of the row.

import type {
  DroppedAccount,
  DroppedList,
  DroppedRegistrationStore,
} from "../../../shreds/registrations/registration-types.ts";
import { numberOrNullAt, type SqlDriver, textAt } from "../driver.ts";

interface Texts {
  readonly next: string;
  readonly deletion: string;
}

/** In slices, so that other calls do not wait long. */
const sliceMax = 500;

function textsOf(table: string, isDropped: string, ms: string): Texts {
  const isOld = `${isDropped} AND account_id = $1 AND ${ms} <= $2`;
  return {
    next: `SELECT next.account_id, (SELECT ${ms} FROM ${table}
        WHERE ${isDropped} AND account_id = next.account_id ORDER BY ${ms} DESC LIMIT 1 OFFSET $2)
      FROM (SELECT MIN(account_id) AS account_id FROM ${table}
        WHERE ${isDropped} AND account_id > $1) AS next WHERE next.account_id IS NOT NULL`,
    deletion: `DELETE FROM ${table} WHERE ${isOld} AND signature IN
      (SELECT signature FROM ${table} WHERE ${isOld} ORDER BY ${ms} LIMIT ${sliceMax})`,
  };
}

const texts: Readonly<Record<DroppedList, Texts>> = {
  own: textsOf("registrations", "state = 'dropped'", "settled_ms"),
  claimed: textsOf("claimed_registrations", "counted_order IS NULL", "claimed_ms"),
};

export class SqlDroppedRegistrationStore implements DroppedRegistrationStore {
  readonly #driver: SqlDriver;

  constructor(driver: SqlDriver) {
    this.#driver = driver;
  }

  async nextAccount(
    list: DroppedList,
    behind: string,
    keptMax: number,
  ): Promise<DroppedAccount | null> {
    const [row] = await this.#driver.query(texts[list].next, [behind, BigInt(keptMax)]);
    return row ? { accountId: textAt(row, 0), overMs: numberOrNullAt(row, 1) } : null;
  }

  async deleteSome(list: DroppedList, accountId: string, untilMs: number): Promise<boolean> {
    const statement = { sql: texts[list].deletion, params: [accountId, BigInt(untilMs)] };
    const { changes } = await this.#driver.transaction([statement], "survives-kill");
    return changes[0] === sliceMax;
  }
}
