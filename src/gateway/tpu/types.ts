// Types of the TPU route: requests to leaders over QUIC, their events, and the state of each
// leader.
//
// Shared by the process that owns sockets and connections (endpoint.ts) and its users
// (quic-process.ts, routes/tpu-route.ts). messages.ts encodes requests and answers.

import type { QuicheAddress, QuicheCredentials } from "../../core/quic/quiche.ts";

export type TpuAddress = QuicheAddress;

export interface TpuSettings {
  readonly applicationProtocol: string;
  /** Limit on open connections. */
  readonly connectionsMax: number;
  /** Queue limit per leader; further transactions are dropped. */
  readonly queueMax: number;
  /** Time-out of a handshake and of an acknowledgement. */
  readonly timeoutMs: number;
  /** Addresses of the sockets; the kernel chooses the ports. */
  readonly bind: { readonly ipv4: string; readonly ipv6: string };
  /** Seed of the back-off jitter. */
  readonly seed: number;
}

/** One transaction to one leader. */
export interface TpuSendRequest {
  /** The caller's id, from 0 to 2^53 - 1. */
  readonly id: number;
  readonly address: TpuAddress;
  readonly bytes: Uint8Array;
  /** Remaining time until the deadline. */
  readonly restMs: number;
}

/** Result of a request: "sent" at most once and first, then at most one of the others. */
export type TpuEvent =
  /** The last byte was sent. */
  | { readonly kind: "sent"; readonly id: number; readonly atNs: bigint }
  /**
   * The leader's machine received every byte; whether the leader accepts the transaction is
   * unknown.
   */
  | { readonly kind: "acknowledged"; readonly id: number; readonly atNs: bigint }
  /** Sent, but not acknowledged: it may have arrived. */
  | { readonly kind: "failed"; readonly id: number; readonly atNs: bigint; readonly reason: string }
  /** Not sent completely. */
  | {
      readonly kind: "dropped";
      readonly id: number;
      readonly atNs: bigint;
      readonly reason: string;
    };

export type LeaderPhase = "idle" | "connecting" | "connected" | "backing_off";

/** State of one leader address, for snapshots and metrics. */
export interface LeaderState {
  /** "192.0.2.1:8009" */
  readonly address: string;
  readonly phase: LeaderPhase;
  /** Duration of the present or last connection's handshake; null: none completed yet. */
  readonly handshakeMs: number | null;
  /** Smoothed time from the last byte of a transaction to its acknowledgement; null: none yet. */
  readonly roundTripMs: number | null;
  /** Queued transactions. */
  readonly queued: number;
  /** Transactions without a result on the connection. */
  readonly inFlight: number;
  readonly sent: number;
  readonly acknowledged: number;
  /** Transactions that the leader refused, or that were lost with the connection. */
  readonly reset: number;
  readonly dropped: number;
  readonly connections: number;
  /** Number of connection ends by name (close-names.ts). */
  readonly closes: Readonly<Record<string, number>>;
  readonly lastClose: string;
}

export type ProcessRequest =
  /** The first one. */
  | {
      readonly kind: "open";
      readonly settings: TpuSettings;
      readonly credentials: QuicheCredentials;
    }
  | { readonly kind: "send"; readonly requests: readonly TpuSendRequest[] }
  /** Leaders to connect with, nearest first. */
  | { readonly kind: "aim"; readonly addresses: readonly TpuAddress[] }
  | { readonly kind: "identify"; readonly credentials: QuicheCredentials }
  /** The process immediately responds "pong". */
  | { readonly kind: "ping" }
  | { readonly kind: "close" };

/** Answers of every confined process; confined-process.ts handles them. */
export type SupervisionAnswer =
  /** `unconfined`: the steps of its confinement that the system refused; empty: none. */
  | { readonly kind: "opened"; readonly unconfined: string }
  | { readonly kind: "pong" }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "trouble"; readonly message: string };

export type ProcessAnswer =
  | SupervisionAnswer
  | { readonly kind: "events"; readonly events: readonly TpuEvent[] }
  | { readonly kind: "leaders"; readonly leaders: readonly LeaderState[] };

/** Why a process ended: by itself, or why this process ended it. */
export type ProcessEnd =
  | "exited"
  | "unresponsive"
  | "memory_limit"
  | "invalid_message"
  | "not_started";

/** State of the process, for snapshots and metrics. */
export interface ProcessState {
  /** null: none runs. */
  readonly pid: number | null;
  /** Resident memory at the last check; null: none runs. */
  readonly memoryBytes: number | null;
  /** How often it ended unexpectedly, by reason. */
  readonly ends: Readonly<Record<ProcessEnd, number>>;
}
