// What a leader grants to whom: connections, streams, and the words it closes connections with.
//
// Called by the leaders' server of the sandbox. Numbers and reason texts are those of Agave's streamer
// (3.1) and Firedancer; what cannot be had is said where it is decided. No I/O, no clock.

/** Why leaders close connections; the reason travels as text. */
export const closeReasons = [
  "dropped",
  "disallowed",
  "exceed_max_stream_count",
  "too_many",
  "invalid_stream",
] as const;
export type CloseReason = (typeof closeReasons)[number];

/** The application codes that go with them. */
export const closeCodes: Readonly<Record<CloseReason, number>> = {
  dropped: 1,
  disallowed: 2,
  exceed_max_stream_count: 3,
  too_many: 4,
  invalid_stream: 5,
};

/** Transport close code for a certificate without an Ed25519 key: TLS alert 50, decode_error. */
export const badCertificateCode = 0x100 + 50;

export const transactionBytesMax = 4096;
/** Streams are counted in windows so long. */
export const windowMs = 100;

export interface TpuLimits {
  /** Of one identity at once. More: "too_many". */
  readonly connectionsPerPeer: number;
  /** Of all staked peers at once. When it is full, the one that was not used for longest is "dropped". */
  readonly stakedConnectionsMax: number;
  /** Of all other peers. 0: they are "disallowed". */
  readonly unstakedConnectionsMax: number;
  /** New connections from one address. More are not answered. */
  readonly connectionsPerAddressPerMinute: number;
  /**
   * Streams that a peer may have open at once, known to it from the handshake on. The same for all:
   * quiche fixes it before the peer has shown its certificate. What tells the staked from the others is
   * how fast the credit comes back.
   */
  readonly streamsMax: number;
  /** Streams of all peers that are read in one window. */
  readonly streamsPerWindow: number;
  /** Of those, what each unstaked connection gets. */
  readonly unstakedStreamsPerWindow: number;
  /** From the first packet to the end of the handshake. */
  readonly handshakeMs: number;
  readonly idleMs: number;
  /** From the first byte of a stream to its last. */
  readonly streamMs: number;
}

export const defaultLimits: TpuLimits = {
  connectionsPerPeer: 8,
  stakedConnectionsMax: 2000,
  unstakedConnectionsMax: 2000,
  connectionsPerAddressPerMinute: 8,
  streamsMax: 128,
  streamsPerWindow: 50_000,
  unstakedStreamsPerWindow: 20,
  handshakeMs: 2000,
  idleMs: 10_000,
  streamMs: 2000,
};

const stakedShare = 0.8;
/** Below this part of all stake an identity counts as unstaked. */
const leastStakePart = 50_000n;

/** What a peer is worth to a leader. */
export interface PeerRank {
  readonly isStaked: boolean;
  readonly streamsPerWindow: number;
}

/** `total`: all stake of the cluster, the peer's included; lamports. */
export function rankOf(stake: bigint, total: bigint, limits: TpuLimits): PeerRank {
  const isStaked = stake > 0n && stake * leastStakePart >= total;
  const { unstakedStreamsPerWindow: least, streamsPerWindow } = limits;
  if (!isStaked) return { isStaked, streamsPerWindow: least };
  const share = (streamsPerWindow * stakedShare * Number(stake)) / Number(total);
  return { isStaked, streamsPerWindow: Math.max(least, Math.floor(share)) };
}

export interface TpuCounts {
  packets: number;
  /** Answered by a retry: the sender has yet to show that the address is its own. */
  retries: number;
  /** Forged, expired, or of another address. */
  tokensRefused: number;
  /** Of no connection that is known here, or no QUIC. */
  packetsUnknown: number;
  /** Not answered, for its address had too many in the last minute. */
  connectionsIgnored: number;
  /** Handshakes that ended well, with an identity. */
  connections: number;
  /** Without a certificate, or with a key that is not Ed25519. */
  certificatesRefused: number;
  /** Handshakes that failed otherwise or took too long. */
  handshakesFailed: number;
  /** Closed by the leader, by reason. */
  closed: Record<CloseReason, number>;
  /** Complete, 1 to 4,096 bytes. */
  transactions: number;
  /** Empty, reset by the peer, or never finished. */
  streamsDropped: number;
}

export function emptyCounts(): TpuCounts {
  return {
    packets: 0,
    retries: 0,
    tokensRefused: 0,
    packetsUnknown: 0,
    connectionsIgnored: 0,
    connections: 0,
    certificatesRefused: 0,
    handshakesFailed: 0,
    closed: {
      dropped: 0,
      disallowed: 0,
      exceed_max_stream_count: 0,
      too_many: 0,
      invalid_stream: 0,
    },
    transactions: 0,
    streamsDropped: 0,
  };
}
