// Many transactions inside one PostgreSQL transaction: each is atomic and independent of the others.
//
// Called by writer.ts. Their statements are sent together without savepoints, which would double the
// cost, because they nearly always succeed. If one fails, its part of the group is repeated one by one.

import type { Failure, WriteResult } from "../batch.ts";
import type { Statement } from "../driver.ts";
import { isFailure, type PostgresConnection, type Result } from "./connection.ts";
import { isConflict, isLost, lostCode } from "./failure.ts";

/** Number of transactions that are repeated if one of them fails. */
const partMax = 64;

interface Transaction {
  readonly statements: readonly Statement[];
}

const keep: readonly Statement[] = [
  { sql: "RELEASE part", params: [] },
  { sql: "SAVEPOINT part", params: [] },
];

/** The result of one transaction from the results of its statements; the first failure decides. */
function resultOf(statements: readonly Statement[], results: readonly Result[]): WriteResult {
  const changes: number[] = [];
  for (const [i, result] of results.entries()) {
    if (isFailure(result)) return result;
    if (statements[i]?.mustChange && result.changes === 0) return [...changes, -1];
    changes.push(result.changes);
  }
  return changes;
}

/** Neither failed nor rolled back. */
export function isDone(result: WriteResult): boolean {
  return !("code" in result) && result.at(-1) !== -1;
}

/** A failure of the whole group; the results of single transactions are unknown. */
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
 * Runs `begin`, then the transactions, without the commit. Returns the result of each, or the failure
 * that ended all of them and leaves the transaction open. Never rejects.
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
    if (!isDone(begun))
      return { code: lostCode, message: "the row with its commits does not exist" };
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
      const retried = part.length === 1 ? ends : await runEach(connection, part, mayTakeLong);
      if (!Array.isArray(retried)) return retried;
      results.push(...retried);
    }
    before = keep;
  }
  return results;
}
