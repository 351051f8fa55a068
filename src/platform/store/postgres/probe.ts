// The servers of data.postgres for `shredway doctor`: reachable, authenticated, read-only or not.
//
// Called by doctor/service-facts.ts. Reads only settings; each connection is closed immediately.

import type { Clock } from "../../../core/clock.ts";
import { postgresHosts } from "../../../core/configuration/postgres-url.ts";
import { messageOf } from "../../../core/errors.ts";
import { defaultTimes, PostgresConnection } from "./connection.ts";
import { PostgresError, readOnlyCode } from "./failure.ts";

export interface PostgresProbe {
  /** "a:5432" */
  readonly name: string;
  /** Why it cannot be used; null when it can, or is a replica. */
  readonly error: string | null;
  /** A replica, or set to read only. */
  readonly isReadOnly: boolean;
  readonly connectMs: number;
  /** Setting -> value; empty for those that were not let in. */
  readonly settings: Readonly<Record<string, string>>;
}

const probeMs = 3000;
const settingNames = ["server_version", "fsync", "full_page_writes", "synchronous_commit"];
// The server's setting, not that of this session.
const settingsQuery = `SELECT name, coalesce(reset_val, setting) FROM pg_settings WHERE name IN (${settingNames
  .map((name) => `'${name}'`)
  .join(", ")})`;

/** One result per server, in the order of the URL. Never rejects. */
export function probePostgres(url: string, clock: Clock): Promise<PostgresProbe[]> {
  return Promise.all(postgresHosts(url).map((host) => probe(host, clock)));
}

async function probe(host: { url: string; name: string }, clock: Clock): Promise<PostgresProbe> {
  const times = { ...defaultTimes, connectMs: probeMs, answerMs: probeMs };
  const beganNs = clock.monotonicNs();
  const connectMs = () => Number(clock.monotonicNs() - beganNs) / 1e6;
  const { name } = host;
  try {
    const connection = await PostgresConnection.open({ url: host.url, clock, times }, "doctor");
    const took = connectMs();
    const rows = await connection.query(settingsQuery);
    await connection.close();
    const settings = Object.fromEntries(rows.map(([key, value]) => [String(key), String(value)]));
    return { name, error: null, isReadOnly: false, connectMs: took, settings };
  } catch (error) {
    const isReadOnly = error instanceof PostgresError && error.failure.code === readOnlyCode;
    const text = isReadOnly ? null : messageOf(error);
    return { name, error: text, isReadOnly, connectMs: connectMs(), settings: {} };
  }
}
