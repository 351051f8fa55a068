// Type declarations of the parts of quiche's low-level binding that this project uses.
//
// The package is optional, and the product must compile without it. The types follow the package's
// own declarations (version 1.2.12). Calls throw quiche's errors; null means that there is nothing
// (more) to do.

/** Address (as text, without brackets) and port in quiche's format. */
export interface QuicheAddress {
  readonly host: string;
  readonly port: number;
}

interface QuicheError {
  readonly isApp: boolean;
  readonly errorCode: number;
  readonly reason: Uint8Array;
}

/** A connection of either side. Unidirectional stream ids of a client: 2, 6, 10, … */
export interface QuicheConnection {
  recv(
    data: Uint8Array,
    info: { readonly from: QuicheAddress; readonly to: QuicheAddress },
  ): number;
  /** Returns the bytes written to `data`, and their destination. */
  send(
    data: Uint8Array,
  ): [number, { readonly from: QuicheAddress; readonly to: QuicheAddress }] | null;
  streamSend(streamId: number, data: Uint8Array, fin: boolean): number | null;
  streamRecv(streamId: number, data: Uint8Array): [number, boolean] | null;
  streamPriority(streamId: number, urgency: number, incremental: boolean): void;
  streamFinished(streamId: number): boolean;
  streamShutdown(streamId: number, direction: number, error: number): unknown;
  streamCapacity(streamId: number): number;
  isReadable(): boolean;
  /** false also for a stream that does not exist. */
  streamReadable(streamId: number): boolean;
  /** Costs about as much as reading ten streams; so does `writable`. */
  readable(): Iterable<number>;
  /** Streams that can be written or that the remote side stopped; their use then throws. */
  writable(): Iterable<number>;
  peerStreamsLeftBidi(): number;
  peerStreamsLeftUni(): number;
  /** Milliseconds; null: no timer is needed. */
  timeout(): number | null;
  onTimeout(): void;
  sendAckEliciting(): void;
  close(app: boolean, error: number, reason: Uint8Array): unknown;
  isEstablished(): boolean;
  isDraining(): boolean;
  isClosed(): boolean;
  isTimedOut(): boolean;
  peerError(): QuicheError | null;
  localError(): QuicheError | null;
  /** DER certificates, the remote side's own first. */
  peerCertChain(): Uint8Array[] | null;
  applicationProto(): Uint8Array;
  sourceId(): Uint8Array;
  destinationId(): Uint8Array;
  stats(): {
    readonly recv: number;
    readonly sent: number;
    readonly lost: number;
    /** Bytes of streams that were in lost packets, and are sent again. */
    readonly streamRetransBytes: number;
    /** Milliseconds; 0: none. */
    readonly peerMaxIdleTimeout: number;
  };
  pathStats(): readonly { readonly rtt: number; readonly cwnd: number }[];
}

export interface QuicheConfig {
  grease(isOn: boolean): void;
  setApplicationProtos(protocols: string[]): void;
  setMaxIdleTimeout(ms: number): void;
  setMaxRecvUdpPayloadSize(bytes: number): void;
  setMaxSendUdpPayloadSize(bytes: number): void;
  setInitialMaxData(bytes: number): void;
  setInitialMaxStreamDataBidiLocal(bytes: number): void;
  setInitialMaxStreamDataBidiRemote(bytes: number): void;
  setInitialMaxStreamDataUni(bytes: number): void;
  setInitialMaxStreamsBidi(count: number): void;
  setInitialMaxStreamsUni(count: number): void;
  setMaxConnectionWindow(bytes: number): void;
  setMaxStreamWindow(bytes: number): void;
  /** 128 bits, sent to clients with every connection that is accepted afterwards. */
  setStatelessResetToken(token: bigint): void;
  setDisableActiveMigration(isOn: boolean): void;
  enableDgram(isOn: boolean, receiveQueue: number, sendQueue: number): void;
}

export interface QuicheHeader {
  /** A value of Quiche.Type. */
  readonly ty: number;
  readonly version: number;
  readonly dcid: Uint8Array;
  readonly scid: Uint8Array;
  readonly token?: Uint8Array;
}

export interface Quiche {
  readonly Connection: {
    connect(
      serverName: string | null,
      scid: Uint8Array,
      localHost: QuicheAddress,
      remoteHost: QuicheAddress,
      config: QuicheConfig,
    ): QuicheConnection;
    accept(
      scid: Uint8Array,
      originalDcid: Uint8Array | null,
      localHost: QuicheAddress,
      remoteHost: QuicheAddress,
      config: QuicheConfig,
    ): QuicheConnection;
  };
  readonly Config: {
    withBoringSslCtx(
      verifyPeer: boolean,
      verifyAllowFail: boolean,
      ca: Uint8Array | null,
      key: Uint8Array[] | null,
      cert: Uint8Array[] | null,
      signatureAlgorithms: string | null,
    ): QuicheConfig;
  };
  readonly Header: { fromSlice(data: Uint8Array, dcidLength: number): QuicheHeader };
  readonly Shutdown: { readonly Read: number; readonly Write: number };
  readonly Type: {
    readonly Initial: number;
    readonly Retry: number;
    readonly Handshake: number;
    readonly ZeroRTT: number;
    readonly VersionNegotiation: number;
    readonly Short: number;
  };
  versionIsSupported(version: number): boolean;
  /** Returns the bytes written to `data`. */
  negotiateVersion(scid: Uint8Array, dcid: Uint8Array, data: Uint8Array): number;
  retry(
    scid: Uint8Array,
    dcid: Uint8Array,
    newScid: Uint8Array,
    token: Uint8Array,
    version: number,
    data: Uint8Array,
  ): number;
}
