// Options of connectQuic and of its calls, and what they report.
//
// Only types.

/** ALPN protocols of the service (docs/quic.md). */
export type QuicDialect = "shredway-tpu" | "lunar-lander-tpu" | "astralane-tpu" | "solana-tpu";

/**
 * How the client knows the service. The API key is sent only to a service that was recognised. Absent: by
 * the certificate authorities of Node.js and the name in `address`; on a loopback address: not at all.
 */
export type ServerIdentity =
  /** SHA-256 of the service's certificate in hex, with or without colons. */
  | { readonly fingerprint: string }
  /** Certificates of the accepted authorities in PEM, and the name in `address`. */
  | { readonly authorities: string }
  /** The certificate is not checked: an attacker between client and service can take the API key. */
  | { readonly unverified: true };

export interface QuicClientOptions {
  /** "host:port" of the service; IPv6 as "[address]:port". */
  readonly address: string;
  /** Required, except for the dialect "solana-tpu". */
  readonly apiKey?: string;
  /** Registered Ed25519 key for "solana-tpu": its seed of 32 bytes, or the key pair of 64 bytes. */
  readonly keyPair?: Uint8Array;
  /** Default: "shredway-tpu". */
  readonly dialect?: QuicDialect;
  readonly server?: ServerIdentity;
  /** Requests MEV protection for every transaction, by the certificate. Not available with "solana-tpu". */
  readonly mevProtect?: boolean;
  /** Limit of the handshake, and of each submission up to its response. Default 10,000. */
  readonly timeoutMs?: number;
  /** Interval of keep-alive packets on an idle connection. Default 10,000, at most 25,000. */
  readonly keepAliveMs?: number;
  /** Called after each handshake, also the first one. */
  readonly onConnected?: () => void;
  /**
   * Called after each end of a connection, and after each failed attempt except the first. The client connects
   * again unless `close` was called.
   */
  readonly onClosed?: (end: QuicEnd) => void;
}

/** The end of a connection. */
export interface QuicEnd {
  /**
   * "shutdown", "unauthorized", "connection_limit", "forbidden" or "excess" if the service closed it
   * (docs/quic.md); otherwise, for example, "idle_timeout", "silent" or "closed_here".
   */
  readonly name: string;
  /** Close code of the service; null: it sent none. */
  readonly code: number | null;
  /** Text of the close; empty: none. */
  readonly message: string;
  /** Milliseconds until the next attempt to connect; null: none follows. */
  readonly retryMs: number | null;
}

export interface QuicSendOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** `encoding` of texts. If absent, it is detected. */
  readonly encoding?: "base64" | "base58";
}
