// The servers of a URL, and the selection of the one that accepts changes.
//
// Created by driver.ts, called for every connection. Servers are tried in the order of the URL, starting
// with the last one that accepted changes. Replicas are skipped. While this process lives, it also skips
// a server from which another one took over, because its data is stale.

import type { Duplex } from "node:stream";
import type { Clock } from "../../../core/clock.ts";
import {
  type PostgresHost,
  postgresHosts,
  postgresName,
} from "../../../core/configuration/postgres-url.ts";
import { ShredwayError } from "../../../core/errors.ts";
import type { Failure } from "../batch.ts";
import { isFailure, PostgresConnection, type PostgresTimes } from "./connection.ts";
import { failureOf, fullCode, isLost, PostgresError, readOnlyCode } from "./failure.ts";

/** Timeline of the server; increases each time a replica takes over. */
const timelineQuery = `SELECT ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::bigint`;

const interruptedText = "interrupted";
const leftBehind = "another server took over from it";

interface ServersOptions {
  /** postgres://user:password@host:port,host:port/database?sslmode=verify-full */
  readonly url: string;
  readonly clock: Clock;
  readonly times: PostgresTimes;
  /** Default: a socket of the kernel. */
  readonly openStream?: (() => Duplex) | undefined;
  /** Its abort ends all connections and attempts at once, and every later one. */
  readonly interrupted?: AbortSignal | undefined;
}

/** The parameters of an open connection attempt. */
export interface PostgresAddress {
  readonly servers: PostgresServers;
  readonly clock: Clock;
}

interface Refusal {
  readonly host: string;
  readonly failure: Failure;
}

/** The most specific of several errors, with the text of all. */
function together(refusals: readonly Refusal[]): Failure {
  const failures = refusals.map(({ failure }) => failure);
  const [only] = failures;
  if (only && failures.length === 1) return only;
  const full = failures.find(({ code }) => code.startsWith(fullCode));
  const readOnly = failures.find(({ code }) => code === readOnlyCode);
  const known = full ?? failures.find((failure) => !isLost(failure)) ?? readOnly ?? only;
  const message = refusals.map(({ host, failure }) => `${host}: ${failure.message}`).join("; ");
  return { code: known?.code ?? "", message };
}

export class PostgresServers {
  /** For messages: without user, password and options. */
  readonly name: string;
  readonly #hosts: readonly PostgresHost[];
  readonly #clock: Clock;
  readonly #times: PostgresTimes;
  readonly #openStream: (() => Duplex) | undefined;
  readonly #interrupted: AbortSignal | undefined;
  /** The one that accepted changes last. */
  #last = 0;
  #timeline = 0n;
  #open: { readonly connection: PostgresConnection; readonly timeline: bigint }[] = [];

  /** Throws ShredwayError "config_invalid". */
  constructor({ url, clock, times, openStream, interrupted }: ServersOptions) {
    this.name = postgresName(url);
    this.#hosts = postgresHosts(url);
    this.#clock = clock;
    this.#times = times;
    this.#openStream = openStream;
    this.#interrupted = interrupted;
  }

  /**
   * Connects to a server that accepts changes. `purpose`: its name in the server's lists. Throws
   * PostgresError; ShredwayError "store_failed" without the package.
   */
  async open(purpose: string): Promise<PostgresConnection> {
    const count = this.#hosts.length;
    const first = this.#last;
    const refusals: Refusal[] = [];
    for (let i = 0; i < count; i++) {
      const at = (first + i) % count;
      // Without the code of a lost connection, so that no caller tries again.
      if (this.#interrupted?.aborted)
        throw new PostgresError({ code: "", message: interruptedText });
      const { url = "", name: host = "" } = this.#hosts[at] ?? {};
      try {
        const connection = await this.#openAt(url, purpose);
        this.#last = at;
        return connection;
      } catch (error) {
        if (error instanceof ShredwayError) throw error;
        refusals.push({ host, failure: failureOf(error) });
      }
    }
    throw new PostgresError(together(refusals));
  }

  async #openAt(url: string, purpose: string): Promise<PostgresConnection> {
    const count = this.#hosts.length;
    // The time limit for all servers together is that of one.
    const times = { ...this.#times, connectMs: Math.ceil(this.#times.connectMs / count) };
    const options = {
      url,
      clock: this.#clock,
      times,
      openStream: this.#openStream,
      interrupted: this.#interrupted,
    };
    const connection = await PostgresConnection.open(options, purpose);
    if (count === 1) return connection;
    const timeline = await timelineOf(connection);
    this.#open = this.#open.filter((one) => !one.connection.isLost);
    this.#open.push({ connection, timeline });
    if (timeline > this.#timeline) this.#timeline = timeline;
    this.#abandonServer();
    if (!connection.isLost) return connection;
    throw new PostgresError({ code: readOnlyCode, message: leftBehind });
  }

  /** Connections to a server from which another one took over. */
  #abandonServer(): void {
    for (const { connection, timeline } of this.#open) {
      if (timeline < this.#timeline) connection.destroy(leftBehind);
    }
  }
}

/**
 * Some PostgreSQL-compatible servers have no timeline; then no comparison happens. Throws PostgresError.
 */
async function timelineOf(connection: PostgresConnection): Promise<bigint> {
  const [result] = await connection.run([{ sql: timelineQuery }]);
  if (result === undefined || isFailure(result)) {
    if (result && isLost(result)) throw new PostgresError(result);
    return 0n;
  }
  const value = result.rows[0]?.[0];
  return typeof value === "bigint" ? value : 0n;
}
