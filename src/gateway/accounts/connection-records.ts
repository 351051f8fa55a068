// Open connections that submit without HTTP, with their counts, by API key. Pure.
//
// The QUIC ingress and the WebSocket on /relayb record their connections here; the portal and the metrics read the counts. Submissions
// beyond a key's rate are reported at once, and then once a second with their number, because the
// client may read no responses.

export type Transport = "quic" | "websocket";

interface ConnectionFacts {
  /** Unique among the open connections of its transport. */
  readonly id: number;
  readonly keyId: string;
  readonly accountId: string;
  readonly accountName: string;
  readonly transport: Transport;
  /** ALPN protocol of QUIC; "websocket". */
  readonly protocol: string;
  /** Address of the client. */
  readonly address: string;
  /** Wall time. */
  readonly openedNs: bigint;
}

interface SubmissionCounts {
  readonly accepted: number;
  /** Without those beyond the rate. */
  readonly rejected: number;
  readonly rateLimited: number;
  /** Streams without a transaction. */
  readonly dropped: number;
}

export interface ConnectionRecord extends ConnectionFacts, SubmissionCounts {}

/** The counts of all connections of a key, including closed ones. */
export interface KeyRecord extends SubmissionCounts {
  readonly keyId: string;
  readonly accountId: string;
  readonly accountName: string;
  readonly connections: number;
}

/** The open connections and the keys at one time. */
export interface ConnectionSnapshot {
  readonly connections: readonly ConnectionRecord[];
  readonly keys: readonly KeyRecord[];
}

/** Connections of several transports; the counts of a key are those of all of them. */
export function mergedConnections(parts: readonly ConnectionSnapshot[]): ConnectionSnapshot {
  const keys = new Map<string, KeyRecord>();
  for (const record of parts.flatMap((part) => part.keys)) {
    const known = keys.get(record.keyId);
    keys.set(record.keyId, known ? sumOf(known, record) : record);
  }
  return {
    connections: parts.flatMap(({ connections }) => connections),
    keys: [...keys.values()],
  };
}

function sumOf(a: KeyRecord, b: KeyRecord): KeyRecord {
  return {
    ...a,
    connections: a.connections + b.connections,
    accepted: a.accepted + b.accepted,
    rejected: a.rejected + b.rejected,
    rateLimited: a.rateLimited + b.rateLimited,
    dropped: a.dropped + b.dropped,
  };
}

/** Submissions of one connection that were rejected with "rate_limited". */
export interface RateLimitReport {
  readonly keyId: string;
  readonly accountId: string;
  readonly protocol: string;
  readonly address: string;
  /** Since the connection's last report. */
  readonly submissions: number;
  /** The last response. */
  readonly message: string;
}

type CountName = keyof SubmissionCounts;
type MutableCounts = { -readonly [Name in CountName]: number };

interface OpenConnection {
  readonly facts: ConnectionFacts;
  readonly counts: MutableCounts;
  /** Rejections that are not reported yet. */
  unreported: number;
  /** Monotonic; null: none was reported. */
  reportedNs: bigint | null;
  message: string;
}

const reportIntervalNs = 1_000_000_000n;
/** Keys without a connection are forgotten beyond this number, the oldest first. */
const keysMax = 10_000;
const noCounts = { accepted: 0, rejected: 0, rateLimited: 0, dropped: 0 } as const;

export class ConnectionRecords {
  readonly #report: (report: RateLimitReport) => void;
  readonly #open = new Map<number, OpenConnection>();
  readonly #keys = new Map<string, { -readonly [Name in keyof KeyRecord]: KeyRecord[Name] }>();

  constructor(report: (report: RateLimitReport) => void) {
    this.#report = report;
  }

  /** Open connections of the key. */
  count(keyId: string): number {
    return this.#keys.get(keyId)?.connections ?? 0;
  }

  add(facts: ConnectionFacts): void {
    this.#open.set(facts.id, {
      facts,
      counts: { ...noCounts },
      unreported: 0,
      reportedNs: null,
      message: "",
    });
    const { keyId, accountId, accountName } = facts;
    const record = this.#keys.get(keyId) ?? {
      keyId,
      accountId,
      accountName,
      connections: 0,
      ...noCounts,
    };
    record.connections++;
    this.#keys.set(keyId, record);
    this.#forgetIdleKeys();
  }

  /** The result of one submission; `reason` null: it was accepted. Unknown connections are ignored. */
  submitted(id: number, reason: string | null, message: string, nowNs: bigint): void {
    const connection = this.#open.get(id);
    if (!connection) return;
    if (reason !== "rate_limited") {
      this.#increase(connection, reason === null ? "accepted" : "rejected", 1);
      return;
    }
    this.#increase(connection, "rateLimited", 1);
    connection.unreported++;
    connection.message = message;
    this.#reportWhenDue(connection, nowNs);
  }

  dropped(id: number, streams: number): void {
    const connection = this.#open.get(id);
    if (connection) this.#increase(connection, "dropped", streams);
  }

  /** Reports the rejections that waited for the end of their second. */
  reportDue(nowNs: bigint): void {
    for (const connection of this.#open.values()) this.#reportWhenDue(connection, nowNs);
  }

  remove(id: number): void {
    const connection = this.#open.get(id);
    if (!connection) return;
    this.#open.delete(id);
    if (connection.unreported > 0) this.#reportNow(connection);
    const key = this.#keys.get(connection.facts.keyId);
    if (key) key.connections--;
  }

  /** All open connections, the oldest first. */
  connections(): ConnectionRecord[] {
    return Array.from(this.#open.values(), ({ facts, counts }) => ({ ...facts, ...counts }));
  }

  keys(): KeyRecord[] {
    return Array.from(this.#keys.values(), (record) => ({ ...record }));
  }

  #increase({ counts, facts }: OpenConnection, name: CountName, by: number): void {
    counts[name] += by;
    const key = this.#keys.get(facts.keyId);
    if (key) key[name] += by;
  }

  #reportWhenDue(connection: OpenConnection, nowNs: bigint): void {
    if (connection.unreported === 0) return;
    const { reportedNs } = connection;
    if (reportedNs !== null && nowNs - reportedNs < reportIntervalNs) return;
    connection.reportedNs = nowNs;
    this.#reportNow(connection);
  }

  #reportNow(connection: OpenConnection): void {
    const { keyId, accountId, protocol, address } = connection.facts;
    const { unreported: submissions, message } = connection;
    connection.unreported = 0;
    this.#report({ keyId, accountId, protocol, address, submissions, message });
  }

  #forgetIdleKeys(): void {
    if (this.#keys.size <= keysMax) return;
    for (const [keyId, { connections }] of this.#keys) {
      if (connections > 0) continue;
      this.#keys.delete(keyId);
      return;
    }
  }
}
