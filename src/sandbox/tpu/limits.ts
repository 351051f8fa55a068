// Limits of a leader for connections and streams, and its close reasons.
//
// Called by the sandbox's TPU servers. Numbers and reason texts are those of Agave's streamer (3.1)
// and Firedancer; comments note the differences. No I/O, no clock.

/** Reasons for which leaders close connections; they are sent as text. */
export const closeReasons = [
  "dropped",
  "disallowed",
  "exceed_max_stream_count",
  "too_many",
  "invalid_stream",
] as const;
export type CloseReason = (typeof closeReasons)[number];

/** The application codes of these reasons. */
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
/** Length of the windows in which streams are counted. */
export const windowMs = 100;

export interface TpuLimits {
  /** Maximum number of connections per identity. Above it: "too_many". */
  readonly connectionsPerPeer: number;
  /**
   * Maximum number of staked connections. When it is reached, the least recently used one is
   * "dropped".
   */
  readonly stakedConnectionsMax: number;
  /** Maximum number of unstaked connections. 0: they are "disallowed". */
  readonly unstakedConnectionsMax: number;
  /** Maximum number of new connections per address and minute. Further ones get no response. */
  readonly connectionsPerAddressPerMinute: number;
  /**
   * Maximum number of concurrent streams of a peer, announced in the handshake. It is the same for
   * all peers: quiche fixes it before the peer has sent its certificate. Staked and unstaked peers
   * differ in the rate at which new credit is granted.
   */
  readonly streamsMax: number;
  /** Maximum number of streams of all peers that are read in one window. */
  readonly streamsPerWindow: number;
  /** Share of each unstaked connection. */
  readonly unstakedStreamsPerWindow: number;
  /** Limit from the first packet to the end of the handshake. */
  readonly handshakeMs: number;
  readonly idleMs: number;
  /** Limit from the first byte of a stream to its last. */
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
/** An identity below this share of the total stake counts as unstaked. */
const leastStakePart = 50_000n;

/** Stake of a peer. */
export interface PeerRank {
  readonly isStaked: boolean;
  readonly streamsPerWindow: number;
}

/** `total`: stake of the cluster, including the peer's; in lamports. */
export function rankOf(stake: bigint, total: bigint, limits: TpuLimits): PeerRank {
  const isStaked = stake > 0n && stake * leastStakePart >= total;
  const { unstakedStreamsPerWindow: least, streamsPerWindow } = limits;
  if (!isStaked) return { isStaked, streamsPerWindow: least };
  const share = (streamsPerWindow * stakedShare * Number(stake)) / Number(total);
  return { isStaked, streamsPerWindow: Math.max(least, Math.floor(share)) };
}

export interface TpuCounts {
  packets: number;
  /** Answered by a retry: the sender has not yet validated its address. */
  retries: number;
  /** Token is forged, expired, or of another address. */
  tokensRefused: number;
  /** Packet of an unknown connection, or not QUIC. */
  packetsUnknown: number;
  /** Not answered, because the address opened too many connections in the last minute. */
  connectionsIgnored: number;
  /** Completed handshakes with an identity. */
  connections: number;
  /** Peers without a certificate, or with a key that is not Ed25519. */
  certificatesRefused: number;
  /** Handshakes that failed for other reasons or timed out. */
  handshakesFailed: number;
  /** Connections closed by the leader, by reason. */
  closed: Record<CloseReason, number>;
  /** Complete transactions of 1 to 4,096 bytes. */
  transactions: number;
  /** Streams that were empty, reset by the peer, or never finished. */
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
