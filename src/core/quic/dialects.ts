// Dialects of the QUIC ingress: what each ALPN protocol carries, and its close codes. Pure.
//
// Facts of November 2026 about the services whose clients use them (docs/quic.md). Both processes use
// this table.

import { bundleTransactionsMax } from "../transactions/bundle-limits.ts";

/** Why the service closes a connection. */
export type CloseCause =
  /** The service shuts down. */
  | "closed"
  /** Unknown, expired, revoked or disallowed key. */
  | "unauthorized"
  | "connection_limit"
  /** The key has no scope for submissions, or the certificate asks for something impossible. */
  | "forbidden"
  /** Too many streams without a transaction. */
  | "excess";

export interface Dialect {
  /** ALPN protocol. */
  readonly protocol: string;
  /** The part of the client's certificate that identifies it: an API key, or a registered Ed25519 key. */
  readonly identity: "commonName" | "publicKey";
  /** Bytes of a stream. */
  readonly streamBytesMax: number;
  /** Whether bidirectional streams get a response frame; otherwise they are only closed. */
  readonly hasResponses: boolean;
  /** Whether a stream may carry several transactions as frames. */
  readonly takesBundles: boolean;
  readonly closeCodes: Readonly<Record<CloseCause, number>>;
}

/** A transaction of version 1. */
const transactionBytesMax = 4096;
const frameHeadBytes = 2;

/** Codes 0 to 2 are those of Astralane. */
const keyCodes = { closed: 0, unauthorized: 1, connection_limit: 2, forbidden: 3, excess: 4 };

/** Codes of validators (close-names.ts): disallowed, exceed_max_stream_count, too_many. */
const validatorCodes = { closed: 0, unauthorized: 2, connection_limit: 4, forbidden: 2, excess: 3 };

export const dialects: readonly Dialect[] = [
  {
    protocol: "shredway-tpu",
    identity: "commonName",
    streamBytesMax: bundleTransactionsMax * (frameHeadBytes + transactionBytesMax),
    hasResponses: true,
    takesBundles: true,
    closeCodes: keyCodes,
  },
  {
    protocol: "astralane-tpu",
    identity: "commonName",
    streamBytesMax: transactionBytesMax,
    hasResponses: false,
    takesBundles: false,
    closeCodes: keyCodes,
  },
  {
    protocol: "lunar-lander-tpu",
    identity: "commonName",
    streamBytesMax: transactionBytesMax,
    hasResponses: true,
    takesBundles: false,
    closeCodes: keyCodes,
  },
  {
    protocol: "solana-tpu",
    identity: "publicKey",
    streamBytesMax: transactionBytesMax,
    hasResponses: false,
    takesBundles: false,
    closeCodes: validatorCodes,
  },
];

export function findDialect(protocol: string): Dialect | undefined {
  return dialects.find((dialect) => dialect.protocol === protocol);
}
