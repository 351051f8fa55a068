// The stand-in for a PostgreSQL server: sessions that share one engine, with times and failures that its user
// decides.
//
// A session's transaction keeps all others waiting, because the engine has one backend: each of them then sees what
// it would have seen before or after that transaction. Nothing here waits in real time.

import type { Clock } from "../../../../src/core/clock.ts";
import type { PostgresEngine } from "./engine.ts";
import type { RunRequest } from "./messages.ts";
import { StandInSession } from "./session.ts";

export interface StandInFailure {
  /** SQLSTATE. */
  readonly code: string;
  readonly message: string;
}

/** A request fails, or the server ends with the transaction committed or not. */
export type StandInTrouble =
  | (StandInFailure & { readonly kind: "refused" })
  | { readonly kind: "ends"; readonly isKept: boolean };

export interface StandInConditions {
  /** null: sessions may start. */
  refusal(): StandInFailure | null;
  /** Time before a request is executed; 0: none. */
  delayMs(request: RunRequest, session: StandInSession): number;
  /** Asked when a request is executed. */
  trouble(request: RunRequest, session: StandInSession): StandInTrouble | null;
  /** The server ended by a trouble; all sessions are over. */
  ended(): void;
}

/** The client's side of a session. */
export interface StandInClient {
  send(bytes: Buffer): void;
  /** After everything that was sent. */
  close(): void;
}

interface StandInOptions {
  readonly engine: PostgresEngine;
  readonly clock: Clock;
  readonly conditions: StandInConditions;
}

export class StandInServer {
  readonly engine: PostgresEngine;
  readonly clock: Clock;
  readonly conditions: StandInConditions;
  readonly #sessions = new Set<StandInSession>();
  /** The session with an open transaction. */
  #owner: StandInSession | null = null;
  #waiting: (() => void)[] = [];
  #pid = 0;

  constructor({ engine, clock, conditions }: StandInOptions) {
    this.engine = engine;
    this.clock = clock;
    this.conditions = conditions;
  }

  get sessions(): readonly StandInSession[] {
    return [...this.#sessions];
  }

  accept(client: StandInClient): StandInSession {
    const session = new StandInSession(this, client, ++this.#pid);
    this.#sessions.add(session);
    return session;
  }

  /** All sessions end with this error, as by a shutdown; null: without one, as by a crash. */
  end(failure: StandInFailure | null): void {
    for (const session of this.sessions) session.end(failure);
  }

  /** Runs `action` now and returns true, or later, when the transaction of another session has ended. */
  enter(session: StandInSession, action: () => void): boolean {
    // The engine has no second backend, on which the others could go on until the server notices it.
    if (this.#owner !== session && this.#owner?.isForsaken) this.#owner.end(null);
    if (this.#owner === null || this.#owner === session) return true;
    this.#waiting.push(action);
    return false;
  }

  /** The session is inside of a transaction, or no longer. */
  setOwner(session: StandInSession, isInTransaction: boolean): void {
    if (isInTransaction) this.#owner = session;
    else if (this.#owner === session) this.#owner = null;
  }

  /** Waiting sessions go on, one after the other, until one of them begins a transaction. */
  proceed(): void {
    while (this.#owner === null) {
      const next = this.#waiting.shift();
      if (!next) return;
      next();
    }
  }

  /** The session has ended: its transaction, its locks and its statements. */
  remove(session: StandInSession): void {
    if (!this.#sessions.delete(session)) return;
    const finish = (): void => {
      session.release(this.#owner === session);
      this.setOwner(session, false);
      this.proceed();
    };
    if (this.enter(session, finish)) finish();
  }
}
