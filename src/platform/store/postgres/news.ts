// Notifications of changes by other processes: LISTEN on a separate connection.
//
// Created by driver.ts. NOTIFY is part of the writer's transaction, so a notification arrives if and
// only if the change is committed, in commit order. Notifications during a lost connection are missing,
// so after each gap the listener learns that anything may have changed.

import type { Clock, Timer } from "../../../core/clock.ts";
import type { Logger } from "../../../core/log.ts";
import type { ForeignChangeListener } from "../driver.ts";
import { isFailure, longerPauseMs, type PostgresConnection } from "./connection.ts";
import { failureOf } from "./failure.ts";
import { newsOf } from "./payloads.ts";
import type { PostgresAddress } from "./servers.ts";

/** Channel of NOTIFY. */
export const channel = "shredway";
/**
 * "Anything may have changed" is reported once for all commits within this time. Named changes never
 * wait.
 */
const pauseMs = 100;
/** A connection that only listens would not notice that the server is gone or became read-only. */
const checkIntervalMs = 5000;
const check = "SELECT current_setting('transaction_read_only')";
const retryMs = 100;

interface NewsOptions extends PostgresAddress {
  readonly log: Logger;
  /** The writer's id, which marks this process's own notifications. */
  readonly own: string;
  readonly onNews: ForeignChangeListener;
}

export class PostgresNews {
  readonly #options: NewsOptions;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #connection: PostgresConnection;
  #looking: Timer;
  #pause: Timer | undefined;
  #isDue = false;
  #returning: Promise<void> | undefined;

  /** Throws PostgresError. */
  static async open(options: NewsOptions): Promise<PostgresNews> {
    return new PostgresNews(options, await listen(options));
  }

  private constructor(options: NewsOptions, connection: PostgresConnection) {
    this.#options = options;
    this.#clock = options.clock;
    this.#connection = connection;
    this.#use(connection);
    this.#looking = this.#clock.every(checkIntervalMs, () => {
      if (!this.#returning) void this.#poll();
    });
  }

  /** Reports that anything may have changed. */
  notifyGap(): void {
    if (this.#closing.signal.aborted) return;
    if (this.#pause) {
      this.#isDue = true;
      return;
    }
    this.#isDue = false;
    this.#pause = this.#clock.after(pauseMs, () => {
      this.#pause = undefined;
      if (this.#isDue) this.notifyGap();
    });
    this.#options.onNews(null);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#looking.cancel();
    this.#pause?.cancel();
    await this.#returning;
    await this.#connection.close();
  }

  #use(connection: PostgresConnection): void {
    this.#connection = connection;
    connection.onNotification = (payload) => {
      const news = newsOf(payload, this.#options.own);
      if (news === null) this.notifyGap();
      else if (news !== "own") this.#options.onNews(news);
    };
    connection.onLost = () => {
      this.#returning ??= this.#return().finally(() => {
        this.#returning = undefined;
      });
    };
  }

  async #poll(): Promise<void> {
    const connection = this.#connection;
    const [result] = await connection.run([{ sql: check }]);
    if (result && !isFailure(result) && result.rows[0]?.[0] !== "off") {
      connection.destroy("the server became read-only");
    }
  }

  async #return(): Promise<void> {
    const { signal } = this.#closing;
    for (let waitMs = retryMs; !signal.aborted; waitMs = longerPauseMs(waitMs)) {
      try {
        this.#use(await listen(this.#options));
        this.notifyGap();
        if (!this.#connection.isLost) return;
      } catch (error) {
        this.#options.log.debug(`store: no notifications: ${failureOf(error).message}`);
      }
      await this.#clock.sleep(waitMs, signal);
    }
  }
}

async function listen({ servers }: NewsOptions): Promise<PostgresConnection> {
  const connection = await servers.open("shredway news");
  try {
    await connection.query(`LISTEN ${channel}`);
    return connection;
  } catch (error) {
    connection.destroy("not set up");
    throw error;
  }
}
