// The QUIC ingress: clients' connections with their keys, and their streams as submissions.
//
// Created by compose-quic.ts. The connections live in a process of their own (ingress-process.ts). Here
// every connection is authenticated and every stream submitted, by the rules of the gateway. A connection
// whose key ends is closed within a second. Nothing that was accepted depends on the process.

import type { Clock, Timer } from "../../core/clock.ts";
import { messageOf, type Reason, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { type CloseCause, type Dialect, findDialect } from "../../core/quic/dialects.ts";
import type { QuicheCredentials } from "../../core/quic/quiche.ts";
import { frameStatusOf } from "../../core/quic/response-frame.ts";
import {
  type ConnectionRecord,
  ConnectionRecords,
  type KeyRecord,
  type RateLimitReport,
} from "../accounts/connection-records.ts";
import type { ApiKey } from "../accounts/types.ts";
import type { FastConnection } from "../fast-path/fast-connection.ts";
import type { OfferingConnection, StreamOffers } from "../fast-path/stream-offers.ts";
import type { ProcessState } from "../tpu/types.ts";
import { IngressProcess, type IngressProcessOptions } from "./ingress-process.ts";
import type {
  IngressConnection,
  IngressCounts,
  IngressEvent,
  IngressSettings,
  IngressStream,
} from "./types.ts";

/** A listener with the protection of everything that arrives there. */
export interface ProtectedListener {
  /** "ip:port"; port 0: the kernel chooses. */
  readonly address: string;
  readonly isProtected: boolean;
  readonly isSwqosOnly: boolean;
}

interface IngressSubmission {
  readonly key: ApiKey;
  readonly bytes: Uint8Array;
  readonly takesBundles: boolean;
  readonly isProtected: boolean;
  readonly isSwqosOnly: boolean;
  /** Wall time. */
  readonly receivedNs: bigint;
  /** undefined: the fast path cannot have sent it. */
  readonly offer: FastConnection | undefined;
}

/** The identity in a client's certificate, by the rule of its dialect. */
type ClientIdentity =
  | { readonly kind: "commonName"; readonly text: string }
  /** null: the certificate has a key of another type. */
  | { readonly kind: "publicKey"; readonly publicKey: Uint8Array | null };

/** An accepted client: its API key, or the registered public key that acts for one. */
interface AcceptedIdentity {
  readonly keyId: string;
  /** null: the certificate contains the API key. */
  readonly publicKey: Uint8Array | null;
}

export interface QuicIngressOptions {
  readonly listeners: readonly ProtectedListener[];
  readonly settings: Omit<IngressSettings, "listeners">;
  readonly connectionsPerKeyMax: number;
  readonly credentials: QuicheCredentials;
  /** For stateless resets and connection ids; the same after a restart. */
  readonly secret: string;
  /** null: transactions are sent after they were read. */
  readonly offers?: StreamOffers | null;
  readonly clock: Clock;
  readonly log?: Logger | undefined;
  /** The key that the client presents. Throws ShredwayError "unauthorized" or "rate_limited". */
  readonly authenticate: (remoteAddress: string, identity: ClientIdentity) => ApiKey;
  /** The key in its present state; null: it has ended, or is not allowed from this address. */
  readonly currentKey: (identity: AcceptedIdentity, remoteAddress: string) => ApiKey | null;
  /** Never rejects because of a client's input. */
  readonly submit: (
    submission: IngressSubmission,
  ) => Promise<{ readonly reason: Reason | null; readonly text: string }>;
  /** Called when submissions of a connection exceed its key's rate, at most once a second. */
  readonly rateLimited: (report: RateLimitReport) => void;
  readonly start?: IngressProcessOptions["start"];
}

/** One connection of a client whose key was accepted. */
interface Session extends AcceptedIdentity {
  readonly connection: IngressConnection;
  readonly dialect: Dialect;
  readonly isProtected: boolean;
  readonly isSwqosOnly: boolean;
  /** null: its transactions are not offered to the fast path. */
  readonly offering: OfferingConnection | null;
}

interface IngressSnapshot {
  readonly isUp: boolean;
  readonly process: ProcessState;
  /** null: the process has not reported yet. */
  readonly counts: IngressCounts | null;
  /** Open connections by ALPN protocol. */
  readonly connections: ReadonlyMap<string, number>;
  /** Submissions since the start by outcome: "accepted", or the reason of the rejection. */
  readonly submissions: ReadonlyMap<string, number>;
  /** Ends of connections since the start, by name. */
  readonly ends: ReadonlyMap<string, number>;
  /** Keys that had a connection since the start. */
  readonly keys: readonly KeyRecord[];
}

const checkMs = 250;
/** Clients choose their close codes: all ends whose name contains a number count as one. */
const endName = /^[a-z_]{1,40}$/;
/** Limit of different names, for a process that an attacker controls. */
const endNamesMax = 64;

function increment<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function endedText({ publicKey }: AcceptedIdentity): string {
  return publicKey
    ? "the public key was removed, or its API key was revoked or has expired"
    : "the API key was revoked or has expired";
}

export class QuicIngress {
  readonly #options: QuicIngressOptions;
  readonly #process: IngressProcess;
  readonly #sessions = new Map<number, Session>();
  readonly #records: ConnectionRecords;
  readonly #submissions = new Map<string, number>();
  readonly #ends = new Map<string, number>();
  #counts: IngressCounts | null = null;
  #checks: Timer | undefined;
  #isDraining = false;
  #underWay = 0;
  #whenIdle: (() => void) | undefined;

  /** Opens the sockets. Throws ShredwayError "quic_open". */
  constructor(options: QuicIngressOptions) {
    this.#options = options;
    this.#records = new ConnectionRecords((report) => options.rateLimited(report));
    const { clock, log, settings, credentials, secret, listeners, offers, start } = options;
    this.#process = new IngressProcess({
      listen: listeners.map(({ address }) => address),
      settings,
      credentials,
      secret,
      offers,
      clock,
      log,
      handle: (event) => this.#handle(event),
      lost: () => this.#lost(),
      start,
    });
  }

  /** Settles when clients can connect, or when the process failed to start; it then starts again. */
  async start(): Promise<void> {
    this.#checks = this.#options.clock.every(checkMs, () => this.#checkKeys());
    await this.#process.start();
  }

  /** "ip:port" of each listener; empty before `start`. */
  get addresses(): readonly string[] {
    return this.#process.addresses;
  }

  identify(credentials: QuicheCredentials): void {
    this.#process.identify(credentials);
  }

  /** From now on, new submissions are refused, as over HTTP. Settles when the others are answered. */
  drain(): Promise<void> {
    this.#isDraining = true;
    return new Promise((resolve) => {
      if (this.#underWay === 0) resolve();
      else this.#whenIdle = resolve;
    });
  }

  snapshot(): IngressSnapshot {
    const connections = new Map<string, number>();
    for (const { connection } of this.#sessions.values()) {
      increment(connections, connection.protocol);
    }
    return {
      isUp: this.#process.isUp,
      process: this.#process.state,
      counts: this.#counts,
      connections,
      submissions: new Map(this.#submissions),
      ends: new Map(this.#ends),
      keys: this.keys,
    };
  }

  /** Keys that had a connection since the start. */
  get keys(): readonly KeyRecord[] {
    return this.#records.keys();
  }

  /** Open connections with their counts, the oldest first. */
  get connections(): readonly ConnectionRecord[] {
    return this.#records.connections();
  }

  /** Closes every connection with the code of its dialect. Idempotent. */
  async close(): Promise<void> {
    this.#checks?.cancel();
    await this.#process.close();
    this.#sessions.clear();
    this.#options.offers?.end();
  }

  #handle(event: Exclude<IngressEvent, { kind: "listening" }>): void {
    if (event.kind === "connected") this.#connect(event.connection);
    else if (event.kind === "streams") for (const stream of event.streams) this.#receive(stream);
    else if (event.kind === "ended") this.#end(event.connection, event.end);
    else this.#count(event);
  }

  #count({ counts, connectionDrops }: Extract<IngressEvent, { kind: "counts" }>): void {
    this.#counts = counts;
    for (const [connection, streams] of connectionDrops) this.#records.dropped(connection, streams);
  }

  #connect(connection: IngressConnection): void {
    const dialect = findDialect(connection.protocol);
    const listener = this.#options.listeners[connection.listener];
    // The process cannot report others, unless an attacker controls it.
    if (!dialect || !listener || this.#sessions.has(connection.id)) return;
    let key: ApiKey;
    try {
      key = this.#keyOf(connection, dialect);
    } catch (error) {
      const cause = this.#causeOf(error);
      this.#dismiss(connection, dialect, cause, messageOf(error));
      return;
    }
    const { connectionsPerKeyMax } = this.#options;
    const open = this.#records.count(key.id);
    if (open >= connectionsPerKeyMax) {
      const text = `${open} connections of this key are open, at most ${connectionsPerKeyMax}`;
      this.#dismiss(connection, dialect, "connection_limit", text);
      return;
    }
    const { protocol, host } = connection;
    this.#records.add({
      id: connection.id,
      keyId: key.id,
      accountId: key.accountId,
      accountName: key.accountName,
      transport: "quic",
      protocol,
      address: host,
      openedNs: this.#options.clock.nowNs(),
    });
    const { id } = connection;
    const isProtected = listener.isProtected || connection.protection === true;
    const { isSwqosOnly } = listener;
    const { offers } = this.#options;
    this.#sessions.set(id, {
      connection,
      dialect,
      keyId: key.id,
      publicKey: dialect.identity === "publicKey" ? connection.ed25519Key : null,
      isProtected,
      isSwqosOnly,
      offering:
        offers && !isProtected && !isSwqosOnly
          ? offers.connection(id, () => this.#process.offer(id))
          : null,
    });
    this.#process.admit(id);
  }

  /** Throws ShredwayError. */
  #keyOf(connection: IngressConnection, dialect: Dialect): ApiKey {
    const { commonName, ed25519Key, protection, host } = connection;
    if (protection === "invalid") {
      throw new ShredwayError(
        "value_invalid",
        "certificate extension 2.999.1.1: expected a BOOLEAN, got another value",
      );
    }
    const key = this.#options.authenticate(
      host,
      dialect.identity === "publicKey"
        ? { kind: "publicKey", publicKey: ed25519Key }
        : { kind: "commonName", text: commonName ?? "" },
    );
    if (key.scopes.includes("submit")) return key;
    throw new ShredwayError(
      "scope_missing",
      `the API key has the scopes ${key.scopes.join(", ")}; expected submit`,
    );
  }

  #causeOf(error: unknown): CloseCause {
    const reason = error instanceof ShredwayError ? error.reason : "internal";
    return reason === "scope_missing" || reason === "value_invalid" ? "forbidden" : "unauthorized";
  }

  #dismiss({ id }: IngressConnection, dialect: Dialect, cause: CloseCause, text: string): void {
    this.#process.dismiss(id, dialect.closeCodes[cause], `${cause}: ${text}`);
  }

  #receive({ connection, stream, receivedNs, sequence, bytes }: IngressStream): void {
    const session = this.#sessions.get(connection);
    if (!session) {
      this.#options.offers?.discard({ sequence, bytes });
      return;
    }
    const { dialect, isProtected, isSwqosOnly } = session;
    const offer = session.offering?.stream({ sequence, bytes });
    const answer = (reason: Reason | null, body: string): void => {
      offer?.settle();
      increment(this.#submissions, reason ?? "accepted");
      // The process may have been replaced meanwhile, and the next one uses the same numbers.
      if (this.#sessions.get(connection) !== session) return;
      this.#records.submitted(connection, reason, body, this.#options.clock.monotonicNs());
      this.#process.answer({ connection, stream, status: frameStatusOf(reason), body });
    };
    if (this.#isDraining && !offer?.claim()) {
      answer("http_closing", "http_closing: server is shutting down");
      return;
    }
    const key = this.#refresh(session);
    if (!key) {
      offer?.settle();
      return;
    }
    const { clock } = this.#options;
    const elapsedNs = clock.monotonicNs() - receivedNs;
    const arrivedNs = clock.nowNs() - (elapsedNs > 0n ? elapsedNs : 0n);
    const submission = {
      key,
      bytes,
      takesBundles: dialect.takesBundles,
      isProtected,
      isSwqosOnly,
      receivedNs: arrivedNs,
      offer,
    };
    void this.#submit(submission, answer);
  }

  async #submit(
    submission: IngressSubmission,
    answer: (reason: Reason | null, body: string) => void,
  ): Promise<void> {
    this.#underWay++;
    try {
      const { reason, text } = await this.#options.submit(submission);
      answer(reason, text);
    } catch (error) {
      this.#options.log?.error(`quic: a submission failed: ${messageOf(error)}`);
      answer("internal", "internal: internal error");
    } finally {
      this.#underWay--;
      if (this.#underWay === 0) this.#whenIdle?.();
    }
  }

  /** The key in its present state. null: it has ended, and the connection is closed. */
  #refresh(session: Session): ApiKey | null {
    const { connection, dialect } = session;
    const current = this.#options.currentKey(session, connection.host);
    if (current?.scopes.includes("submit")) return current;
    this.#forget(session);
    const [cause, text] = current
      ? (["forbidden", "the API key has no longer the scope submit"] as const)
      : (["unauthorized", endedText(session)] as const);
    this.#dismiss(connection, dialect, cause, text);
    return null;
  }

  #checkKeys(): void {
    for (const session of this.#sessions.values()) this.#refresh(session);
    this.#records.reportDue(this.#options.clock.monotonicNs());
  }

  #forget({ connection, offering }: Session): void {
    offering?.closed();
    if (this.#sessions.delete(connection.id)) this.#records.remove(connection.id);
  }

  #end(connection: number, end: string): void {
    const hasRoom = this.#ends.has(end) || this.#ends.size < endNamesMax;
    increment(this.#ends, hasRoom && endName.test(end) ? end : "other");
    const session = this.#sessions.get(connection);
    if (session) this.#forget(session);
  }

  /** The process ended. Submissions that it passed on continue; their clients get no answer. */
  #lost(): void {
    this.#counts = null;
    for (const session of this.#sessions.values()) {
      this.#forget(session);
      increment(this.#ends, "process_lost");
    }
    this.#options.offers?.end();
  }
}
