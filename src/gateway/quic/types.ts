// Types of the QUIC ingress: messages between the gateway and the process of the connections.
//
// Only types. ingress-messages.ts encodes them.

import type { QuicheCredentials } from "../../core/quic/quiche.ts";
import type { SupervisionAnswer } from "../tpu/types.ts";
import type { CertificateFacts } from "./certificate-facts.ts";

/** A UDP socket of the process. The gateway opened it; its position in the list is its number. */
export interface IngressListener {
  readonly host: string;
}

export interface IngressSettings {
  readonly listeners: readonly IngressListener[];
  /** Open connections of all clients. */
  readonly connectionsMax: number;
  /** Streams of each kind that a client may have open on a connection. */
  readonly streamsMax: number;
  /** From the first byte of a stream to its last. */
  readonly streamTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** New connections of an address (IPv6: of a /64) in a minute. */
  readonly handshakesPerMinute: number;
}

/** A completed handshake. */
export interface IngressConnection extends CertificateFacts {
  /** Assigned by the process; never repeated in its life. */
  readonly id: number;
  /** Number of the listener. */
  readonly listener: number;
  /** ALPN protocol of a dialect. */
  readonly protocol: string;
  /** Address of the client, without brackets. */
  readonly host: string;
}

/** The complete content of one stream. */
export interface ReceivedStream {
  readonly connection: number;
  readonly stream: number;
  /** Arrival of the last byte; monotonic. */
  readonly receivedNs: bigint;
  readonly bytes: Uint8Array;
}

export interface IngressStream extends ReceivedStream {
  /** Number of its offer to the fast path; 0: it was not offered. */
  readonly sequence: number;
}

/** The answer to one stream. Each stream needs one, also if the client reads none. */
export interface IngressAnswer {
  readonly connection: number;
  readonly stream: number;
  readonly status: number;
  readonly body: string;
}

export const dropNames = ["empty", "reset", "timed_out", "too_long", "memory_limit"] as const;
export type DropName = (typeof dropNames)[number];

export const countNames = [
  "packets",
  /** Packets of unknown connections, and packets that are not QUIC. */
  "unknownPackets",
  /** Packets of a connection, above its limit or that of its address. */
  "limitedPackets",
  "retries",
  "invalidTokens",
  /** First packets that were ignored, because of the limit of their address or of all handshakes. */
  "limitedHandshakes",
  "failedHandshakes",
  "handshakes",
] as const;
type CountName = (typeof countNames)[number];

/** Counts of one process since its start. */
export interface IngressCounts extends Readonly<Record<CountName, number>> {
  /** Streams without a transaction, by reason. */
  readonly drops: Readonly<Record<DropName, number>>;
}

export type IngressRequest =
  /** The first one. */
  | {
      readonly kind: "open";
      readonly settings: IngressSettings;
      readonly credentials: QuicheCredentials;
      /** For stateless resets and connection ids; the same after a restart. */
      readonly secret: string;
      /** For offers to the fast path; null: it is off. */
      readonly offersDescriptor: number | null;
    }
  | { readonly kind: "answers"; readonly answers: readonly IngressAnswer[] }
  /** The connection may submit. */
  | { readonly kind: "admit"; readonly connection: number }
  /** The transactions of the connection are offered to the fast path. */
  | { readonly kind: "offer"; readonly connection: number }
  | {
      readonly kind: "dismiss";
      readonly connection: number;
      readonly code: number;
      readonly reason: string;
    }
  /** A new certificate, for new connections. */
  | { readonly kind: "identify"; readonly credentials: QuicheCredentials }
  /** The process immediately responds "pong". */
  | { readonly kind: "ping" }
  | { readonly kind: "close" };

export type IngressEvent =
  /** "ip:port" of each socket, before anything else. */
  | { readonly kind: "listening"; readonly addresses: readonly string[] }
  | { readonly kind: "connected"; readonly connection: IngressConnection }
  | { readonly kind: "streams"; readonly streams: readonly IngressStream[] }
  /** `end`: stable name of the end. */
  | {
      readonly kind: "ended";
      readonly connection: number;
      readonly end: string;
    }
  | {
      readonly kind: "counts";
      readonly counts: IngressCounts;
      /** Connections and their dropped streams since the last report. */
      readonly connectionDrops: readonly (readonly [connection: number, streams: number])[];
    };

export type IngressProcessAnswer = SupervisionAnswer | IngressEvent;
