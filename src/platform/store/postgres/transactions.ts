// Many transactions inside one of PostgreSQL's: each all or nothing, none takes another with it.
//
// Called by writer.ts. Their statements are sent together, as if all will go well, for that is
// what they nearly always do: a savepoint for each would double the cost. Where one fails, its part of
// the group is done again one by one.

import type { Failure, WriteResult } from "../batch.ts";
import type { Statement } from "../driver.ts";
import { isFailure, type PostgresConnection, type Result } from "./connection.ts";
import { isConflict, isLost, lostCode } from "./failure.ts";

/** Transactions that are done again when one of them fails. */
const partMax = 64;

interface Transaction {
  readonly statements: readonly Statement[];
}

const keep: readonly Statement[] = [
  { sql: "RELEASE part", params: [] },
  { sql: "SAVEPOINT part", params: [] },
];

/** What became of one transaction, by the results of its statements; the first that failed tells. */
function resultOf(statements: readonly Statement[], results: readonly Result[]): WriteResult {
  const changes: number[] = [];
  for (const [i, result] of results.entries()) {
    if (isFailure(result)) return result;
    if (statements[i]?.mustChange && result.changes === 0) return [...changes, -1];
    changes.push(result.changes);
  }
  return changes;
}

/** Neither failed nor taken back. */
export function isDone(result: WriteResult): boolean {
  return !("code" in result) && result.at(-1) !== -1;
}

/** What ends the whole group: nothing can be said of single ones. */
function endOf(results: readonly Result[]): Failure | undefined {
  return results.filter(isFailure).find((one) => isLost(one) || isConflict(one));
}

async function runEach(
  connection: PostgresConnection,
  transactions: readonly Transaction[],
  mayTakeLong: boolean,
): Promise<WriteResult[] | Failure> {
  const results: WriteResult[] = [];
  for (const { statements } of transactions) {
    const commands = [{ sql: "SAVEPOINT one" }, ...statements];
    const all = await connection.run(commands, mayTakeLong);
    const end = endOf(all);
    if (end) return end;
    const result = resultOf(statements, all.slice(1));
    results.push(result);
    const back = isDone(result) ? [] : [{ sql: "ROLLBACK TO one" }];
    const [failed] = (await connection.run([...back, { sql: "RELEASE one" }])).filter(isFailure);
    if (failed) return failed;
  }
  return results;
}

/**
 * Runs `begin`, then the transactions, all but the commit. The result of each, or the failure that
 * ended all of them and leaves the transaction as it is. Never rejects.
 */
export async function runGroup(
  connection: PostgresConnection,
  begin: readonly Statement[],
  transactions: readonly Transaction[],
  mayTakeLong: boolean,
): Promise<WriteResult[] | Failure> {
  const results: WriteResult[] = [];
  let before: readonly Statement[] = [...begin, { sql: "SAVEPOINT part", params: [] }];
  for (let at = 0; at < transactions.length; at += partMax) {
    const part = transactions.slice(at, at + partMax);
    const commands = [...before, ...part.flatMap(({ statements }) => statements)];
    const all = await connection.run(commands, mayTakeLong);
    const begun = resultOf(before, all.slice(0, before.length));
    if ("code" in begun) return begun;
    if (!isDone(begun)) return { code: lostCode, message: "the row of its commits is gone" };
    const end = endOf(all);
    if (end) return end;
    let from = before.length;
    const ends = part.map(({ statements }) => {
      const own = all.slice(from, from + statements.length);
      from += statements.length;
      return resultOf(statements, own);
    });
    if (ends.every(isDone)) {
      results.push(...ends);
    } else {
      const [back] = (await connection.run([{ sql: "ROLLBACK TO part" }])).filter(isFailure);
      if (back) return back;
      const again = part.length === 1 ? ends : await runEach(connection, part, mayTakeLong);
      if (!Array.isArray(again)) return again;
      results.push(...again);
    }
    before = keep;
  }
  return results;
}
