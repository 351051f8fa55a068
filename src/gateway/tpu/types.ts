// The words of the direct route: what goes to leaders over QUIC, and what is known of each of them.
//
// Only types, shared by the thread that owns sockets and connections (endpoint.ts) and by those who
// feed it (tpu-thread.ts, routes/tpu-route.ts). Everything here can cross a thread's border.

import type { QuicheAddress, QuicheCredentials } from "./quiche.ts";

export type TpuAddress = QuicheAddress;

export interface TpuSettings {
  readonly applicationProtocol: string;
  /** Connections at once. */
  readonly connectionsMax: number;
  /** Transactions that wait for one leader; further ones are dropped. */
  readonly queueMax: number;
  /** For a handshake, and for an acknowledgement of what was sent. */
  readonly timeoutMs: number;
  /** Where the sockets are bound; the port is the kernel's choice. */
  readonly bind: { readonly ipv4: string; readonly ipv6: string };
  /** Of the jitter of back-off. */
  readonly seed: number;
}

/** One transaction to one leader. */
export interface TpuSendRequest {
  /** The caller's, from 0 to 2^53 - 1. */
  readonly id: number;
  readonly address: TpuAddress;
  readonly bytes: Uint8Array;
  /** After so long it is of no use any more. */
  readonly restMs: number;
}

/** What became of it. "sent" at most once and first; then at most one of the others. */
export type TpuEvent =
  /** The last byte left by the socket. */
  | { readonly kind: "sent"; readonly id: number; readonly atNs: bigint }
  /** Every byte has arrived at the leader's machine; whether the leader takes it, nobody says. */
  | { readonly kind: "acknowledged"; readonly id: number; readonly atNs: bigint }
  /** Sent, and then nothing: it may have arrived. */
  | { readonly kind: "failed"; readonly id: number; readonly atNs: bigint; readonly reason: string }
  /** Never left as a whole. */
  | {
      readonly kind: "dropped";
      readonly id: number;
      readonly atNs: bigint;
      readonly reason: string;
    };

export type LeaderPhase = "idle" | "connecting" | "connected" | "backing_off";

/** One leader's address, as snapshots and counters show it. */
export interface LeaderState {
  /** "192.0.2.1:8009" */
  readonly address: string;
  readonly phase: LeaderPhase;
  /** Of the present or last connection; null: none stood yet. */
  readonly handshakeMs: number | null;
  /** From the last byte of a transaction to its acknowledgement, smoothed; null: none yet. */
  readonly roundTripMs: number | null;
  /** Transactions that wait. */
  readonly queued: number;
  /** Sent, no answer yet. */
  readonly inFlight: number;
  readonly sent: number;
  readonly acknowledged: number;
  /** Refused by the leader, or lost with the connection. */
  readonly reset: number;
  readonly dropped: number;
  readonly connections: number;
  /** Ends of connections by name (close-names.ts). */
  readonly closes: Readonly<Record<string, number>>;
  readonly lastClose: string;
}

export type ThreadRequest =
  | {
      readonly kind: "send";
      readonly requests: readonly ThreadSendRequest[];
      readonly bytes: Uint8Array;
    }
  /** Whom to be connected with, the nearest first. */
  | { readonly kind: "aim"; readonly addresses: readonly TpuAddress[] }
  | { readonly kind: "identify"; readonly credentials: QuicheCredentials }
  /** Answered at once, by "pong". */
  | { readonly kind: "ping" }
  | { readonly kind: "close" };

/** A request whose bytes lie in the request's, one after the other. */
export interface ThreadSendRequest {
  readonly id: number;
  readonly address: TpuAddress;
  readonly length: number;
  readonly restMs: number;
}

export type ThreadAnswer =
  | { readonly kind: "opened" }
  | { readonly kind: "pong" }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "events"; readonly events: readonly TpuEvent[] }
  | { readonly kind: "leaders"; readonly leaders: readonly LeaderState[] }
  | { readonly kind: "trouble"; readonly message: string }
  | { readonly kind: "closed" };

export interface ThreadOptions {
  readonly settings: TpuSettings;
  readonly credentials: QuicheCredentials;
}
