// One session of the stand-in: executes the requests of a client in order.

import type { Timer } from "../../../../src/core/clock.ts";
import type { EngineAnswer, EngineSession } from "./engine.ts";
import { fatalMessage, type Request, RequestReader, startedMessages } from "./messages.ts";
import type { StandInClient, StandInFailure, StandInServer } from "./server.ts";

/** An administrator, or the end of the server, ends the session. */
export const terminated: StandInFailure = {
  code: "57P01",
  message: "terminating connection due to administrator command",
};
const idle: StandInFailure = {
  code: "57P05",
  message: "terminating connection due to idle-session timeout",
};
const idleInTransaction: StandInFailure = {
  code: "25P03",
  message: "terminating connection due to idle-in-transaction timeout",
};

export function isCommit(sql: string): boolean {
  return /^\s*COMMIT\b/i.test(sql);
}

/** Texts, or numbers of parameters, of the settings in a statement. */
const settingsIn = /set_config\('(\w+)', (?:\$(\d+)|'([^']*)')/g;
const listenIn = /^LISTEN "?(\w+)"?$/i;
const asynchronous = /synchronous_commit = off/i;

export class StandInSession {
  readonly #server: StandInServer;
  readonly #client: StandInClient;
  readonly #pid: number;
  readonly #reader: RequestReader;
  #identity: EngineSession | null = null;
  readonly #settings = new Map<string, string>();
  readonly #channels = new Set<string>();
  #requests: Request[] = [];
  #answers: Buffer[] = [];
  /** The request that waits for its time. */
  #delayed: Request | null = null;
  #isInTransaction = false;
  #isAsynchronous = false;
  #isBusy = false;
  /** It ends after the requests that have arrived. */
  #isLeaving = false;
  /** It ends after the request that is being executed. */
  #isDoomed = false;
  #isLost = false;
  #isOver = false;
  #idleTimer: Timer | undefined;

  constructor(server: StandInServer, client: StandInClient, pid: number) {
    this.#server = server;
    this.#client = client;
    this.#pid = pid;
    this.#reader = new RequestReader(`s${pid}_`);
  }

  /** application_name; "" before its start. */
  get name(): string {
    return this.#identity?.name ?? "";
  }

  get place(): string {
    return this.#identity?.place ?? "";
  }

  /** Whether a commit would wait for the disk. */
  get isSynchronous(): boolean {
    return !this.#isAsynchronous;
  }

  /** Statement that waits for its time; "" if none does. */
  get delayedSql(): string {
    return this.#delayed?.kind === "run" ? this.#delayed.sql : "";
  }

