// Loads quiche and builds its configuration.
//
// The only file that imports @matrixai/quic, an optional dependency that is loaded on first use. It
// uses the package's low-level binding (quiche 0.18 with BoringSSL), which has no sockets or
// timers. The TPU route, the QUIC ingress, its clients and the sandbox's leaders use it. Calls throw
// an Error whose message is quiche's error name ("StreamLimit", "InvalidPacket", …); null means
// that there is nothing (more) to do. Only the thread that created a connection may use it.

import { createRequire } from "node:module";
import { messageOf } from "../errors.ts";
import type { Quiche, QuicheConfig } from "./quiche-binding.ts";

export type {
  Quiche,
  QuicheAddress,
  QuicheConfig,
  QuicheConnection,
  QuicheHeader,
} from "./quiche-binding.ts";

/** Key and certificate in PEM; certificate.ts creates them. */
export interface QuicheCredentials {
  readonly keyPem: string;
  readonly certificatePem: string;
}

interface QuicheSettings {
  readonly credentials: QuicheCredentials;
  /** Server only: requests a certificate and accepts any. */
  readonly asksCertificate?: boolean;
  /**
   * Client only: certificates in PEM that must have signed the server's. Absent: every certificate is
   * accepted.
   */
  readonly authorities?: string | undefined;
  /** One, or a server's several, in the order of preference. */
  readonly applicationProtocol: string | readonly string[];
  readonly idleTimeoutMs: number;
  /** UDP payload of a packet in both directions. */
  readonly packetBytesMax: number;
  /** Bytes that the remote side may send before they are read: on all streams, and on each. */
  readonly connectionBytesMax: number;
  readonly streamBytesMax: number;
  /** Unidirectional streams that the remote side may have open. */
  readonly streamsMax: number;
  /** Bidirectional streams that the remote side may have open. Default: 0. */
  readonly bidirectionalStreamsMax?: number;
  /** Bytes of a response on a bidirectional stream of this side before they are read. Default: 0. */
  readonly responseBytesMax?: number;
}

/** ALPN protocol of leaders; facts of November 2026 (Agave, Firedancer). */
export const tpuProtocol = "solana-tpu";
/** The minimum MTU of IPv6, which every path supports. */
export const packetBytesMax = 1280;

/** Leaders use Ed25519; the other algorithms are for partners' ports. */
const signatureAlgorithms = [
  "ed25519",
  "ecdsa_secp256r1_sha256",
  "ecdsa_secp384r1_sha384",
  "rsa_pss_rsae_sha256",
  "rsa_pss_rsae_sha384",
  "rsa_pss_rsae_sha512",
].join(":");

export const quicheHint = "install it with: npm install --include=optional";

type Loaded = { readonly quiche: Quiche } | { readonly problem: string };
let loaded: Loaded | undefined;

function load(): Loaded {
  try {
    const module: { default: Quiche } = createRequire(import.meta.url)(
      "@matrixai/quic/dist/native/quiche.js",
    );
    return { quiche: module.default };
  } catch (error) {
    return { problem: messageOf(error).split("\n", 1)[0] ?? "" };
  }
}

/** null: the package is missing or does not support this machine; see `quicheProblem`. */
export function loadQuiche(): Quiche | null {
  loaded ??= load();
  return "quiche" in loaded ? loaded.quiche : null;
}

/** Why quiche is not available, on one line; null: it is available. */
export function quicheProblem(): string | null {
  loaded ??= load();
  return "problem" in loaded ? loaded.problem : null;
}

/**
 * Configuration with TLS 1.3 only, without resumption and early data. Throws quiche's Error for an
 * invalid key.
 */
export function buildQuicheConfig(quiche: Quiche, settings: QuicheSettings): QuicheConfig {
  const { keyPem, certificatePem } = settings.credentials;
  const { authorities, asksCertificate = false } = settings;
  const config = quiche.Config.withBoringSslCtx(
    asksCertificate || authorities !== undefined,
    asksCertificate,
    authorities === undefined ? null : Buffer.from(authorities),
    [Buffer.from(keyPem)],
    [Buffer.from(certificatePem)],
    signatureAlgorithms,
  );
  config.grease(false);
  config.setApplicationProtos([settings.applicationProtocol].flat());
  config.setMaxIdleTimeout(settings.idleTimeoutMs);
  config.setMaxRecvUdpPayloadSize(Math.max(settings.packetBytesMax, 1500));
  config.setMaxSendUdpPayloadSize(settings.packetBytesMax);
  config.setInitialMaxData(settings.connectionBytesMax);
  config.setInitialMaxStreamDataBidiLocal(settings.responseBytesMax ?? 0);
  const bidirectionalMax = settings.bidirectionalStreamsMax ?? 0;
  config.setInitialMaxStreamDataBidiRemote(bidirectionalMax > 0 ? settings.streamBytesMax : 0);
  config.setInitialMaxStreamDataUni(settings.streamBytesMax);
  config.setInitialMaxStreamsBidi(bidirectionalMax);
  config.setInitialMaxStreamsUni(settings.streamsMax);
  config.setDisableActiveMigration(true);
  config.enableDgram(false, 0, 0);
  return config;
}