  receive(bytes: Buffer): void {
    if (this.#isOver || this.#isLeaving) return;
    for (const request of this.#reader.read(bytes)) this.#requests.push(request);
    this.#work();
  }

  /** The client has closed its side: what it sent before is executed. */
  leave(): void {
    this.#isLeaving = true;
    this.#work();
  }

  /** Nothing of the client arrives any more, and the server has not noticed it. */
  lose(): void {
    this.#isLost = true;
  }

  /** Its client is lost, and it executes no commit. */
  get isForsaken(): boolean {
    return this.#isLost && !this.#isCommitting;
  }

  /** The connection was reset: only a commit that is under way is executed. */
  abandon(): void {
    if (this.#isCommitting) this.#isDoomed = true;
    else this.end(null);
  }

  /** Ends it now. */
  end(failure: StandInFailure | null): void {
    if (this.#isOver) return;
    if (failure) this.#answers.push(fatalMessage(failure.code, failure.message));
    this.#flush();
    this.#isOver = true;
    this.#idleTimer?.cancel();
    this.#client.close();
    this.#server.remove(this);
  }

  /** The server's part of its end. */
  release(isInTransaction: boolean): void {
    const names = [...this.#reader.statements.keys()].filter((name) => name !== "");
    if (this.#identity) this.#server.engine.end(this.#identity, names, isInTransaction);
  }

  /** Another session has notified a channel of this place. */
  notify(channel: string, message: Buffer): void {
    if (this.#isOver || !this.#channels.has(channel)) return;
    this.#answers.push(message);
    if (!this.#isBusy) this.#flush();
  }

  get #isCommitting(): boolean {
    return isCommit(this.delayedSql);
  }

  #work(): void {
    if (this.#isBusy || this.#isOver) return;
    this.#isBusy = true;
    this.#idleTimer?.cancel();
    this.#continue();
  }

  readonly #continue = (): void => {
    while (!this.#isOver) {
      const [request] = this.#requests;
      if (!request) break;
      this.#terminateOthers(request);
      if (!this.#server.enter(this, this.#continue)) {
        this.#flush();
        return;
      }
      if (this.#isDelayed(request)) {
        this.#flush();
        return;
      }
      this.#delayed = null;
      this.#requests.shift();
      this.#execute(request);
      if (this.#isDoomed) this.end(terminated);
    }
    if (this.#isOver) return;
    this.#isBusy = false;
    this.#flush();
    if (this.#isLeaving) this.end(null);
    else this.#waitIdle();
  };

  /** Whether the request must wait, and is continued by a timer. */
  #isDelayed(request: Request): boolean {
    if (request.kind !== "run" || this.#delayed === request) return false;
    const delayMs = this.#server.conditions.delayMs(request, this);
    if (delayMs === 0) return false;
    this.#delayed = request;
    if (delayMs !== Number.POSITIVE_INFINITY) this.#server.clock.after(delayMs, this.#continue);
    return true;
  }

  #execute(request: Request): void {
    switch (request.kind) {
      case "ssl":
        this.#answers.push(Buffer.from("N"));
        return;
      case "end":
        this.#requests = [];
        this.end(null);
        return;
      case "start":
        this.#start(request.parameters);
        return;
      case "run": {
        const identity = this.#identity;
        if (!identity) throw new Error("expected a start-up packet first");
        const { engine, conditions } = this.#server;
        const trouble = conditions.trouble(request, this);
        if (trouble?.kind === "ends") {
          if (trouble.isKept) this.#finish(engine.run(identity, request.bytes));
          this.#answers = [];
          this.#server.end(null);
          conditions.ended();
          return;
        }
        if (trouble) {
          this.#finish(engine.fail(identity, trouble.code, trouble.message));
          return;
        }
        this.#note(request.sql, request.params);
        this.#finish(engine.run(identity, request.bytes));
      }
    }
  }

  #start(parameters: ReadonlyMap<string, string>): void {
    const refusal = this.#server.conditions.refusal();
    if (refusal) {
      this.end(refusal);
      return;
    }
    const user = parameters.get("user") ?? "";
    this.#identity = {
      pid: this.#pid,
      place: parameters.get("database") ?? user,
      name: parameters.get("application_name") ?? "",
    };
    this.#server.engine.begin(this.#identity);
    this.#answers.push(startedMessages(this.#pid));
  }

  /** Keeps the changes that a statement makes to the session itself. */
  #note(sql: string, params: readonly string[]): void {
    for (const [, name = "", number, text] of sql.matchAll(settingsIn))
      this.#settings.set(name, text ?? params[Number(number) - 1] ?? "");
    const channel = listenIn.exec(sql)?.[1];
    if (channel !== undefined) this.#channels.add(channel);
    if (asynchronous.test(sql)) this.#isAsynchronous = true;
  }

  #finish({ bytes, status, notifications }: EngineAnswer): void {
    this.#answers.push(bytes);
    this.#isInTransaction = status !== "I";
    if (!this.#isInTransaction) this.#isAsynchronous = false;
    this.#server.setOwner(this, this.#isInTransaction);
    for (const message of notifications) {
      const channel = message.toString("latin1", 9, message.indexOf(0, 9));
      for (const session of this.#server.sessions)
        if (session.place === this.place) session.notify(channel, message);
    }
    if (!this.#isInTransaction) this.#server.proceed();
  }

  /** pg_terminate_backend for the sessions that have the name of its first parameter. */
  #terminateOthers(request: Request): void {
    if (request.kind !== "run" || !request.sql.includes("pg_terminate_backend")) return;
    for (const session of this.#server.sessions) {
      const isMeant = session.name === request.params[0] && session.place === this.place;
      if (isMeant && session !== this) session.#terminate();
    }
  }

  #terminate(): void {
    if (this.#isCommitting) this.#isDoomed = true;
    else this.end(terminated);
  }

  #waitIdle(): void {
    const [setting, failure] = this.#isInTransaction
      ? ["idle_in_transaction_session_timeout", idleInTransaction]
      : ["idle_session_timeout", idle];
    const limitMs = Number(this.#settings.get(setting) ?? 0);
    if (limitMs > 0) this.#idleTimer = this.#server.clock.after(limitMs, () => this.end(failure));
  }

  #flush(): void {
    const answers = this.#answers.splice(0);
    if (answers.length > 0) this.#client.send(Buffer.concat(answers));
  }
}
